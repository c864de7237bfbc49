"""Plugins that look at hours, loads, groups of nodes, NUMA nodes, roles and strategies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stromboli.model.names import (
    COOLDOWN_TIME,
    GPU,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    NODE_GROUP_NAME,
    NODE_GROUP_RESOURCE_LIMITS,
    NUMA_TOPOLOGY_POLICY,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    SLA_WAITING_TIME,
)
from stromboli.plugins.resource_strategy_fit.strategy import TYPE, WEIGHT
from stromboli.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.recorded.drawing import Dice
from tests.recorded.pieces import changed, classes, configuration, gang, machines, residents
from tests.recorded.scene import Scene, Turn

DURING = "DuringSchedulingIgnoredDuringExecution"


def scene_of(
    dice: Dice, name: str, text: str, objects: list[Manifest], news: Callable[[str], list[Manifest]],
    *, measured: list[str] | None = None, seconds: tuple[int, ...] = (10, 70, 400),
) -> Scene:  # fmt: skip
    """A cluster to which more comes turn by turn; nodes that are measured are so before each cycle."""
    turns = []
    for number in range(dice.number(2, 4)):
        loads = {each: (dice.one((5, 15, 40, 60, 75, 90)) + 0.5, float(dice.one((5, 30, 55, 85, 100))))
                 for each in measured or () if not dice.one_in(8)}  # fmt: skip
        made = news("stuv"[number]) if number == 0 or not dice.one_in(4) else []
        turns.append(Turn(dice.one(seconds) if number else 0, [*(objects if number == 0 else []), *made], [], loads))
    return Scene(name, text, turns, compat=dice.one_in(8), lingers=dice.one_in(2), bound=dice.one_in(4))


def measured(dice: Dice, name: str) -> Scene:
    """Nodes are loaded more than their pods say, or less."""
    nodes = machines(dice, 2, 5)
    there = residents(dice, nodes, ("default",), "abc", full=dice.one((9, 6, 3)))
    arguments = dice.one((
        "", ", arguments: {usage.weight: 5, cpu.weight: 2, memory.weight: 1, thresholds: {cpu: 60, mem: 70}}",
        (", arguments: {thresholds: {cpu: 80, mem: 90}, estimation: {request_ratio: 0.5, burst_ratio: 0.3, "
         "risk_threshold: 0.4, risk_factor: 1.5, be_cpu: 300m, be_mem: 100Mi}}"),
    ))  # fmt: skip
    moving = dice.one((
        "{thresholds: {cpu: 30, memory: 30}, targetThresholds: {cpu: 60, memory: 70}}",
        "{thresholds: {cpu: 20}, targetThresholds: {cpu: 45}, nodeFit: true}",
    ))  # fmt: skip
    plan = f"rescheduling, arguments: {{interval: 30s, strategies: [{{name: lowNodeUtilization, params: {moving}}}]}}"
    actions, tier = dice.one((
        ("enqueue, allocate, shuffle", f"usage{arguments}; {plan}"),
        ("enqueue, allocate, backfill", f"usage{arguments}; nodeorder"),
        ("shuffle, allocate", f"{plan}; usage{arguments}"),
        ("allocate, preempt, shuffle", f"{plan}; nodeorder"),
    ))  # fmt: skip
    text = configuration(actions, "priority; gang; conformance", f"predicates; {tier}",
                         more=dice.one(("", "metrics: {type: prometheus}")) if "usage" in tier else "")  # fmt: skip
    objects = [*classes(), queue("default"), *nodes, *there]
    names = [each["metadata"]["name"] for each in nodes]
    return scene_of(dice, name, text, objects, lambda new: gang(dice, new, ("default",)), measured=names)


def revocable(dice: Dice, name: str) -> Scene:
    """Nodes of zones that are open for some hours; cycles run a little before they close, and after."""
    hours = {"rz1": dice.one(("8:00-9:00", "0:00-0:00", "8:55-8:54", "8:00-23:00")), "rz2": "22:00-6:00"}
    found = ", ".join(f'tdm.revocable-zone.{zone}: "{when}"' for zone, when in hours.items())
    period = dice.one(("", ", tdm.evict.period: 30s"))
    nodes = [
        changed(each, metadata={"labels": {**each["metadata"]["labels"], REVOCABLE_ZONE: dice.one(("rz1", "rz2"))}})
        if dice.one_in(2) else each
        for each in machines(dice, 2, 5)
    ]  # fmt: skip
    objects = [*classes(), queue("default"), *nodes]
    for group in "ab":
        notes = {PREEMPTABLE: "true", REVOCABLE_ZONE: "*"}
        if dice.one_in(2):
            notes[dice.one((JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE))] = dice.one(("1", "50%", "2"))
        objects.append(pod_group(group, min_member=0, annotations=notes, phase="Running", created=dice.number(1, 3)))
        for number in range(dice.number(2, 9)):
            on = dice.one(nodes)["metadata"]["name"]
            zoned = notes if not dice.one_in(3) else {PREEMPTABLE: "true"}
            objects.append(pod(f"{group}-{number}", group=group, on=on, annotations=zoned, priority=1))

    def news(new: str) -> list[Manifest]:
        made = gang(dice, new, ("default",))
        notes = {REVOCABLE_ZONE: "*", PREEMPTABLE: dice.one(("true", "false"))} if dice.one_in(2) else {}
        return [changed(each, metadata={"annotations": {**each["metadata"]["annotations"], **notes}}) for each in made]

    text = configuration(
        dice.one(("enqueue, allocate, preempt, shuffle", "allocate, shuffle, backfill", "allocate, preempt")),
        f"tdm, arguments: {{{found}{period}}}; gang; priority", "predicates; nodeorder",
    )  # fmt: skip
    return scene_of(dice, name, text, objects, news, seconds=(31, 300, 3000))


def grouped(dice: Dice, name: str) -> Scene:
    """Queues that may use some groups of nodes, as much of them as they may."""
    nodes = []
    for number in range(dice.number(3, 6)):
        labels = {NODE_GROUP_NAME: dice.one("abc")} if not dice.one_in(5) else {}
        nodes.append(node(f"n{number}", cpu=dice.one((2, 4)), labels=labels))
    queues = [queue("root")]
    for home in ("q1", "q2"):
        affinity: dict[str, Any] = {}
        for side in dice.some(("nodeGroupAffinity", "nodeGroupAntiAffinity"), 2):
            affinity[side] = {
                f"required{DURING}": dice.some(("a", "b"), 2),
                f"preferred{DURING}": dice.some(("b", "c"), 2),
            }
        limits = {"a": {"cpu": str(dice.number(1, 4))}, "b": {"memory": "2Gi", "cpu": "3"}}
        notes = {NODE_GROUP_RESOURCE_LIMITS: dice.one((json.dumps(limits), "{"))} if dice.one_in(2) else {}
        parent: dict[str, Any] = {"parent": "q1"} if home == "q2" and dice.one_in(3) else {}
        more: dict[str, Any] = {"affinity": affinity} if affinity else {}
        queues.append(queue(home, annotations=notes, weight=dice.number(1, 2), **more, **parent))
    arguments = f"{{strict: {dice.one(('true', 'false'))}, enablePreferredOrder: {dice.one(('true', 'false'))}}}"
    plugin = f"nodegroup, enableHierarchy: {dice.one(('true', 'false'))}, arguments: {arguments}"
    actions = dice.one(("enqueue, allocate, backfill", "allocate, preempt, reclaim"))
    text = configuration(actions, "priority; gang", f"predicates; {plugin}; {dice.one(('proportion', 'nodeorder'))}")
    there = residents(dice, nodes, ("q1", "q2"), "ab", full=dice.one((0, 3, 8)))
    return scene_of(dice, name, text, [*classes(), *queues, *nodes, *there], lambda new: gang(dice, new, ("q1", "q2")))


def numa(name: str, policy: str, free: str, manager: str) -> Manifest:
    """What is known of a node of eight CPUs on two NUMA nodes."""
    spec = {
        "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
        "numares": {"cpu": {"allocatable": free, "capacity": 8}},
        "cpuDetail": {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu} for cpu in range(8)},
    }
    version = "nodeinfo.volcano.sh/v1alpha1"
    return {"apiVersion": version, "kind": "Numatopology", "metadata": {"name": name}, "spec": spec}


def pinned(dice: Dice, name: str) -> Scene:
    """Pods that have CPUs of their own, on nodes of several NUMA nodes."""
    policies = ("none", "best-effort", "restricted", "single-numa-node")
    nodes, objects = [], list[Manifest]()
    for number in range(dice.number(1, 4)):
        each = f"n{number}"
        nodes.append(node(each, cpu=8, memory="32Gi"))
        if not dice.one_in(8):
            free = dice.one(("0-7", "0-2,4-6", "0,4-7", "2-7"))
            objects.append(numa(each, dice.one(policies), free, dice.one(("static", "static", "none"))))
    plugin = f"numa-aware, arguments: {{weight: {dice.number(1, 5)}}}"
    actions, other = dice.one(("enqueue, allocate, backfill", "allocate, preempt")), dice.one(("nodeorder", "drf"))
    text = configuration(actions, "priority; gang", f"predicates; {plugin}; {other}")

    def news(new: str) -> list[Manifest]:
        count, pods = dice.number(1, 4), list[Manifest]()
        for number in range(count):
            cpus = dice.one(("1", "2", "3", "4", "6", "1500m"))
            amounts = {"cpu": cpus, "memory": "1Gi"}
            notes = {NUMA_TOPOLOGY_POLICY: dice.one(policies)} if not dice.one_in(3) else {}
            resources = {"requests": amounts, "limits": amounts} if not dice.one_in(5) else {"requests": amounts}
            container = {"resources": resources}
            made = pod(f"{new}-{number}", group=new, annotations=notes, container=container)
            if dice.one_in(4):
                second = {"name": "second", **container}
                made = changed(made, spec={"containers": [*made["spec"]["containers"], second]})
            pods.append(made)
        return [pod_group(new, min_member=dice.one((1, count))), *pods]

    return scene_of(dice, name, text, [*classes(), queue("default"), *nodes, *objects], news)


def strategic(dice: Dice, name: str) -> Scene:
    """Resources that are packed or spread each in its way, roles that like each other, jobs that have waited long."""
    nodes = machines(dice, 2, 5, gpus=True)
    there = residents(dice, nodes, ("default",), "ab", full=dice.one((7, 4, 2)))
    fit = dice.one((
        "",
        (", arguments: {resourceStrategyFitWeight: 3, resources: {nvidia.com/gpu: {type: MostAllocated, weight: 2}, "
         "cpu: {type: LeastAllocated, weight: 1}}}"),
        (", arguments: {resources: {'nvidia.com/*': {type: MostAllocated, weight: 4}}, sra: {enable: true, "
         "resources: nvidia.com/gpu, weight: 10, resourceWeight: {nvidia.com/gpu: 1}}, proportional: {enable: true, "
         "resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 1, nvidia.com/gpu.memory: 1}}}"),
    ))  # fmt: skip
    topology = f"task-topology, arguments: {{task-topology.weight: {dice.number(1, 9)}}}"
    second = dice.one((f"predicates; resource-strategy-fit{fit}; nodeorder", f"predicates; resource-strategy-fit{fit}",
                       "predicates; cdp; proportion"))  # fmt: skip
    text = configuration(
        dice.one(("enqueue, allocate, backfill", "enqueue, allocate, preempt", "allocate, backfill, reclaim")),
        f"sla, arguments: {{sla-waiting-time: {dice.one(('1m', '2h'))}}}; priority; gang; {topology}", second,
    )  # fmt: skip

    def news(new: str) -> list[Manifest]:
        notes = {}
        if not dice.one_in(3):
            notes = {AFFINITY: dice.one(("w,m", "w", "w,m;w")), ANTI_AFFINITY: dice.one(("m", "w", "w,m"))}
            for key in dice.some((AFFINITY, ANTI_AFFINITY), 1):
                del notes[key]
        if dice.one_in(3):
            notes[TASK_ORDER] = dice.one(("m,w", "w,m"))
        if dice.one_in(3):
            notes[SLA_WAITING_TIME] = dice.one(("30s", "1h", "never"))
        own = {}
        if dice.one_in(3):
            own = {TYPE: dice.one(("MostAllocated", "LeastAllocated", "x")), WEIGHT: f'{{"{GPU}": 2, "cpu": 1}}'}
        if dice.one_in(4):
            own[COOLDOWN_TIME] = dice.one(("30s", "1h"))
        sizes = ({"cpu": 1}, {"cpu": 1, "requests": {GPU: 1}}, {"cpu": "500m", "memory": "2Gi", "requests": {GPU: 2}})
        made = gang(dice, new, ("default",), sizes=sizes)
        group = changed(made[0], metadata={"annotations": notes, "creationTimestamp": "2025-10-09T08:52:00Z"})
        return [group, *(changed(each, metadata={"annotations": {**each["metadata"]["annotations"], **own}})
                         for each in made[1:])]  # fmt: skip

    return scene_of(dice, name, text, [*classes(), queue("default"), *nodes, *there], news)
