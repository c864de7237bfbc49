"""Pods that are particular about their nodes and their neighbours."""

from __future__ import annotations

from typing import Any

from stromboli.model.names import GPU, HOSTNAME, TEMPLATE_UID, TOPOLOGY_ZONE
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.recorded.crowds import turn
from tests.recorded.drawing import Dice
from tests.recorded.pieces import APPS, classes, configuration, gang
from tests.recorded.scene import Scene, Turn

DURING = "DuringSchedulingIgnoredDuringExecution"
IMAGES = {"app:1": 400 * 2**20, "tool:latest": 90 * 2**20, "base": 2**30}
TIERS = (
    ("priority; gang; conformance", "predicates; nodeorder; proportion"),
    ("gang", ("predicates, arguments: {predicate.CacheEnable: true}; binpack, arguments: {binpack.weight: 4, "
     "binpack.cpu: 2, binpack.memory: 1, binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 5}")),
    ("gang; priority", ("predicates, arguments: {predicate.ProportionalEnable: true, "
     "predicate.resources: nvidia.com/gpu, predicate.resources.nvidia.com/gpu.cpu: 1, "
     "predicate.resources.nvidia.com/gpu.memory: 1}; nodeorder, arguments: {leastrequested.weight: 0, "
     "mostrequested.weight: 3, podaffinity.weight: 5, imagelocality.weight: 4, podtopologyspread.weight: 7}")),
    ("gang", ("predicates; nodeorder, arguments: {nodeaffinity.weight: 9, tainttoleration.weight: 1, "
     "balancedresource.weight: 4}; binpack; drf")),
    ("gang; priority", ("predicates, arguments: {predicate.PodAffinityEnable: false, "
     "predicate.TaintTolerationEnable: false, predicate.NodePortsEnable: false}; nodeorder")),
    ("gang; priority", ("predicates, arguments: {predicate.NodeAffinityEnable: false, "
     "predicate.PodTopologySpreadEnable: false}; nodeorder; binpack")),
)  # fmt: skip
ACTIONS = (
    "enqueue, allocate, backfill",
    "allocate, preempt, backfill",
    "allocate, preempt, reclaim, backfill",
    "enqueue, allocate, gangpreempt, backfill",
)


def selector(dice: Dice) -> dict[str, Any]:
    """A selector of pods."""
    key, values = dice.one(("app", "tier")), dice.one((["a"], ["b"], ["a", "b"]))
    if dice.one_in(2):
        return {"matchLabels": {"app": dice.one(APPS)}}
    operator = dice.one(("In", "NotIn", "Exists", "DoesNotExist"))
    values = values if operator in ("In", "NotIn") else []
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def pod_term(dice: Dice) -> dict[str, Any]:
    """A term about other pods."""
    found: dict[str, Any] = {"topologyKey": dice.one((TOPOLOGY_ZONE, HOSTNAME, "rack"))}
    found["labelSelector"] = selector(dice)
    if dice.one_in(4):
        found["namespaceSelector"] = dice.one(({}, {"matchLabels": {"team": "red"}}))
    if dice.one_in(4):
        found["namespaces"] = dice.one((["other"], ["default", "other"]))
    if dice.one_in(6):
        found["matchLabelKeys"] = ["app"]
    return found


def node_term(dice: Dice) -> dict[str, Any]:
    """A term about nodes."""
    operator = dice.one(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    key = dice.one((TOPOLOGY_ZONE, "disk", "rack", "size"))
    values = [dice.one(("east", "ssd", "r1"))]
    values = {"Exists": [], "DoesNotExist": [], "Gt": ["3"], "Lt": ["5"]}.get(operator, values)
    if dice.one_in(6):
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [dice.one(("n0", "n1"))]}]}
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def affinity(dice: Dice) -> dict[str, Any]:
    """One or two kinds of affinity."""
    found: dict[str, Any] = {}
    for kind in dice.some(("nodeAffinity", "podAffinity", "podAntiAffinity", "podAntiAffinity"), 2):
        make = node_term if kind == "nodeAffinity" else pod_term
        if dice.one_in(2):
            terms: Any = [make(dice) for _ in range(dice.number(1, 2))]
            found[kind] = {f"required{DURING}": {"nodeSelectorTerms": terms} if make is node_term else terms}
        else:
            inner = "preference" if make is node_term else "podAffinityTerm"
            some = [{"weight": dice.one((1, 10, 100)), inner: make(dice)} for _ in range(dice.number(1, 2))]
            found[kind] = {f"preferred{DURING}": some}
    return found


def spread(dice: Dice) -> dict[str, Any]:
    """A spread constraint."""
    when = dice.one(("DoNotSchedule", "ScheduleAnyway"))
    found: dict[str, Any] = {"topologyKey": dice.one((TOPOLOGY_ZONE, HOSTNAME, "rack")), "whenUnsatisfiable": when,
                             "maxSkew": dice.one((1, 1, 2)), "labelSelector": selector(dice)}  # fmt: skip
    if dice.one_in(4) and when == "DoNotSchedule":
        found["minDomains"] = dice.number(1, 3)
    if dice.one_in(4):
        found["nodeTaintsPolicy"] = "Honor"
    if dice.one_in(4):
        found["nodeAffinityPolicy"] = "Ignore"
    if dice.one_in(5):
        found["matchLabelKeys"] = ["app"]
    return found


def toleration(dice: Dice) -> dict[str, Any]:
    """A toleration."""
    key, effect = dice.one(("dedicated", "spot", "")), dice.one(("", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    if key and dice.one_in(2):
        return {"key": key, "operator": "Equal", "value": dice.one(("", "a")), "effect": effect}
    return {"key": key, "operator": "Exists", "effect": effect}


def wants(dice: Dice) -> dict[str, Any]:
    """What equal pods say of nodes and neighbours."""
    found: dict[str, Any] = {}
    if dice.one_in(2):
        found["affinity"] = affinity(dice)
    if dice.one_in(3):
        found["topologySpreadConstraints"] = [spread(dice) for _ in range(dice.number(1, 2))]
    if dice.one_in(3):
        found["tolerations"] = [toleration(dice) for _ in range(dice.number(1, 2))]
    if dice.one_in(4):
        found["nodeSelector"] = dice.one(({TOPOLOGY_ZONE: "east"}, {"disk": "ssd"}, {"disk": "ssd", "rack": "r1"}))
    if dice.one_in(4):
        found["container"] = dice.one((
            {"ports": [{"hostPort": 80}]}, {"image": "app:1"}, {"image": "tool"}, {"image": "base"},
            {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}, {"hostPort": 81}]},
        ))  # fmt: skip
        found["container"] = {**found["container"], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    if dice.one_in(6):
        found["requests"] = {GPU: dice.number(1, 2)}
    if dice.one_in(8):
        found["annotations"] = {TEMPLATE_UID: "t"}
    if dice.one_in(8):
        found["labels"] = {"app": dice.one(APPS), "tier": dice.one(("a", "front"))}
    return found


def places(dice: Dice) -> list[Manifest]:
    """Three to six nodes, some of them tainted, cordoned, not ready or full of images."""
    found = []
    for number in range(dice.number(3, 6)):
        labels = {TOPOLOGY_ZONE: dice.one(("east", "west", "south")), "disk": dice.one(("ssd", "hdd")),
                  "rack": dice.one(("r1", "r2")), "size": dice.one(("2", "4", "9"))}  # fmt: skip
        for key in dice.some(tuple(labels), 2):
            del labels[key]
        spec: dict[str, Any] = {}
        if dice.one_in(4):
            effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            spec["taints"] = [{"key": dice.one(("dedicated", "spot")), "value": dice.one(("", "a")),
                               "effect": dice.one(effects)} for _ in range(dice.number(1, 2))]  # fmt: skip
        if dice.one_in(12):
            spec["unschedulable"] = True
        images = {name: IMAGES[name] for name in dice.some(tuple(IMAGES), 2)}
        made = node(f"n{number}", cpu=dice.one((2, 4, 8)), memory=f"{dice.one((4, 8, 16))}Gi", labels=labels,
                    pods=dice.one((3, 20, 110)), images=images,
                    resources={GPU: dice.one((1, 2, 4))} if dice.one_in(2) else {}, **spec)  # fmt: skip
        if dice.one_in(15):
            made["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        found.append(made)
    return found


def particular(dice: Dice, name: str) -> Scene:
    """Pods with affinities, ports, tolerations, spread; some are there, some come."""
    nodes = places(dice)
    there: list[Manifest] = []
    for number in range(dice.number(2, 6)):
        want = {key: value for key, value in wants(dice).items() if key not in ("requests", "labels", "annotations")}
        there.append(pod(f"r-{number}", group="r", on=dice.one(nodes)["metadata"]["name"], priority=1,
                         labels={"app": dice.one(APPS)}, deleting=dice.one_in(6), created=number, **want))  # fmt: skip
    objects = [*classes(), queue("default"), *nodes, *there, pod_group("r", min_member=0, phase="Running")]
    objects += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "red"}}}]
    if dice.one_in(3):
        objects.append(pod("far", group="", namespace="other", on="n0", labels={"app": "a"}))
    for new in "stu"[: dice.number(1, 3)]:
        objects += gang(dice, new, ("default",), want=wants(dice))
    turns = [Turn(0, objects)]
    for new in "vwx"[: dice.number(1, 2)]:
        if dice.one_in(2):
            turns.append(Turn(dice.one((1, 30)), gang(dice, new, ("default",), want=wants(dice))))
        else:
            turns.append(turn(dice, new, ("default",), nodes, there))
    more = dice.one(("", "", "", "tie-break: seeded"))
    return Scene(name, configuration(dice.one(ACTIONS), *dice.one(TIERS), more=more), turns, compat=dice.one_in(8),
                 lingers=dice.one_in(2), bound=dice.one_in(4))  # fmt: skip
