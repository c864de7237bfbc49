"""Crowded clusters in which some have to make room for others, and take their time to do so.

All of a workload's dice are thrown before it begins, from one seed: it is the same whatever the scheduler does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stromboli.cluster.body import Body
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, START_AFTER, STOP_AFTER
from stromboli.testing.builders import node, pod, pod_group, queue

CORES: Final = 8
"""Of each node."""
PORT: Final = 29500
"""On which trainers listen."""
CLASSES: Final = {"low": 10, "mid": 100, "high": 1000}

CONFIGURATION: Final = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf, enablePreemptable: false}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
"""
"""What a new installation begins with, and the two actions that evict."""


@dataclass(frozen=True)
class Workload:
    """One kind of crowd.

    ``fills`` are the queues whose work fills the cluster, ``asks`` those of the gangs that come, of class ``urgent``,
    to take their room; ``queues`` gives weights.  Evicted pods end within ``grace`` seconds, one and the other
    included; the share ``hangs`` of them overstays that.  ``between`` are mean seconds between two such gangs,
    ``leaves`` those between two departures of a node, which comes back.  ``trainers`` take a whole node each and listen
    on the same port of it, as pods on the host's network do.
    """

    name: str
    about: str
    grace: tuple[int, int] = (5, 300)
    hangs: float = 0.05
    nodes: int = 8
    between: float = 120.0
    leaves: float = 900.0
    queues: Mapping[str, int] = field(default_factory=lambda: {"work": 1})
    fills: Sequence[str] = ("work",)
    asks: Sequence[str] = ("work",)
    urgent: str = "high"
    trainers: bool = False

    def __hash__(self) -> int:
        return hash(self.name)


_LENT: Final[dict[str, Any]] = {
    "queues": {"lent": 1, "a": 1, "b": 2}, "fills": ("lent",), "asks": ("a", "b"), "urgent": "low"
}  # fmt: skip

WORKLOADS: Final = (
    Workload("preempt, crowd", "gangs of a high class in one queue, among small pods of lower ones"),
    Workload("reclaim, crowd", "two queues want back what a third has borrowed", **_LENT),
    Workload(
        "preempt, trainers", "as the first; every pod takes a node and the port on it", between=240.0, trainers=True
    ),
    Workload("reclaim, trainers", "as the second, with such pods", between=240.0, trainers=True, **_LENT),
)


def staying(workload: Workload) -> Workload:
    """The same workload on nodes that never leave, and otherwise with the same dice."""
    return replace(workload, leaves=1e9)


@dataclass(frozen=True)
class Happening:
    """Something that happens at second ``when``: objects come, in this order, or node ``leaves``."""

    when: float
    come: tuple[Body, ...] = ()
    leaves: str = ""


def history(workload: Workload, seed: int, seconds: float) -> list[Happening]:
    """All that happens in a workload within so many seconds, in order."""
    made = _Dice(workload, random.Random(f"{workload.name} {seed}"), seconds)
    found = [Happening(0.0, tuple(made.beginning())), *made.gangs(), *made.others(), *made.departures()]
    return sorted(found, key=lambda happening: happening.when)


class _Dice:
    """Throws the dice of one workload."""

    def __init__(self, workload: Workload, dice: random.Random, seconds: float) -> None:
        self.workload, self.dice, self.seconds = workload, dice, seconds

    def beginning(self) -> Iterator[Body]:
        """Nodes, queues, classes, and work for a little more than all there is."""
        workload, dice = self.workload, self.dice
        for name, value in CLASSES.items():
            yield {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        yield queue("root")
        for name, weight in workload.queues.items():
            yield queue(name, weight=weight, reclaimable=True)
        for number in range(workload.nodes):
            yield machine(number)
        cores, number = 0, 0
        while cores < 1.15 * workload.nodes * CORES:
            size, each = self._sizes((1, 1, 2, 2, 4))
            yield from self._work(f"web-{number}", dice.choice(workload.fills), "low", size, each, "ReplicaSet")
            cores, number = cores + size * each, number + 1

    def gangs(self) -> Iterator[Happening]:
        """Gangs that take room."""
        workload, dice = self.workload, self.dice
        for number, when in enumerate(self._times(workload.between)):
            size, each = self._sizes((1, 2, 2, 4))
            queue_name, runs = dice.choice(workload.asks), dice.randint(180, 600)
            objects = self._work(f"gang-{number}", queue_name, workload.urgent, size, each, "Job", runs=runs)
            yield Happening(when, tuple(objects))

    def others(self) -> Iterator[Happening]:
        """Small work of the classes below, which takes whatever it finds."""
        workload, dice = self.workload, self.dice
        for number, when in enumerate(self._times(workload.between / 2)):
            name, runs = dice.choice(("low", "mid") if workload.urgent == "high" else ("low",)), dice.randint(60, 300)
            objects = self._work(
                f"job-{number}", dice.choice(workload.fills), name, dice.randint(1, 2), 1, "Job", runs=runs
            )
            yield Happening(when, tuple(objects))

    def departures(self) -> Iterator[Happening]:
        """Nodes that leave, each back after a while."""
        for when in self._times(self.workload.leaves):
            number = self.dice.randrange(self.workload.nodes)
            yield Happening(when, leaves=str(machine(number)["metadata"]["name"]))
            yield Happening(when + self.dice.randint(60, 180), (machine(number),))

    def _sizes(self, cores: Sequence[int]) -> tuple[int, int]:
        """How many pods a piece of work has, and how many cores each."""
        return (
            (self.dice.randint(1, 3), CORES)
            if self.workload.trainers
            else (self.dice.randint(2, 5), self.dice.choice(cores))
        )

    def _times(self, between: float) -> Iterator[float]:
        """Moments, in whole seconds, of something that happens without memory."""
        when = self.dice.expovariate(1 / between)
        while when < self.seconds:
            yield float(round(when))
            when += self.dice.expovariate(1 / between)

    def _work(
        self, name: str, queue_name: str, importance: str, size: int, cores: int, owner: str,
        runs: int = 0,
    ) -> Iterator[Body]:  # fmt: skip
        """A PodGroup and its pods, a gang if it ends by itself.

        It states no minResources: a job that does not fit into a full cluster would not be admitted, and evict no pod.
        """
        least = size if runs else 1
        yield pod_group(name, min_member=least, queue=queue_name, phase="Pending", priorityClassName=importance)
        for number in range(size):
            yield self._pod(f"{name}-{number}", name, importance, cores, owner, runs)

    def _pod(self, name: str, group: str, importance: str, cores: int, owner: str, runs: int) -> Body:
        dice, (least, most) = self.dice, self.workload.grace
        lives = {START_AFTER: "2s", STOP_AFTER: f"{most}s"} | ({RUN_FOR: f"{runs}s"} if runs else {})
        if dice.random() < self.workload.hangs:
            lives[OVERSTAY] = f"{dice.randint(30, 1200)}s"
        found = pod(
            name, group=group, cpu=cores, memory=f"{cores}Gi", annotations=lives, schedulerName="volcano",
            priorityClassName=importance, priority=CLASSES[importance],
            terminationGracePeriodSeconds=dice.randint(least, most),
            container={"ports": [{"hostPort": PORT, "containerPort": PORT}]} if cores == CORES else None,
        )  # fmt: skip
        metadata = found["metadata"]
        metadata["ownerReferences"] = [{"kind": owner, "name": group, "uid": f"uid-of-{group}", "controller": True}]
        if owner == "ReplicaSet":
            metadata["generateName"] = f"{group}-"
        return found


def machine(number: int) -> Body:
    """Node ``number``, with a memory that is never the bottleneck."""
    return node(f"node-{number:02d}", cpu=CORES, memory=f"{4 * CORES}Gi")
