"""Arithmetic of loads: what pods too young to be measured are expected to use, and how loaded a node is with them.

Cpu is in thousandths of a core, memory in bytes; loads are parts of the node's capacity, from 0 to 1.  The functions
of loads take numbers as well as arrays, and give the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from stromboli.model.resources import quantity
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.resources.request import limit
from stromboli.model.spec import Amount
from stromboli.model.table import NodeTable
from stromboli.model.task import PodTemplate

Floats = npt.NDArray[np.float64]
Load = TypeVar("Load", float, Floats)

MAX_SCORE = 100.0


class Pair(NamedTuple):
    """An amount of cpu and one of memory."""

    cpu: float
    memory: float


class Estimator(NamedTuple):
    """How a pod's use is guessed from what it states.

    ``request`` and ``burst`` are the parts of the request, and of what the limit allows beyond it, that are used; from
    a load of ``threshold`` on the guess is multiplied by ``risk``.  ``idle_pod`` is what a pod is expected to use that
    states nothing.
    """

    request: float
    burst: float
    threshold: float
    risk: float
    idle_pod: Pair

    def factor(self, load: float) -> float:
        """What guesses are multiplied by on a node with that load."""
        return self.risk if load >= self.threshold else 1.0

    def guess(self, template: PodTemplate, factor: float) -> Pair:
        """What a pod of ``template`` is expected to use."""
        if template.best_effort:
            return Pair(self.idle_pod.cpu * factor, self.idle_pod.memory * factor)
        bound = limit(template.spec)
        asked = template.request
        return Pair(
            self._part(asked.milli_cpu, bound.milli_cpu, factor), self._part(asked.memory, bound.memory, factor)
        )

    def _part(self, asked: float, bound: float, factor: float) -> float:
        most = max(asked, bound)
        return min(most, (asked * self.request + (most - asked) * self.burst) * factor)


class Weights(NamedTuple):
    """What cpu and memory count against each other."""

    cpu: int
    memory: int

    def mean(self, of: tuple[Load, Load]) -> Load | float:
        """The weighted mean of a figure of cpu and one of memory; 0 where both weights are 0."""
        total = self.cpu + self.memory
        if not total:
            return 0.0
        return (of[0] * float(self.cpu) + of[1] * float(self.memory)) / float(total)


def load(percent: Load, expected: Load, capacity: Load) -> Load:
    """Load of a node of ``capacity`` of which ``percent`` were measured and ``expected`` comes on top.

    0 on a node without capacity.
    """
    if isinstance(capacity, float):
        together = (percent / 100.0 * capacity + expected) / capacity if capacity > 0 else 0.0
        return min(1.0, max(0.0, together))
    together = (percent / 100.0 * capacity + expected) / np.where(capacity > 0, capacity, 1.0)
    return np.clip(np.where(capacity > 0, together, 0.0), 0.0, 1.0)


def score(loads: tuple[Load, Load], weights: Weights, weight: int) -> Load | float:
    """Score of a node by its loads of cpu and memory: the idler the better, up to 100 times ``weight``."""
    cpu, memory = loads
    return weights.mean((1.0 - cpu, 1.0 - memory)) * MAX_SCORE * float(weight)


class Expected:
    """By node, what pods that no measurement shows yet are expected to use together.

    Sums are rounded once, so that they don't depend on the order in which pods came and went.
    """

    def __init__(self, nodes: int) -> None:
        self.cpu, self.memory = np.zeros(nodes), np.zeros(nodes)
        self._guesses: dict[int, dict[str, Pair]] = {}
        self._rows: dict[str, int] = {}

    def put(self, uid: str, row: int, guess: Pair) -> None:
        """Count a pod on a node; one that is counted already moves there."""
        self.take(uid)
        self._rows[uid] = row
        self._guesses.setdefault(row, {})[uid] = guess
        self._add_up(row)

    def take(self, uid: str) -> Pair | None:
        """Count a pod no longer; returns its guess, None if it was not counted."""
        row = self._rows.pop(uid, None)
        if row is None:
            return None
        guess = self._guesses[row].pop(uid)
        self._add_up(row)
        return guess

    def of(self, row: int) -> Pair:
        """The sums of one node."""
        return Pair(float(self.cpu[row]), float(self.memory[row]))

    def _add_up(self, row: int) -> None:
        guesses = self._guesses[row].values()
        self.cpu[row] = math.fsum(guess.cpu for guess in guesses)
        self.memory[row] = math.fsum(guess.memory for guess in guesses)


def capacities(table: NodeTable) -> tuple[Floats, Floats]:
    """Cpu and memory that nodes have, not only offer to pods, oversubscription included; shape (nodes,) each."""
    found = np.array(list(_capacities(table)), dtype=np.float64).reshape(len(table), 2)
    return found[:, 0].copy(), found[:, 1].copy()


def _capacities(table: NodeTable) -> Iterator[tuple[float, float]]:
    kept: dict[tuple[Amount, ...], tuple[int, int]] = {}
    cpus, memories = table.alloc[CPU].tolist(), table.alloc[MEMORY].tolist()
    for spec, cpu, memory in zip(table.statics.specs, cpus, memories, strict=True):
        has, offers = spec.capacity, spec.allocatable
        stated = has.get("cpu", 0), offers.get("cpu", 0), has.get("memory", 0), offers.get("memory", 0)
        if stated not in kept:  # few kinds of node in a large cluster
            kept[stated] = _kept(*stated)
        more_cpu, more_memory = kept[stated]
        yield float(cpu + more_cpu), float(memory + more_memory)


def _kept(cpu: Amount, offered_cpu: Amount, memory: Amount, offered_memory: Amount) -> tuple[int, int]:
    """What a node keeps from pods of its cpu and memory."""
    more_cpu = quantity.milli(cpu) - quantity.milli(offered_cpu)
    return more_cpu, quantity.whole(memory) - quantity.whole(offered_memory)
