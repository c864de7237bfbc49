"""Strategies: for each resource whether full nodes are better, or empty ones, and how much it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from stromboli.model.resources.axes import Axes
from stromboli.model.table import NodeRows
from stromboli.model.task import Task

Floats = npt.NDArray[np.float64]

MOST, LEAST = "MostAllocated", "LeastAllocated"

TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
WEIGHT: Final = "volcano.sh/resource-strategy-weight"
"""Annotations of a pod with a strategy of its own: one type for all resources, and their weights as a JSON object."""

Weights = dict[str, Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]]
"""What that object may hold: numbers of 64 bits."""

LONGEST: Final = 1 << 14
"""Weights of more characters are not read."""


class Strategy(NamedTuple):
    """How one resource is scored, and with which weight."""

    type: str
    weight: int


class Share(NamedTuple):
    """One resource that a pod asks for: its column, how much of it, and its strategy."""

    column: int
    request: int
    strategy: Strategy


DEFAULT: Final = {"cpu": Strategy(LEAST, 1), "memory": Strategy(LEAST, 1)}


def read(written: Mapping[str, object]) -> dict[str, Strategy]:
    """The strategies by resource, or by pattern such as ``nvidia.com/*``; what is no such pattern is left out."""
    if not written:
        return dict(DEFAULT)
    return {str(name): _strategy(entry) for name, entry in written.items() if not pattern_problem(str(name))}


def pattern_problem(name: str) -> str:
    """What is wrong with ``name`` as a name or pattern of resources; empty if nothing."""
    if name == "*":
        return "a * alone stands for no resource; write a pattern such as nvidia.com/*"
    if "*" in name[:-1]:
        return f"{name}: a pattern has one * at its end"
    return ""


def _strategy(entry: object) -> Strategy:
    fields = entry if isinstance(entry, Mapping) else {}
    kind, weight = fields.get("type"), fields.get("weight")
    usable = isinstance(weight, int) and not isinstance(weight, bool) and weight > 0
    return Strategy(MOST if kind == MOST else LEAST, weight if isinstance(weight, int) and usable else 1)


def of_resource(name: str, strategies: Mapping[str, Strategy]) -> Strategy | None:
    """The strategy of ``name``: its own, else that of the pattern with the longest beginning."""
    if name in strategies:
        return strategies[name]
    patterns = [key for key in strategies if key.endswith("*") and name.startswith(key[:-1])]
    return strategies[max(patterns, key=len)] if patterns else None


def of_pod(annotations: Mapping[str, str]) -> dict[str, Strategy] | None:
    """The strategy that a pod has of its own, empty where it cannot be read; None for a pod without one."""
    kind = annotations.get(TYPE, "")
    if not kind:
        return None
    written = annotations.get(WEIGHT, "")
    try:
        weights = msgspec.json.decode(written, type=Weights | None) if len(written) <= LONGEST else None
    except msgspec.DecodeError:
        return {}
    return {name: Strategy(kind, weight) for name, weight in (weights or {}).items()}


def shares(task: Task, axes: Axes, strategies: Mapping[str, Strategy], *, patterns: bool) -> list[Share]:
    """What counts of the request of ``task``, in the order in which shortages are reported."""
    asked = dict(enumerate(task.template.vector))
    named = ((column, axes.names[column]) for column in axes.order if asked.get(column, 0) > 0)
    found = ((column, of_resource(name, strategies) if patterns else strategies.get(name)) for column, name in named)
    return [Share(column, asked[column], strategy) for column, strategy in found if strategy is not None]


def score(asked: Sequence[Share], nodes: NodeRows) -> Floats:
    """The weighted mean of how full each row would be, or how empty, from 0 to 1; 0 where something does not fit.

    Resources that a row does not offer count by their weight alone, and so do those of an unknown type.
    """
    total, fits = np.zeros(len(nodes)), np.ones(len(nodes), dtype=bool)
    for column, request, (kind, weight) in asked:
        if not weight or column >= len(nodes.alloc) or kind not in (MOST, LEAST):
            continue
        offered = nodes.alloc[column]
        after = nodes.used[column] + request
        fits &= (after <= offered) | (offered == 0)
        part = after if kind == MOST else offered - after
        total += np.where(offered == 0, 0.0, part * float(weight) / np.where(offered == 0, 1, offered))
    weights = sum(share.strategy.weight for share in asked)
    return np.where(fits, total / weights if weights > 0 else total, 0.0)


def scarcity(requested: Iterable[int], weights: Mapping[int, int], weight_sum: int, nodes: NodeRows) -> Floats:
    """How few scarce resources each row has, from 0 to 1: ``weights`` by column, ``weight_sum`` with unknown ones.

    0 where a row does not offer what is ``requested``, by column, or where nothing is scarce.
    """
    offers = np.ones(len(nodes), dtype=bool)
    for column in requested:
        offers &= nodes.alloc[column] != 0 if column < len(nodes.alloc) else False
    has = sum((weight * (nodes.alloc[column] > 0) for column, weight in weights.items()), np.zeros(len(nodes)))
    return np.where(offers, 1.0 - has / weight_sum, 0.0) if weight_sum > 0 else np.zeros(len(nodes))
