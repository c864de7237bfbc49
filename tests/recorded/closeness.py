"""Gangs that must lie close together, in whole or in parts."""

from __future__ import annotations

from typing import Any

from stromboli.model.names import TOPOLOGY_GROUP, TOPOLOGY_GROUP_POLICY, TOPOLOGY_GROUP_TIER
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group, queue
from tests.recorded.drawing import Dice
from tests.recorded.pieces import RANKS, changed, classes, configuration, residents
from tests.recorded.scene import Scene, Turn

ACTIONS = (
    "enqueue, allocate, gangpreempt, gangreclaim, backfill",
    "enqueue, allocate, gangpreempt, backfill",
    "allocate, gangreclaim",
    "enqueue, allocate, backfill",
    "allocate, preempt, reclaim, backfill",
)
ARGUMENTS = (
    "",
    ", arguments: {weight: 10, hypernode.keep-whole.enable: true, hypernode.topology-groups.enable: true}",
    (
        ", arguments: {hypernode.topology-groups.enable: true, hypernode.binpack.cpu: 3, "
        "hypernode.gradient.evict.max-hypernodes: 2}"
    ),
    (
        ", arguments: {weight: 2, hypernode.binpack.resources: nvidia.com/gpu, "
        "hypernode.binpack.resources.nvidia.com/gpu: 3, hypernode.binpack.normal-pod.fading: 0}"
    ),
    ", arguments: {hypernode.binpack.normal-pod.enable: false, hypernode.binpack.memory: 0}",
    ", arguments: {weight: 0}",
)  # fmt: skip
TIERS = (
    ("priority; gang; conformance", "predicates; proportion; nodeorder; network-topology-aware{}"),
    ("gang; priority", "drf; predicates; capacity; binpack; network-topology-aware{}"),
    ("priority; gang", "predicates; network-topology-aware{}; nodeorder; conformance"),
)


def fabric(dice: Dice) -> tuple[list[Manifest], list[Manifest]]:
    """Nodes below switches below a spine or two; the nodes, and the hypernodes."""
    nodes: list[Manifest] = []
    switches: list[Manifest] = []
    for switch in range(dice.number(2, 4)):
        inside = []
        for _ in range(dice.number(1, 3)):
            name = f"n{len(nodes)}"
            inside.append(name)
            nodes.append(node(name, cpu=dice.one((2, 4, 4)), memory="16Gi", labels={"rack": f"r{switch}"}))
        found = dice.one((
            [member("Node", exactMatch={"name": name}) for name in inside],
            [member("Node", exactMatch={"name": name}) for name in inside],
            [member("Node", regexMatch={"pattern": f"^({'|'.join(inside)})$"})],
            [member("Node", labelMatch={"matchLabels": {"rack": f"r{switch}"}})],
        ))  # fmt: skip
        switches.append(hyper_node(f"s{switch}", 1, *found, tier_name=dice.one(("", "leaf"))))
    above = [f"s{number}" for number in range(len(switches))]
    cut = dice.number(1, len(above))
    tops = [hyper_node("t0", 2, below=above[:cut]), hyper_node("t1", 2, below=above[cut:])]
    chosen = tops[: 2 if above[cut:] else 1]
    if dice.one_in(3) and len(chosen) == 2:
        chosen.append(hyper_node("u0", 3, below=("t0", "t1")))
    return nodes, [*switches, *chosen[: len(chosen) if not dice.one_in(4) else 0]]


def closeness(dice: Dice) -> dict[str, Any]:
    """How close together."""
    if dice.one_in(8):
        return {"mode": "hard", "highestTierName": "leaf"}
    return {"mode": dice.one(("hard", "hard", "soft")), "highestTierAllowed": dice.one((1, 1, 2, 3))}


def close_gang(dice: Dice, name: str, homes: tuple[str, ...], group: dict[str, str], rank: str = "") -> list[Manifest]:
    """A gang with a topology, or parts with one."""
    rank, count, parts = rank or dice.one(("low", "mid", "high", "high")), dice.number(2, 6), dice.one((1, 2, 3))
    spec: dict[str, Any] = {"priorityClassName": rank}
    notes: dict[str, str] = {}
    if not dice.one_in(4):
        spec["networkTopology"] = closeness(dice)
    if dice.one_in(3):
        part: dict[str, Any] = {"name": "part", "matchLabelKeys": ["part"], "subGroupSize": dice.number(1, 3)}
        part["minSubGroups"] = dice.number(0, 2)
        if dice.one_in(2):
            part["networkTopology"] = closeness(dice)
        if dice.one_in(4):
            part["labelSelector"] = {"matchLabels": {"app": "a"}}
        spec["subGroupPolicy"] = [part]
    if dice.one_in(2):
        notes = group
    if dice.one_in(4):
        spec["minTaskMember"] = {"w": dice.number(1, count)}
    pods = [
        pod(f"{name}-{number}", group=name, cpu=dice.one((1, 2)), role="w", priority=RANKS[rank],
            priorityClassName=rank, labels={"app": "a", "part": f"p{number % parts}"})
        for number in range(count)
    ]  # fmt: skip
    least = dice.one((count, count, max(1, count - 1), 1, 0))
    return [pod_group(name, min_member=least, queue=dice.one(homes), annotations=notes, created=dice.number(1, 3),
                      phase=dice.one(("Pending", "Inqueue")), **spec), *pods]  # fmt: skip


def close(dice: Dice, name: str) -> Scene:
    """Switches, partly full; gangs that want domains; nodes that go, switches that change."""
    nodes, domains = fabric(dice)
    homes = ("q1", "q2")[: dice.number(1, 2)]
    objects = [*classes(), *nodes, *domains]
    objects += [queue(home, weight=dice.number(1, 2), deserved={"cpu": str(dice.number(2, 12))}) for home in homes]
    there = residents(dice, nodes, homes, "ab", full=dice.one((10, 7, 5, 2, 0)))
    group = {TOPOLOGY_GROUP: "llama", TOPOLOGY_GROUP_POLICY: dice.one(("same", "apart", "pack", "spread")),
             TOPOLOGY_GROUP_TIER: dice.one(("1", "1", "2", "leaf"))}  # fmt: skip
    objects += [*there, *close_gang(dice, "s", homes, group), *close_gang(dice, "t", homes, group)]
    turns = [Turn(0, objects)]
    for new in "uvw"[: dice.number(1, 3)]:
        what = dice.number(0, 4)
        news = close_gang(dice, new, homes, group, "high")
        if what == 0:
            turns.append(Turn(10, news, [dice.one(nodes)]))
        elif what == 1:
            turns.append(Turn(10, [changed(dice.one(nodes), spec={"unschedulable": True})]))
        elif what == 2 and domains:
            turns.append(Turn(10, news, [dice.one(domains)]))
        elif what == 3 and (pods := [each for each in there if each["kind"] == "Pod"]):
            turns.append(Turn(70, news, dice.some(pods, 3)))
        else:
            turns.append(Turn(dice.one((5, 400)), news))
    argument = dice.one(ARGUMENTS)
    tiers = [tier.replace("{}", argument) for tier in dice.one(TIERS)]
    return Scene(name, configuration(dice.one(ACTIONS), *tiers), turns, compat=dice.one_in(10),
                 lingers=dice.one_in(2), bound=dice.one_in(4))  # fmt: skip
