"""lowNodeUtilization: takes pods from loaded nodes as long as idle ones have room for their load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from stromboli.framework.config.argument import Complaint
from stromboli.model.names import CPU, MEMORY
from stromboli.model.resources import quantity
from stromboli.model.resources.qos import qos_of
from stromboli.model.spec import Amount, NodeSpec
from stromboli.model.task import Task

NAME: Final = "lowNodeUtilization"
COUNTED: Final = (CPU, MEMORY)
WITHOUT_EFFECT: Final = ("numberOfNodes", "thresholdPriority", "thresholdPriorityClassName", "nodeFit")
"""Parameters that are known and change nothing, as in the reference."""
PODS_TOO: Final = ("pods", "pod")


class Limits(NamedTuple):
    """Percentages by resource: a node is low while all its loads are below ``low``, high once one is above ``target``.

    Nothing is taken from a node whose loads are all below the target.
    """

    low: Mapping[str, float]
    target: Mapping[str, float]


@dataclass(slots=True)
class Utilization:
    """A node with its loads in percent (they go down as pods are taken) and the pods that may be taken from it."""

    spec: NodeSpec
    loads: dict[str, float]
    pods: Sequence[Task]


def limits_of(params: Mapping[str, object]) -> Limits:
    """The limits that a strategy's parameters state: 100 for what they leave out.

    A map that is none ends the reading, as in the reference: a target after it keeps its 100.
    """
    found: list[dict[str, float]] = [dict.fromkeys(COUNTED, 100.0) for _ in ("thresholds", "targetThresholds")]
    for limits, key in zip(found, ("thresholds", "targetThresholds"), strict=True):
        given = params.get(key, {})
        if not isinstance(given, dict):
            break
        limits.update({name: float(given[name]) for name in COUNTED if _whole(given.get(name))})
    return Limits(*found)


def doubts_of(params: Mapping[str, object]) -> Iterator[str | Complaint]:
    """What of a strategy's parameters will be ignored."""
    for key, value in params.items():
        if key in ("thresholds", "targetThresholds"):
            yield from _doubts_of_limits(key, value)
        elif key in WITHOUT_EFFECT:
            yield Complaint("tolerated", f"parameter {key} of {NAME} has no effect, as in the reference")
        else:
            yield f"parameter {key} of {NAME} is not known"


def _doubts_of_limits(key: str, value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{key} of {NAME} must map cpu and memory to percentages"
        return
    for name, percent in value.items():
        if name in COUNTED and not _whole(percent):
            yield f"{key}.{name} of {NAME} is {percent!r}, not a whole number of percent"
        elif name not in COUNTED and name not in PODS_TOO:
            yield f"{key}.{name} of {NAME} is neither cpu nor memory"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def grouped(nodes: Iterable[Utilization], limits: Limits) -> tuple[list[Utilization], list[Utilization]]:
    """The low nodes and the high ones; a cordoned node is never low."""
    low: list[Utilization] = []
    high: list[Utilization] = []
    for node in nodes:
        if not node.spec.unschedulable and all(node.loads[name] < limits.low[name] for name in COUNTED):
            low.append(node)
        elif any(node.loads[name] > limits.target[name] for name in COUNTED):
            high.append(node)
    return low, high


def victims(low: Sequence[Utilization], high: Sequence[Utilization], limits: Limits, exactly: bool) -> list[Task]:
    """The pods to take: from the most loaded node on, less important ones first.

    Taking ends at a node when its loads are below the target, and everywhere when what the low nodes can bear of a
    resource is used up; with ``exactly`` (the reference's way) only when it is zero to the byte.
    """
    room = {name: sum(_room(node, name, limits) for node in low) for name in COUNTED}
    taken: list[Task] = []
    for node in sorted(high, key=lambda node: -(node.loads[CPU] + node.loads[MEMORY])):
        for task in sorted(node.pods, key=least_important_first):
            if not _goes_on(node, room, limits, exactly):
                break
            _move(task, node, room)
            taken.append(task)
    return taken


def least_important_first(task: Task) -> tuple[bool, int, int, int, str]:
    """Sort key: pods without a priority, lower priorities, lower quality of service; then older ones."""
    priority = task.spec.priority
    return priority is not None, priority or 0, qos_of(task.spec), task.created, task.uid


def _room(node: Utilization, name: str, limits: Limits) -> int:
    size = amount_of(node.spec.allocatable or node.spec.capacity, name)
    return int(limits.target[name] * size * 0.01) - int(node.loads[name] * size * 0.01)


def _goes_on(node: Utilization, room: Mapping[str, int], limits: Limits, exactly: bool) -> bool:
    loaded = any(node.loads[name] >= limits.target[name] for name in COUNTED)
    used_up = any(left == 0 if exactly else left <= 0 for left in room.values())
    return loaded and not used_up


def _move(task: Task, node: Utilization, room: dict[str, int]) -> None:
    asked = {CPU: int(task.request.milli_cpu), MEMORY: int(task.request.memory)}
    for name in COUNTED:
        size = amount_of(node.spec.capacity, name)
        room[name] -= asked[name]
        node.loads[name] -= asked[name] * 100 / size if size else math.inf


def amount_of(offered: Mapping[str, Amount], name: str) -> int:
    """Thousandths of cpu, or bytes of memory."""
    return quantity.milli(offered.get(name, 0)) if name == CPU else quantity.whole(offered.get(name, 0))
