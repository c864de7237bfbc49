"""How much cpu and memory a node must keep for its idle devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from stromboli.filters.columns import Bools
from stromboli.model.table import CPU, MEMORY, NodeRows
from stromboli.model.task import Task

MEGABYTE: Final = 10**6


class Proportion(NamedTuple):
    """What goes with one idle device of resource ``name``: cores, and gigabytes of memory."""

    name: str
    cores: float
    gigabytes: float


def not_negative(rate: float) -> str:
    """Refuse rates below 0."""
    return "" if rate >= 0 else f"rate {rate} of a resource is negative; 1 counts instead"


def read(names: str, rates: Mapping[str, float]) -> list[Proportion]:
    """The proportions of the resources in ``names``, between commas; ``rates`` are by ``name.cpu``, ``name.memory``.

    A rate that is missing or negative is 1.
    """

    def rate(key: str) -> float:
        found = rates.get(key, 1.0)
        return found if found >= 0 else 1.0

    listed = dict.fromkeys(name.strip() for name in names.split(","))
    return [Proportion(name, rate(f"{name}.cpu"), rate(f"{name}.memory")) for name in listed if name]


def takes_devices(task: Task, proportions: Iterable[Proportion]) -> bool:
    """Whether ``task`` asks for one of the devices: then it may use up what goes with them."""
    return any(task.request.get(each.name) > 0 for each in proportions)


def keeps_too_little(task: Task, nodes: NodeRows, proportion: Proportion) -> Bools:
    """Which rows would keep too little for their idle devices with ``task`` on them.  Shape (rows,)."""
    request, devices = task.template.vector, nodes.idle_of(proportion.name)
    short: Bools = (nodes.idle[CPU] - request[CPU] < devices * proportion.cores) | (
        nodes.idle[MEMORY] - request[MEMORY] < devices * proportion.gigabytes * MEGABYTE
    )
    return short
