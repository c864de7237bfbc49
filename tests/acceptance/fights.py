"""Clusters in which pods are evicted for others: the parts that tests of evicting actions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.framework.books.plan import Plan
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, conf

ONE_TIER = "conformance gang priority proportion"
PREEMPT, RECLAIM = conf(ONE_TIER, actions="preempt"), conf(ONE_TIER, actions="reclaim")
TOPOLOGY = "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true%s}}]"


def priority_class(name: str, value: int) -> Manifest:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


CLASSES = [priority_class("low", 1), priority_class("mid", 50), priority_class("high", 100)]


def running(
    name: str, count: int, on: str = "n1", *, priorities: Sequence[int] = (), least: int = 0, cls: str = "low",
    queue: str = "default", cpu: Any = 1, group: dict[str, Any] | None = None, **fields: Any,
) -> list[Manifest]:  # fmt: skip
    """A job that runs with so many pods on one node; ``priorities`` are its pods', ``group`` more of its PodGroup."""
    ranks: list[dict[str, Any]] = [{"priority": priority} for priority in priorities] or [{}] * count
    return [
        pod_group(name, min_member=least, queue=queue, phase="Running", priorityClassName=cls, **(group or {})),
        *(pod(f"{name}-{i}", group=name, on=on, cpu=cpu, memory=0, **ranks[i], **fields) for i in range(count)),
    ]


def waiting(
    name: str, count: int, *, least: int | None = None, cls: str = "high", queue: str = "default", cpu: Any = 1,
    group: dict[str, Any] | None = None, **fields: Any,
) -> list[Manifest]:  # fmt: skip
    """A job that waits with so many pods, all of them its minimum unless ``least`` says otherwise."""
    minimum = count if least is None else least
    return [
        pod_group(name, min_member=minimum, queue=queue, priorityClassName=cls, **(group or {})),
        *(pod(f"{name}-{i}", group=name, cpu=cpu, memory=0, **{"priority": 10, **fields}) for i in range(count)),
    ]


def fight(
    *objects: Sequence[Manifest],
    text: str = PREEMPT,
    cpu: Any = 4,
    nodes: int = 1,
    pods: int = 110,
    compat: bool = False,
) -> Bench:
    """``nodes`` nodes of so many cores, and the objects; ``compat`` as the reference does."""
    machines = [node(f"n{i + 1}", cpu=cpu, pods=pods) for i in range(nodes)]
    return Bench([*machines, *CLASSES, *(each for group in objects for each in group)], text, compat=compat)


def evicted(plan: Plan) -> list[str]:
    """The evicted pods, by their names, in order."""
    return [eviction.key.partition("/")[2] for eviction in plan.evictions]


def reserved(plan: Plan) -> dict[str, str]:
    """The node that each pod waits for, by the pods' names."""
    return {held.key.partition("/")[2]: held.node for held in plan.reservations}


def nominated(plan: Plan) -> dict[str, str]:
    """Nodes that are nominated for pods."""
    return {each.key.partition("/")[2]: each.nominated_node for each in plan.pod_conditions if each.nominated_node}
