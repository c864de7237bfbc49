"""Devices that pods claim, and volumes."""

from __future__ import annotations

from typing import Any

from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.recorded.drawing import Dice
from tests.recorded.pieces import RANKS, classes, configuration
from tests.recorded.scene import Scene, Turn
from tests.support.device_objects import (
    ZONE,
    device,
    device_claim,
    device_class,
    exactly,
    object_of,
    resource_slice,
    storage_class,
    volume,
    volume_claim,
)

ACTIONS = ("enqueue, allocate, backfill", "allocate, preempt, backfill", "allocate, reclaim, preempt")
PLUGINS = (
    "predicates; nodeorder",
    "predicates; capacity",
    "predicates, arguments: {volumebinding.weight: 5, volumebinding.bindTimeoutSeconds: 60}; proportion; binpack",
    ("predicates, arguments: {volumebinding.weight: 3, volumebinding.shape: [{utilization: 0, score: 10}, "
     "{utilization: 100, score: 0}]}; capacity"),
    "predicates, arguments: {predicate.VolumeZoneEnable: false, predicate.NodeVolumeLimitsEnable: false}; proportion",
)  # fmt: skip


MODEL = 'device.attributes["gpu.example.com"].model == "{}"'
LARGE = 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("50Gi"))'


def parted() -> Manifest:
    """A card that can be had whole or in parts."""
    parts = {"gpu-0": ("80Gi", "7"), "half-1": ("40Gi", "4"), "half-2": ("40Gi", "3"), "small-3": ("10Gi", "1")}
    uses = {
        name: [{"counterSet": "card", "counters": {"memory": {"value": memory}, "slices": {"value": slices}}}]
        for name, (memory, slices) in parts.items()
    }
    found = resource_slice("n0", *(device(name, consumesCounters=use) for name, use in uses.items()), nodeName="n0")
    total = {"memory": {"value": "80Gi"}, "slices": {"value": "7"}}
    found["spec"]["sharedCounters"] = [{"name": "card", "counters": total}]
    return found


def slices(dice: Dice, names: list[str]) -> list[Manifest]:
    """The devices of the nodes."""
    found = [device_class(), device_class("any", "true"), device_class("large", LARGE)]
    for name in names:
        if dice.one_in(6):
            continue
        cards = [device(f"gpu-{i}", dice.one(("a", "b")), dice.one(("40Gi", "80Gi"))) for i in range(dice.number(1, 4))]
        found.append(resource_slice(name, *cards) if name != "n0" or dice.one_in(2) else parted())
    return found


def wanted_devices(dice: Dice, name: str, names: list[str]) -> Manifest:
    """A claim of one or more devices, which it may have already."""
    what = dice.number(0, 6)
    if what == 0:
        return device_claim(name, exactly(MODEL.format(dice.one(("a", "b")))))
    if what == 1:
        return device_claim(name, exactly(count=dice.number(1, 3)))
    if what == 2:
        best = {"name": "best", **exactly(MODEL.format("b"))}
        return device_claim(name, {"name": "r", "firstAvailable": [best, {"name": "next", **exactly()}]})
    if what == 3:
        return device_claim(name, exactly(of="large"), exactly())
    if what == 4:
        constraint = {"constraints": [{"matchAttribute": "gpu.example.com/model", "requests": []}]}
        return device_claim(name, exactly(count=2), devices_spec=constraint)
    if what == 5:
        return device_claim(name, on=dice.one(names), devices=("gpu-0",))
    return device_claim(name)


def disks(dice: Dice, names: list[str]) -> list[Manifest]:
    """Classes and volumes."""
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    found = [storage_class("local"), storage_class("made", "csi.example.com", allowedTopologies=allowed),
             storage_class("free", "csi.example.com")]  # fmt: skip
    for number in range(dice.number(2, 5)):
        on = dice.one((*names, *names, ""))
        found.append(volume(f"v{number}", on, dice.one(("1Gi", "5Gi", "9Gi")), zone=dice.one(("", "", "z0", "z1"))))
    if dice.one_in(3):
        spec: dict[str, Any] = {"storageCapacity": True}
        found.append(object_of("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec=spec))
    if dice.one_in(3):
        drivers = [{"name": "csi.example.com", "nodeID": "x", "topologyKeys": [], "allocatable": {"count": 1}}]
        found.append(object_of("storage.k8s.io/v1", "CSINode", dice.one(names), spec={"drivers": drivers}))
    return found


def claiming(dice: Dice, name: str, names: list[str]) -> list[Manifest]:
    """A gang, its claims of devices and volumes."""
    rank, count = dice.one(("low", "high")), dice.number(1, 3)
    both, found = dice.number(0, 2), list[Manifest]()
    together = dice.one_in(4)
    for number in range(count):
        own = f"{name}-{number}"
        spec: dict[str, Any] = {}
        if both != 1:
            claim = f"{name}-all-gpu" if together else f"{own}-gpu"
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
            if not together or number == 0:
                found.append(wanted_devices(dice, claim, names))
        if both != 0:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"{own}-data"}}]
            bound = "v0" if dice.one_in(8) else ""
            sort = dice.one(("local", "local", "made", "free"))
            if not dice.one_in(12):
                found.append(volume_claim(f"{own}-data", sort, dice.one(("1Gi", "4Gi")), bound,
                                          dice.one(("ReadWriteOnce", "ReadWriteOncePod"))))  # fmt: skip
        found.append(pod(own, group=name, cpu=1, priority=RANKS[rank], priorityClassName=rank, **spec))
    least = dice.one((1, count, count))
    return [pod_group(name, min_member=least, priorityClassName=rank, created=dice.number(1, 3)), *found]


def claimed(dice: Dice, name: str) -> Scene:
    """Nodes with devices and volumes; gangs that claim them come one after the other."""
    names = [f"n{number}" for number in range(dice.number(1, 4))]
    nodes = [node(each, cpu=dice.one((2, 4)), labels={ZONE: f"z{number}"}) for number, each in enumerate(names)]
    limited: dict[str, Any] = {"capability": {"cpu": "8", "deviceclass/gpu": "3"}} if dice.one_in(2) else {}
    objects = [*classes(), queue("default", **limited), *nodes, *slices(dice, names), *disks(dice, names)]
    gangs = [claiming(dice, new, names) for new in "stuvw"[: dice.number(2, 5)]]
    first = dice.number(1, 2)
    turns = [Turn(0, [*objects, *(each for gang in gangs[:first] for each in gang)])]
    for gang in gangs[first:]:
        gone = [dice.one([each for each in dice.one(gangs[:first]) if each["kind"] == "Pod"])] if dice.one_in(3) else []
        turns.append(Turn(dice.one((5, 400)), gang, gone))
    turns.append(Turn(10))
    text = configuration(dice.one(ACTIONS), "priority; gang", dice.one(PLUGINS))
    return Scene(name, text, turns, compat=dice.one_in(8), lingers=dice.one_in(2), bound=dice.one_in(3))
