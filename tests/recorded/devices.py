"""Cards and chips that pods share, in every way in which deviceshare gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.recorded.drawing import Dice
from tests.recorded.pieces import RANKS, changed, classes, configuration
from tests.recorded.scene import Scene, Turn
from tests.support.device_objects import SETTINGS

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
V = "volcano.sh/vgpu-"
CHIP = "huawei.com/Ascend910B3"
CORE = "huawei.com/npu-core"
ACTIONS = ("enqueue, allocate, backfill", "allocate, preempt, backfill", "allocate, gangpreempt", "allocate, backfill")


def shared_memory(dice: Dice, name: str) -> list[Manifest]:
    """A node whose cards are shared by memory, or given whole."""
    count = dice.number(1, 4)
    notes = {"volcano.sh/gpu-unhealthy-ids": dice.one(("0", "1", "0,2"))} if dice.one_in(4) else {}
    resources = {MEMORY: 8000 * count, NUMBER: count}
    return [node(name, cpu=64, memory="64Gi", resources=resources, annotations=notes)]


def virtual(dice: Dice, name: str) -> list[Manifest]:
    """A node whose cards are vGPUs, in some nodes as MIG instances."""
    count, mode = dice.number(1, 3), dice.one(("hami-core", "hami-core", "mig"))
    size, model = (40960, "NVIDIA-A100") if mode == "mig" else (dice.one((8000, 16000)), dice.one(("T4", "V100")))
    healthy = ["true" if not dice.one_in(6) else "false" for _ in range(count)]
    register = "".join(f"GPU-{name}-{i},{dice.number(2, 10)},{size},{model},{healthy[i]},{mode}:" for i in range(count))
    offer = {f"{V}number": 10 * count, f"{V}memory": size * count, f"{V}cores": 100 * count}
    notes = {"volcano.sh/node-vgpu-register": register}
    return [node(name, cpu=dice.one((4, 16)), memory="64Gi", resources=offer, annotations=notes)]


def chips(dice: Dice, name: str) -> list[Manifest]:
    """A node with NPUs as HAMi registers them."""
    count = dice.number(1, 4)
    register = [
        {"id": f"{name}-npu-{i}", "index": i, "count": dice.one((3, 7)), "devmem": 65536,
         "devcore": dice.one((20, 100)),
         "type": "Ascend910B3", "health": not dice.one_in(6), "networkid": i // 2}
        for i in range(count)
    ]  # fmt: skip
    notes = {"hami.io/node-register-Ascend910B3": json.dumps(register)}
    if dice.one_in(3):
        notes["hami-vnpu-core"] = "true"
    return [node(name, cpu=32, memory="64Gi", resources={CHIP: 7 * count}, annotations=notes)]


def config_map(name: str, namespace: str, key: str, text: str) -> Manifest:
    """A ConfigMap of one key, as MindCluster labels them."""
    meta = {"name": name, "namespace": namespace, "labels": {"mx-consumer-cim": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: text}}


def reported(dice: Dice, name: str) -> list[Manifest]:
    """A node with chips that ConfigMaps report on."""
    count = dice.number(1, 3)
    free = ",".join(f"Ascend310P-{i}" for i in range(count) if not dice.one_in(6))
    lists = {"huawei.com/Ascend310P": free, "huawei.com/Ascend310P-Unhealthy": dice.one(("", "", "Ascend310P-0"))}
    report = {"DeviceInfo": {"DeviceList": lists, "UpdateTime": 1}, "CheckCode": "x"}
    labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    found = [
        node(name, cpu=64, memory="64Gi", resources={CORE: 8 * count}, labels=labels),
        config_map(f"mindx-dl-deviceinfo-{name}", "kube-system", "DeviceInfoCfg", json.dumps(report)),
    ]
    if dice.one_in(2):
        said = {"NodeInfo": {"FaultDevList": [], "NodeStatus": dice.one(("Healthy", "UnHealthy"))}, "CheckCode": "x"}
        found.append(config_map(f"mindx-dl-nodeinfo-{name}", "mindx-dl", "NodeInfo", json.dumps(said)))
    return found


def memory_wanted(dice: Dice) -> tuple[dict[str, Any], dict[str, str]]:
    """Memory of a card."""
    return {MEMORY: str(dice.one((1000, 3000, 5000, 8000)))}, {}


def cards_wanted(dice: Dice) -> tuple[dict[str, Any], dict[str, str]]:
    """Whole cards."""
    return {NUMBER: str(dice.number(1, 3))}, {}


def share_wanted(dice: Dice) -> tuple[dict[str, Any], dict[str, str]]:
    """A share of vGPUs."""
    found = {f"{V}number": str(dice.one((1, 1, 2)))}
    if not dice.one_in(4):
        found[f"{V}memory"] = str(dice.one((1000, 5000, 9000, 15000)))
    elif dice.one_in(2):
        found[f"{V}memory-percentage"] = str(dice.one((25, 50)))
    if dice.one_in(2):
        found[f"{V}cores"] = str(dice.one((10, 60, 100)))
    notes = {}
    if dice.one_in(5):
        notes["nvidia.com/use-gputype"] = dice.one(("T4", "A100"))
    if dice.one_in(6):
        notes["volcano.sh/vgpu-mode"] = dice.one(("mig", "hami-core"))
    return found, notes


def chip_wanted(dice: Dice) -> tuple[dict[str, Any], dict[str, str]]:
    """Parts of NPUs, or whole ones."""
    found = {CHIP: str(dice.one((1, 1, 2)))}
    if not dice.one_in(3):
        found[f"{CHIP}-memory"] = str(dice.one((10000, 16384, 30000)))
    notes = {}
    if dice.one_in(3):
        notes["huawei.com/vnpu-mode"] = "hami-core"
        found[f"{CHIP}-core"] = str(dice.one((5, 20, 60)))
    return found, notes


def cores_wanted(dice: Dice) -> tuple[dict[str, Any], dict[str, str]]:
    """Cores of a chip that ConfigMaps report on."""
    return {CORE: str(dice.one((1, 2, 4, 8, 16)))}, {}


Offers = Callable[[Dice, str], list[Manifest]]
Wants = Callable[[Dice], tuple[dict[str, Any], dict[str, str]]]
KINDS: tuple[tuple[str, Offers, Wants], ...] = (
    ("deviceshare.GPUSharingEnable: true", shared_memory, memory_wanted),
    ("deviceshare.GPUNumberEnable: true", shared_memory, cards_wanted),
    ("deviceshare.VGPUEnable: true", virtual, share_wanted),
    ("deviceshare.VGPUEnable: true", virtual, share_wanted),
    ("deviceshare.AscendHAMiVNPUEnable: true", chips, chip_wanted),
    ("deviceshare.AscendMindClusterVNPUEnable: true", reported, cores_wanted),
)
MORE = (
    "",
    ", deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 10",
    ", deviceshare.SchedulePolicy: spread, deviceshare.ScheduleWeight: 3",
    ", deviceshare.NodeLockEnable: true",
    ", deviceshare.ScheduleWeight: 2",
)
OTHERS = (
    "proportion", "nodeorder", "fragmentation", "fragmentation, arguments: {fragmentation.policy: best-fit}",
    "capacity; binpack", "fragmentation, arguments: {fragmentation.typical: 60, fragmentation.weight: 3}",
)  # fmt: skip


def asking(dice: Dice, name: str, wants: Wants) -> list[Manifest]:
    """A gang whose pods want devices."""
    rank, count = dice.one(("low", "high", "mid")), dice.number(1, 4)
    limits, notes = wants(dice)
    found = []
    for number in range(count):
        if dice.one_in(3):
            limits, notes = wants(dice)
        labels = {"app": name}
        if wants is cores_wanted:
            labels = {"vnpu-level": dice.one(("high", "low")), "vnpu-dvpp": dice.one(("yes", "no", "null"))}
        made = pod(f"{name}-{number}", group=name, cpu=dice.one((1, 2)), requests=limits, annotations=notes,
                   priority=RANKS[rank], priorityClassName=rank, labels=labels)  # fmt: skip
        if dice.one_in(6):
            twin = {**made["spec"]["containers"][0], "name": "second"}
            made = changed(made, spec={"containers": [*made["spec"]["containers"], twin]})
        found.append(made)
    least = dice.one((1, count, count))
    return [pod_group(name, min_member=least, priorityClassName=rank, created=dice.number(1, 3)), *found]


def carded(dice: Dice, name: str) -> Scene:
    """Nodes with devices; gangs that want them come one after the other, and some pods end."""
    argument, offers, wants = dice.one(KINDS)
    nodes = [each for number in range(dice.number(1, 4)) for each in offers(dice, f"n{number}")]
    known = [config_map("volcano-vgpu-device-config", "kube-system", "device-config.yaml", SETTINGS)]
    objects = [*classes(), queue("default"), *nodes, *(known if not dice.one_in(4) else [])]
    gangs = [asking(dice, new, wants) for new in "stuvwx"[: dice.number(3, 6)]]
    first = dice.number(1, 3)
    turns = [Turn(0, [*objects, *(each for gang in gangs[:first] for each in gang)])]
    for gang in gangs[first:]:
        gone = [dice.one([each for each in dice.one(gangs[:first]) if each["kind"] == "Pod"])] if dice.one_in(3) else []
        turns.append(Turn(dice.one((5, 400)), gang, gone))
    turns.append(Turn(10))
    tier = f"predicates; deviceshare, arguments: {{{argument}{dice.one(MORE)}}}; {dice.one(OTHERS)}"
    text = configuration(dice.one(ACTIONS), "priority; gang; conformance", tier)
    return Scene(name, text, turns, compat=dice.one_in(6), lingers=dice.one_in(2), bound=dice.one_in(3))
