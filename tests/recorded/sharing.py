"""Queues that share a cluster: side by side, in a tree, or along the paths of their annotations."""

from __future__ import annotations

from typing import Any

from stromboli.model.names import GPU, HIERARCHY, HIERARCHY_WEIGHTS, OVERCOMMIT_FACTOR
from stromboli.testing.builders import Manifest, queue
from tests.recorded.crowds import budget, turn
from tests.recorded.drawing import Dice
from tests.recorded.pieces import SIZES, changed, classes, configuration, gang, machines, residents
from tests.recorded.scene import Scene, Turn

ACTIONS = (
    "enqueue, allocate, reclaim, backfill",
    "enqueue, allocate, gangreclaim, preempt",
    "enqueue, reclaim, allocate, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, allocate, backfill",
)
GPU_SIZES = (*SIZES, {"cpu": 1, "requests": {GPU: 1}}, {"cpu": "500m", "requests": {GPU: 2}})


def amount(dice: Dice, most: int) -> dict[str, str]:
    """So much of a few resources."""
    found = {"cpu": str(dice.number(1, most))}
    if not dice.one_in(3):
        found["memory"] = f"{dice.number(1, 2 * most)}Gi"
    if dice.one_in(3):
        found[GPU] = str(dice.number(0, 4))
    if dice.one_in(8):
        found["pods"] = str(dice.number(1, 9))
    return found


def limits(dice: Dice, scale: int = 6) -> dict[str, Any]:
    """Fields of a queue that may have so many cores, more or less."""
    spec: dict[str, Any] = {"priority": dice.one((0, 0, 0, 1, 5))}
    if not dice.one_in(3):
        spec["deserved"] = {"cpu": str(dice.number(1, scale)), "memory": f"{2 * dice.number(1, scale)}Gi"}
        if dice.one_in(3):
            spec["deserved"][GPU] = str(dice.number(0, 2))
    if dice.one_in(3):
        spec["capability"] = {"cpu": str(dice.number(scale, 2 * scale))}
        if dice.one_in(3):
            spec["capability"] |= amount(dice, 2 * scale)
    if dice.one_in(4):
        spec["guarantee"] = {"resource": {"cpu": str(dice.number(1, 1 + scale // 6))}}
    if dice.one_in(5):
        spec["reclaimable"] = False
    if dice.one_in(5):
        spec["dequeueStrategy"] = dice.one(("fifo", "traverse"))
    return spec


def side_by_side(dice: Dice) -> tuple[list[Manifest], tuple[str, ...]]:
    """Two to four queues, perhaps one of them closed."""
    homes = ("q1", "q2", "q3", "default")[: dice.number(2, 4)]
    found = []
    for home in homes:
        notes = {OVERCOMMIT_FACTOR: dice.one(("1.5", "3", "x"))} if dice.one_in(4) else {}
        state = dice.one(("Closed", "Closing", "Unknown")) if dice.one_in(8) else "Open"
        found.append(queue(home, weight=dice.number(1, 4), annotations=notes, state=state, created=dice.number(0, 3),
                           **limits(dice)))  # fmt: skip
    return found, homes


def tree(dice: Dice) -> tuple[list[Manifest], tuple[str, ...]]:
    """Queues of three levels."""
    found = [queue("root"), queue("default", parent="root")]
    homes = []
    for above in ("x", "y")[: dice.number(1, 2)]:
        deserved = {"cpu": str(dice.number(9, 14)), "memory": "64Gi", GPU: "8"}
        found.append(
            queue(above, parent="root", weight=dice.number(1, 3), **{**limits(dice, 14), "deserved": deserved})
        )
        for number in range(dice.number(1, 2)):
            name = f"{above}{number}"
            found.append(queue(name, parent=above, weight=dice.number(1, 3), created=number, **limits(dice, 5)))
            homes.append(name)
            if dice.one_in(4):
                found.append(queue(f"{name}z", parent=name, **limits(dice, 1)))
                homes[-1] = f"{name}z"
    if dice.one_in(3):
        homes.append("default")
    return found, tuple(homes)


def paths(dice: Dice) -> tuple[list[Manifest], tuple[str, ...]]:
    """Queues with paths of two or three levels in their annotations."""
    found, homes = [], []
    for number in range(dice.number(2, 4)):
        name = f"p{number}"
        above, below = dice.one(("eng", "sci")), dice.one((f"/{name}", f"/team/{name}"))
        path = f"root/{above}{below}"
        weights = "/".join(str(dice.number(1, 4)) for _ in path.split("/"))
        found.append(queue(name, annotations={HIERARCHY: path, HIERARCHY_WEIGHTS: weights}, weight=dice.number(1, 2)))
        homes.append(name)
    return found, tuple(homes)


def quota(dice: Dice) -> Manifest:
    """A quota of the namespace."""
    hard = {"cpu": str(dice.number(4, 12)), "memory": "12Gi", "pods": str(dice.number(6, 20))}
    metadata = {"name": "quota", "namespace": "default"}
    used = {"cpu": str(dice.number(0, 6)), "pods": "2"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard},
            "status": {"hard": hard, "used": used}}  # fmt: skip


def shared(dice: Dice, name: str, kind: int, tiers: tuple[str, ...]) -> Scene:
    """Queues of a kind, work that runs in them, and work that comes."""
    queues, homes = (side_by_side, tree, paths)[kind](dice)
    nodes = machines(dice, 2, 5, gpus=True)
    there = residents(dice, nodes, homes, "abcde"[: dice.number(2, 5)], full=dice.one((10, 9, 7, 4)))
    objects = [*classes(), *queues, *nodes, *there]
    if dice.one_in(2):
        objects.append(quota(dice))
    if dice.one_in(4):
        objects.append(budget("keeps", 1, {"app": "b"}))
    for new in "st"[: dice.number(1, 2)]:
        objects += gated(dice, gang(dice, new, homes, sizes=GPU_SIZES, group=weighty(dice)))
    turns = [Turn(0, objects)]
    for new in "uvw"[: dice.number(1, 3)]:
        if dice.one_in(4):
            one = dice.one([each for each in queues if each["metadata"]["name"] != "root"])
            altered = changed(one, spec=limits(dice), status={"state": dice.one(("Open", "Closed", "Closing"))})
            turns.append(Turn(dice.one((5, 60)), [altered, *gang(dice, new, homes, sizes=GPU_SIZES)]))
        else:
            turns.append(turn(dice, new, homes, nodes, there))
    more = dice.one(("", "", "configurations: [{name: allocate, arguments: {reservation-timeout: 30s}}]"))
    gates = dice.one(("", "SchedulingGatesQueueAdmission=true,QueueScopedOvercommit=true"))
    return Scene(name, configuration(dice.one(ACTIONS), *tiers, more=more), turns, compat=dice.one_in(10),
                 lingers=dice.one_in(2), bound=dice.one_in(5), gates=gates)  # fmt: skip


def weighty(dice: Dice) -> dict[str, Any]:
    """What a group says that it needs."""
    return {"minResources": amount(dice, 8)} if not dice.one_in(3) else {}


def gated(dice: Dice, made: list[Manifest]) -> list[Manifest]:
    """The gang, whose pods may ask the scheduler itself to let them through."""
    if not dice.one_in(4):
        return made
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    return [
        changed(each, metadata={"annotations": {**each["metadata"]["annotations"], gate: "true"}},
                spec={"schedulingGates": [{"name": gate}] if not dice.one_in(4) else []})
        if each["kind"] == "Pod" else each
        for each in made
    ]  # fmt: skip


def shares(dice: Dice, name: str) -> Scene:
    """Queues side by side, by proportion or capacity."""
    kind = dice.one(("proportion", "capacity", "capacity, arguments: {gate-timeout: 1m}"))
    first = dice.one(("priority; gang; conformance", "gang; conformance", "priority; gang; conformance; pdb"))
    second = dice.one((
        f"overcommit; drf; predicates; {kind}; nodeorder",
        f"predicates; {kind}; resourcequota; overcommit; binpack",
        f"overcommit, arguments: {{overcommit-factor: 2.0, max-queue-overcommit-factor: 1.5}}; predicates; {kind}",
    ))  # fmt: skip
    return shared(dice, name, 0, (first, second))


def trees(dice: Dice, name: str) -> Scene:
    """Queues in a tree."""
    level = dice.number(0, 2)
    kind = f"capacity, enableHierarchy: true, arguments: {{ancestorReclaimLevel: {level}}}"
    first = dice.one(("priority; gang; conformance", "gang; conformance; pdb"))
    return shared(dice, name, 1, (first, f"predicates; {kind}; {dice.one(('nodeorder', 'drf', 'overcommit'))}"))


def branches(dice: Dice, name: str) -> Scene:
    """Queues along the paths of drf."""
    first = dice.one(("priority; gang", "gang"))
    return shared(dice, name, 2, (first, "drf, enableHierarchy: true; predicates; nodeorder"))
