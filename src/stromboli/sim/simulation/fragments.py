"""Fragmentation: how much of what is free no pod of the workload could use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from stromboli.model.names import CPU, GPU
from stromboli.model.resources.device_settings import DEFAULTS
from stromboli.sim.simulation.workload import Workload, amount_of

SCARCE: Final = (GPU, DEFAULTS.nvidia.resource_memory_name, CPU)
"""The resource that is looked at: the first of these that jobs ask for and nodes offer."""

SORTS: Final = 50
"""How many sorts of pods are looked at: the most frequent ones."""
SMALL: Final = 1e-9
"""What rounding may take from an amount."""


class Fragments:
    """What is free on each node, and which part of the scarce resource a pod drawn from the workload could not use.

    For a pod m, the fragment F(m) of a node is what is free of the resource there if m asks for none of it or does not
    fit, otherwise nothing; the rate is the mean of Σ F(m) over pods m, divided by all that is free.  Q. Weng et al.,
    "Beware of Fragmentation", USENIX ATC 2023, section 3, by nodes: cards of a node are not told apart.

    For how many pods the free room is useless is kept by node, and computed again for nodes that have changed.
    """

    def __init__(self, workload: Workload, names: Sequence[str]) -> None:
        nodes: list[Any] = [body for body in workload.objects if body["kind"] == "Node"]
        self._rows = {body["metadata"]["name"]: row for row, body in enumerate(nodes)}
        free = [_vector(body["status"]["allocatable"], names) for body in nodes]
        self.free = np.array(free, dtype=float).reshape(len(nodes), len(names))
        self._column = next((list(names).index(name) for name in SCARCE if name in names), None)
        sorts = sorted(_counts(workload, names).items(), key=lambda each: (-each[1], each[0]))[:SORTS]
        self._sorts = np.array([amounts for amounts, _ in sorts], dtype=float).reshape(len(sorts), len(names))
        self._counts = np.array([count for _, count in sorts], dtype=float)
        self._useless = np.zeros(len(nodes))
        self._moved = set(range(len(nodes)))
        self._rate: float | None = None

    def placed(self, node: str, amounts: Sequence[float], sign: int) -> None:
        """A pod takes so much of a node, or with ``sign`` -1 gives it back."""
        if node in self._rows:
            self.free[self._rows[node]] -= sign * np.array(amounts)
            self._moved.add(self._rows[node])
            self._rate = None

    def rate(self) -> float:
        """The part, 0 to 1; 0 where nothing is free, or no resource is looked at."""
        if self._rate is None:
            self._rate = self._lost()
        return self._rate

    def _lost(self) -> float:
        if self._column is None or not len(self._counts):
            return 0.0
        rows = sorted(self._moved)
        self._moved.clear()
        fits = (self.free[rows, None, :] >= self._sorts - SMALL).all(axis=2) & (self._sorts[:, self._column] > 0)
        self._useless[rows] = ~fits @ self._counts  # whole numbers, so the order of adding up does not matter
        free = np.maximum(self.free[:, self._column], 0.0)
        lost, whole = float(free @ self._useless), float(free.sum() * self._counts.sum())
        return lost / whole if whole > 0 else 0.0


def _vector(amounts: Mapping[str, str], names: Sequence[str]) -> tuple[float, ...]:
    return tuple(amount_of(amounts.get(name, "0")) for name in names)


def _counts(workload: Workload, names: Sequence[str]) -> Counter[tuple[float, ...]]:
    """How many pods ask for each set of amounts."""
    counts: Counter[tuple[float, ...]] = Counter()
    for job in workload.jobs:
        for some in job.pods:
            counts[_vector(some.requests, names)] += some.count
    return counts
