"""Full clusters at which gangs arrive that others are evicted for, in many configurations."""

from __future__ import annotations

from typing import Any

from stromboli.testing.builders import Manifest, queue
from tests.recorded.drawing import Dice
from tests.recorded.pieces import (
    bare,
    changed,
    classes,
    configuration,
    ended,
    gang,
    machines,
    names_of,
    residents,
)
from tests.recorded.scene import Scene, Turn

TIERS: tuple[tuple[str, ...], ...] = (
    ("priority; gang; conformance", "overcommit; drf; predicates; proportion; nodeorder"),
    ("priority; gang", "drf; predicates; proportion; binpack", "conformance; pdb"),
    ("gang; conformance", "drf; predicates; proportion"),
    ("priority; gang; conformance; pdb", "predicates; capacity; nodeorder"),
    ("sla, arguments: {sla-waiting-time: 2m}; priority; gang, enableJobStarving: false; conformance",
     "predicates; proportion; nodeorder; resourcequota"),
    ("priority; gang; conformance; cdp", "predicates; capacity; drf; binpack; nodeorder"),
)  # fmt: skip
ACTIONS = (
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, reclaim, preempt, allocate, backfill",
    "enqueue, allocate, gangpreempt, gangreclaim, backfill",
    "allocate, preempt, backfill",
    "enqueue, gangreclaim, gangpreempt, allocate",
    "allocate, reclaim, preempt",
    "enqueue, gangpreempt, allocate, gangreclaim",
)
MORE = (
    "",
    "configurations: [{name: allocate, arguments: {reservation-timeout: 60s, reservation-limit: 2m}}]",
    (
        "configurations: [{name: preempt, arguments: {minimal-victims: false, patience: 0}}, "
        "{name: reclaim, arguments: {minimal-victims: false, patience: 2}}]"
    ),
    (
        "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true, "
        "minCandidateNodesPercentage: 40, maxCandidateNodesAbsolute: 2}}]"
    ),
    "tie-break: seeded",
)


def crowded(dice: Dice, name: str) -> Scene:
    """Nodes full of small work in two queues or three; gangs come, pods end, time passes."""
    nodes = machines(dice, 2, 5)
    homes = ("q1", "q2", "q3")[: dice.number(1, 3)]
    objects = [*classes(), *nodes]
    for home in homes:
        spec: dict[str, Any] = {"reclaimable": not dice.one_in(5), "priority": dice.one((0, 0, 1))}
        if dice.one_in(3):
            spec["capability"] = {"cpu": str(dice.number(4, 12)), "memory": "32Gi"}
        if dice.one_in(3):
            spec["deserved"] = {"cpu": str(dice.number(1, 8)), "memory": "8Gi"}
        if dice.one_in(4):
            spec["guarantee"] = {"resource": {"cpu": str(dice.number(1, 2))}}
        objects.append(queue(home, weight=dice.number(1, 3), **spec))
    there = residents(dice, nodes, homes, "abcd"[: dice.number(2, 4)], full=dice.one((10, 10, 10, 8, 6)))
    if dice.one_in(3):
        objects.append(budget("keeps", dice.one((0, 1, 2)), {"app": "a"}))
    turns = [Turn(0, [*objects, *there, *gang(dice, "t", homes, ranks=("high", "mid"))])]
    for new in "uvw"[: dice.number(1, 3)]:
        turns.append(turn(dice, new, homes, nodes, there))
    return Scene(name, configuration(dice.one(ACTIONS), *dice.one(TIERS), more=dice.one(MORE)), turns,
                 compat=dice.one_in(8), lingers=not dice.one_in(3), bound=dice.one_in(5))  # fmt: skip


def turn(dice: Dice, new: str, homes: tuple[str, ...], nodes: list[Manifest], there: list[Manifest]) -> Turn:
    """Time passes, and something else happens."""
    seconds = dice.one((1, 10, 10, 40, 130, 400))
    what = dice.number(0, 7)
    pods = [each for each in there if each["kind"] == "Pod"]
    if what < 3:
        return Turn(seconds, gang(dice, new, homes))
    if what == 3 and pods:
        return Turn(seconds, [], [dice.one(pods)])
    if what == 4:
        return Turn(seconds, [*(ended(each) for each in dice.some(pods, 2)), *bare(dice, new)])
    if what == 5:
        return Turn(seconds, [changed(dice.one(nodes), spec={"unschedulable": True}), *gang(dice, new, homes)])
    if what == 6 and len(nodes) > 2:
        return Turn(seconds, gang(dice, new, homes), [dice.one(nodes)])
    assert names_of(nodes)
    return Turn(seconds)


def budget(name: str, allowed: int, labels: dict[str, str]) -> Manifest:
    """A disruption budget that allows so many."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": {}},
    }
