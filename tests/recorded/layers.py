"""Crowds of equal pods, reservations of earlier times, and nodes of which only some are looked at or ours."""

from __future__ import annotations

from typing import Any

from stromboli.framework.config.sampling import Sampling
from stromboli.model.names import GPU, HOSTNAME, TOPOLOGY_ZONE
from stromboli.model.reservation import Held, stated
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.recorded.crowds import ACTIONS, MORE, TIERS, budget, turn
from tests.recorded.drawing import Dice
from tests.recorded.pieces import RANKS, changed, classes, configuration, gang, machines, names_of, residents
from tests.recorded.scene import Scene, Turn

EVICTING = (
    "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, preempt",
    "allocate, reclaim",
    "reclaim, preempt, allocate",
    "allocate, gangpreempt, gangreclaim",
    "allocate, backfill",
)
IN_RUNS: tuple[tuple[str, ...], ...] = (
    ("priority; gang; conformance", "predicates; proportion; nodeorder"),
    ("priority; gang; conformance", "predicates; capacity; nodeorder"),
)
"""With these nothing is told of single evictions."""
LAYERED_TIERS: tuple[tuple[str, ...], ...] = (
    *TIERS[:4],
    *IN_RUNS,
    *IN_RUNS,
    *IN_RUNS,
    ("priority; gang; conformance", "predicates; proportion; binpack"),
    (
        "priority; gang",
        "predicates; capacity; nodeorder, arguments: {podaffinity.weight: 5, podtopologyspread.weight: 5}",
    ),
)


def equal_pods(dice: Dice, name: str, home: str, count: int, rank: str) -> list[Manifest]:
    """A gang of equal pods, but for one now and then."""
    size = dice.one((1, 1, 1, 1, 2, "500m"))
    one: dict[str, Any] = {"cpu": size, "priority": RANKS[rank], "labels": {"app": "x"}}
    like = {"topologyKey": dice.one((HOSTNAME, TOPOLOGY_ZONE)), "labelSelector": {"matchLabels": {"app": "x"}}}
    if dice.one_in(2):
        pass
    elif dice.one_in(3):
        kind = dice.one(("podAntiAffinity", "podAffinity", "podAntiAffinity"))
        one["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [like]}}
    elif dice.one_in(4):
        when = dice.one(("DoNotSchedule", "ScheduleAnyway"))
        one["topologySpreadConstraints"] = [{**like, "whenUnsatisfiable": when, "maxSkew": dice.number(1, 2)}]
    elif dice.one_in(6):
        one["requests"] = {GPU: 1}
    elif dice.one_in(6):
        port = {"ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        one["container"] = port
    odd = dice.number(0, 3 * count)
    pods = [
        pod(f"{name}-{number}", group=name, priorityClassName=rank, **{**one, **({"cpu": 2} if number == odd else {})})
        for number in range(count)
    ]
    least = dice.one((1, count // 2, count, count))
    return [pod_group(name, queue=home, min_member=least, priorityClassName=rank, created=dice.number(1, 3)), *pods]


def layered(dice: Dice, name: str) -> Scene:
    """Full nodes, each with a pod of every resident group, and gangs of equal pods."""
    count, layers, full = dice.number(2, 7), dice.number(2, 6), dice.one((True, True, True, False))
    spec: dict[str, Any] = {"cpu": layers, "memory": "64Gi", "resources": {GPU: 2}}
    nodes = [node(f"n{i}", labels={TOPOLOGY_ZONE: "ewz"[i % dice.one((2, 3))]}, **spec) for i in range(count)]
    home = dice.one(("q1", "q1", "q2"))
    objects = [*classes(), *nodes, queue("q1", weight=1, deserved={"cpu": "1" if home == "q2" else "99"}),
               queue("q2", weight=dice.one((3, 50)), deserved={"cpu": "99", "memory": "640Gi"})]  # fmt: skip
    there: list[Manifest] = []
    for layer in range(layers if full else layers // 2):
        least = dice.one((0, 0, 0, 1, count))
        objects.append(pod_group(f"r{layer}", queue="q1", min_member=least, phase="Running", priorityClassName="low"))
        for number in range(count):
            one: dict[str, Any] = {"priority": 1, "priorityClassName": "low", "labels": {"app": "resident"}}
            if dice.one_in(15):
                one |= dice.one(({"priority": 50}, {"deleting": True}, {"labels": {}}, {"cpu": "500m"}))
            there.append(pod(f"r{layer}-{number}", group=f"r{layer}", on=f"n{number}", created=layer, **one))
    if dice.one_in(4):
        objects.append(budget("keeps", dice.number(0, count), {"app": "resident"}))
    room = count * layers
    objects += [*there, *equal_pods(dice, "x", home, dice.number(2, max(3, room // 2)), "high")]
    turns = [Turn(0, objects)]
    for new in "yz"[: dice.number(1, 2)]:
        rank = dice.one(("high", "mid"))
        turns.append(Turn(dice.one((5, 90)), equal_pods(dice, new, dice.one(("q1", "q2")), dice.number(1, 9), rank)))
    turns.append(Turn(10, [], dice.some(there, 2)))
    text = configuration(dice.one(EVICTING), *dice.one(LAYERED_TIERS), more=dice.one(MORE))
    return Scene(name, text, turns, compat=dice.one_in(12), lingers=dice.one_in(2), bound=dice.one_in(5))


def holding(dice: Dice, each: Manifest, names: list[str]) -> Manifest:
    """The pod, which holds room on a node since earlier, perhaps one that is no more."""
    held = Held(dice.one((*names, *names, *names, "gone")), dice.one_in(2))
    return changed(each, metadata={"annotations": {**each["metadata"]["annotations"], **stated(held)}})


def held(dice: Dice, name: str) -> Scene:
    """Pods that wait hold room on some node since earlier; meanwhile nodes, queues and groups have changed."""
    nodes = machines(dice, 2, 4, gpus=True)
    names = names_of(nodes)
    homes = ("q1", "q2")
    objects = [*classes(), *nodes, queue("q1", reclaimable=not dice.one_in(4)),
               queue("q2", weight=2, state=dice.one(("Open", "Open", "Open", "Closed")))]  # fmt: skip
    there = residents(dice, nodes, homes, "ab", full=dice.one((10, 8, 5, 5)))
    objects += there
    for new in "stu"[: dice.number(1, 3)]:
        for each in gang(dice, new, homes, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
                         if dice.one_in(12) else {}):  # fmt: skip
            waits = each["kind"] == "Pod" and not dice.one_in(3)
            objects.append(holding(dice, each, names) if waits else each)
    if dice.one_in(4):
        objects.append(holding(dice, pod("alone", cpu=1), names))
    turns = [Turn(0, objects)]
    for new in "vwx"[: dice.number(2, 3)]:
        turns.append(turn(dice, new, homes, nodes, there))
    more = dice.one((
        "", "configurations: [{name: allocate, arguments: {reservation-timeout: 30s}}]",
        "configurations: [{name: allocate, arguments: {reservation-timeout: 5m, reservation-limit: 1m}}]",
    ))  # fmt: skip
    text = configuration(dice.one(ACTIONS), *dice.one(TIERS[:4]), more=more)
    return Scene(name, text, turns, lingers=not dice.one_in(3), bound=dice.one_in(4), compat=dice.one_in(15))


def divided(dice: Dice, name: str) -> Scene:
    """Nodes of which a part is looked at, or a part is ours; a queue is missing, a plugin is unknown."""
    nodes = machines(dice, 4, 9)
    homes = ("default", "q1", "nowhere" if dice.one_in(3) else "q1")
    there = residents(dice, nodes, homes[:2], "abc", full=dice.one((10, 6, 3)))
    objects = [*classes(), *nodes, queue("default"), queue("q1", weight=3), *there, *gang(dice, "s", homes)]
    turns = [Turn(0, objects)]
    for new in "tuv"[: dice.number(1, 3)]:
        turns.append(turn(dice, new, homes, nodes, there) if dice.one_in(2) else Turn(10, gang(dice, new, homes)))
    own = tuple(dice.some(names_of(nodes), 6))
    shard = (dice.one(("hard", "soft")), own) if dice.one_in(2) else ("", ())
    sampling = Sampling(dice.number(1, 3), 5, dice.one((0, 30, 50))) if not shard[0] or dice.one_in(4) else None
    text = configuration(dice.one(ACTIONS), *dice.one(TIERS), more=dice.one(MORE))
    return Scene(name, text, turns, compat=dice.one_in(8), lingers=dice.one_in(2), sampling=sampling, shard=shard)
