"""deviceshare: cards cut by MIG, Ascend NPUs with HAMi, and the ConfigMap that describes both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.cluster.decoding.devices import settings_of
from stromboli.cluster.kinds import ConfigMap
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.model import codec
from stromboli.model.resources.device_settings import Geometry, Instance
from stromboli.plugins.deviceshare.mig import Slot, slot_at, slot_for, split
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, messages
from tests.support.device_objects import SETTINGS

V = "volcano.sh/vgpu-"
CHIP = "huawei.com/Ascend"
CONF = """
actions: "allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.AscendHAMiVNPUEnable: true, POLICY}
"""


def conf(**arguments: object) -> str:
    return CONF.replace("POLICY", ", ".join(f"deviceshare.{key}: {value}" for key, value in arguments.items()))


def settings(text: str = SETTINGS) -> Manifest:
    metadata = {"name": "volcano-vgpu-device-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"device-config.yaml": text}}


def migs(name: str, cards: int = 1) -> Manifest:
    register = "".join(f"GPU-{i},7,40960,NVIDIA-A100,true,mig:" for i in range(cards))
    offer = {f"{V}number": 7 * cards, f"{V}memory": 40960 * cards, f"{V}cores": 100 * cards}
    return node(name, cpu=64, memory="64Gi", resources=offer, annotations={"volcano.sh/node-vgpu-register": register})


def npus(name: str, chip: str, *devices: dict[str, Any], **annotations: str) -> Manifest:
    register = [{"index": i, "count": 7, "devmem": 65536, "devcore": 20, **one} for i, one in enumerate(devices)]
    notes = {f"hami.io/node-register-{chip}": json.dumps(register), **annotations}
    return node(name, cpu=64, memory="64Gi", resources={f"huawei.com/{chip}": 7 * len(devices)}, annotations=notes)


def asking(name: str, amounts: dict[str, int], **annotations: str) -> Manifest:
    return pod(name, group=name, requests={key: str(value) for key, value in amounts.items()}, annotations=annotations)


def given(bench: Bench, key: str) -> dict[str, str]:
    return {bind.key.partition("/")[2]: bind.annotations[key] for bind in bench.plan.binds if key in bind.annotations}


# ---------------------------------------------------------------------- MIG

SMALL = Geometry("small", (Instance("1g", 10, 3),))
MIXED = Geometry("mixed", (Instance("2g", 20, 2), Instance("1g", 10, 1)))


@pytest.mark.parametrize(
    ("memory", "used", "found"),
    [
        (5, [], ("small", 0)),
        (10, [("small", 0)], ("small", 1)),
        (15, [], ("mixed", 0)),
        (15, [("small", 0)], None),
        (5, [("mixed", 0)], ("mixed", 2)),
        (5, [("mixed", 2)], ("mixed", 0)),
        (5, [("small", 0), ("small", 1), ("small", 2)], None),
        (21, [], None),
    ],
)
def test_which_instance_a_container_gets(
    memory: int, used: list[tuple[str, int]], found: tuple[str, int] | None
) -> None:
    slot = slot_for(memory, (SMALL, MIXED), used)
    assert (slot and slot[:2]) == found
    if slot is not None:
        assert slot_at((SMALL, MIXED), slot.group, slot.position) == slot
        assert split(slot.id_of("GPU-a")) == ("GPU-a", slot.group, slot.position)


def test_the_reference_gives_only_sizes_of_which_one_is_taken() -> None:
    assert slot_for(5, (SMALL, MIXED), [("mixed", 0)], started_only=True) == Slot("mixed", 1, 20)


@pytest.mark.parametrize(
    ("asked", "memory"),
    [
        ({f"{V}number": 1}, 10000),
        ({f"{V}number": 1, f"{V}memory": 4000}, 4000),
        ({f"{V}number": 1, f"{V}memory-percentage": 25}, 2500),
        ({f"{V}number": 1, f"{V}memory-percentage": 25, f"{V}memory": 4000}, 2500),
        ({f"{V}number": 1, f"{V}memory-percentage": 250}, 10000),
        ({f"{V}number": 1, f"{V}memory-percentage": 0}, 10000),
    ],
)
def test_a_share_of_a_cards_memory_is_an_amount_or_a_percentage(asked: dict[str, int], memory: int) -> None:
    offer = {f"{V}number": 10, f"{V}memory": 10000, f"{V}cores": 100, f"{V}memory-percentage": 1000}
    register = "GPU-0,10,10000,NVIDIA-V100,true,hami-core"
    shared = node("n", cpu=64, memory="64Gi", resources=offer, annotations={"volcano.sh/node-vgpu-register": register})
    bench = Bench([settings(), shared, asking("a", asked)], conf())
    bench.cycle()
    assert given(bench, f"{V}ids-new") == {"a": f"GPU-0,NVIDIA,{memory},0:"}


def test_a_geometry_is_made_and_freed() -> None:
    bench = Bench([settings(), migs("n"), *(asking(name, {f"{V}memory": 9000}) for name in "abcd")], conf())
    assert len(binds(bench.cycle())) == 3
    first = given(bench, f"{V}ids-new")
    assert sorted(first.values()) == [f"GPU-0[small-{i}],NVIDIA,9000,0:" for i in range(3)]
    assert "hami-vgpuDeviceSharing error" in messages(bench.plan, "default/d")[0]
    bench.tell(*(asking(name, {f"{V}memory": 9000}) for name in "abcd"), gone=True)
    bench.tell(pod_group("big"), asking("big", {f"{V}memory": 15000}))
    bench.cycle()
    assert given(bench, f"{V}ids-new") == {"big": "GPU-0[mixed-0],NVIDIA,15000,0:"}


def test_settings_are_read_again_when_they_change() -> None:
    bench = Bench([migs("n"), asking("a", {f"{V}memory": 1000})], conf())
    bench.cycle()
    assert given(bench, f"{V}ids-new") == {"a": "GPU-0,NVIDIA,1000,0:"}, "a type without geometries is shared"
    bench.tell(asking("a", {f"{V}memory": 1000}), gone=True)
    bench.tell(settings(), pod_group("b"), asking("b", {f"{V}memory": 1000}))
    bench.cycle()
    assert given(bench, f"{V}ids-new") == {"b": "GPU-0[small-0],NVIDIA,1000,0:"}


# ---------------------------------------------------------------------- NPU


def test_templates_are_rounded_up_to_and_told_to_the_device_plugin() -> None:
    objects = [settings(), npus("n", "Ascend910B3", {"id": "d0"})]
    bench = Bench([*objects, asking("a", {f"{CHIP}910B3": 1, f"{CHIP}910B3-memory": 10000})], conf())
    (bind,) = bench.cycle().binds
    assert bind.annotations["hami.io/Ascend910B3-devices-to-allocate"] == "d0,Ascend910B3,16384,0:;"
    assert json.loads(bind.annotations["huawei.com/Ascend910B3"]) == [{"UUID": "d0", "temp": "vir05"}]
    assert bind.annotations["hami.io/bind-phase"] == "allocating"
    for name, memory in (("b", 32768), ("c", 32768), ("d", 65537)):
        bench.tell(pod_group(name), asking(name, {f"{CHIP}910B3": 1, f"{CHIP}910B3-memory": memory}))
    assert binds(bench.cycle()) == {"b": "n"}, "16384 MB are left, and no device has 65537"


SIZES = [
    pytest.param(1, False, "vir05", 16384, id="the smallest template, in whatever order they are written"),
    pytest.param(16384, False, "vir05", 16384, id="all of a template"),
    pytest.param(16385, False, "vir10", 32768, id="one more than a template"),
    pytest.param(32769, False, "", 60000, id="more than any template is all that a device gives"),
    pytest.param(65536, False, "", 60000, id="all that a device has"),
    pytest.param(65537, False, None, 0, id="more than a device has"),
    pytest.param(65537, True, "vir05", 0, id="in compat mode more than a device has counts as nothing"),
]


@pytest.mark.parametrize(("memory", "compat", "template", "takes"), SIZES)
def test_how_much_of_a_device_an_amount_takes(memory: int, compat: bool, template: str | None, takes: int) -> None:
    """A device has 65536 MB, of which pods can be given 60000."""
    chip = settings(SETTINGS.replace("memoryAllocatable: 65536", "memoryAllocatable: 60000"))
    wanted = asking("p", {f"{CHIP}910B3": 1, f"{CHIP}910B3-memory": memory})
    bench = Bench([chip, npus("n", "Ascend910B3", {"id": "d0"}), wanted], conf(), compat=compat)
    assert bool(bench.cycle().binds) is (template is not None)
    ids = given(bench, "hami.io/Ascend910B3-devices-to-allocate").get("p")
    assert ids == (None if template is None else f"d0,Ascend910B3,{takes},0:;")
    told = [{"UUID": "d0", **({"temp": template} if template else {})}]
    assert [json.loads(text) for text in given(bench, "huawei.com/Ascend910B3").values()] == [told] * bool(ids)


def test_slices_by_software_need_a_node_that_makes_them() -> None:
    soft = {"huawei.com/vnpu-mode": "hami-core"}
    asked = {f"{CHIP}910B3": 1, f"{CHIP}910B3-memory": 1000, f"{CHIP}910B3-core": 30}
    hard, able = (npus(name, "Ascend910B3", {"id": f"{name}0"}) for name in ("a", "b"))
    able["metadata"]["annotations"]["hami-vnpu-core"] = "true"
    bench = Bench([settings(), hard, able, asking("p", asked, **soft)], conf())
    assert binds(bench.cycle()) == {"p": "b"}
    told = json.loads(given(bench, "huawei.com/Ascend910B3")["p"])
    assert told == [{"UUID": "b0", "memory": 1000, "core": 30}]


def test_several_devices_are_whole_and_near_each_other() -> None:
    devices = [{"id": f"d{i}", "custominfo": {"NetworkID": network}} for i, network in enumerate((0, 1, 1, 0, 1))]
    bench = Bench([settings(), npus("n", "Ascend910B3", *devices), asking("p", {f"{CHIP}910B3": 3})], conf())
    bench.cycle()
    ids = given(bench, "hami.io/Ascend910B3-devices-allocated")["p"]
    assert [entry.split(",")[0] for entry in ids.rstrip(":;").split(":")] == ["d1", "d2", "d4"]
    part = asking("p", {f"{CHIP}910B3": 2, f"{CHIP}910B3-memory": 1000})
    assert binds(Bench([settings(), npus("n", "Ascend910B3", *devices), part], conf()).cycle()) == {}


@pytest.mark.parametrize("register", ["", "[]", "{}", "[" * 300_000, '[{"id": 5}]'])
def test_a_register_that_cannot_be_read_offers_nothing(register: str) -> None:
    broken = npus("n", "Ascend910B3")
    broken["metadata"]["annotations"]["hami.io/node-register-Ascend910B3"] = register
    assert binds(Bench([settings(), broken, asking("p", {f"{CHIP}910B3": 1})], conf()).cycle()) == {}


# ---------------------------------------------------------------------- the ConfigMap


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- 1", "is no mapping"),
        ("a: [", "is not YAML"),
        ("nvidia: 5", "Expected `object`"),
        ("vnpus: [{commonWord: x}]", "resourceName"),
        (SETTINGS.replace("count: 3", "count: 65"), "more than 64 instances"),
        (SETTINGS.replace("count: 3", "count: -1"), "negative count"),
    ],
)
def test_what_cannot_be_used_is_told(text: str, problem: str) -> None:
    found = from_value("ConfigMap", settings(text))
    assert isinstance(found, ConfigMap)
    with pytest.raises(ManifestError, match=problem) as told:
        settings_of(found)
    assert "ConfigMap kube-system/volcano-vgpu-device-config" in str(told.value)


def test_recordings_hold_the_settings() -> None:
    bench = Bench([settings(), npus("n", "Ascend910B3", {"id": "d0"})], conf())
    snapshot = bench.state.snapshot()
    again = codec.decode_snapshot(codec.encode_snapshot(snapshot))
    assert again.device_settings == snapshot.device_settings != {}
    assert again.axes.ignored == snapshot.axes.ignored == {f"{CHIP}910B3-memory", f"{CHIP}910B3-core"}
    state = restored(Checkpoint(bench.state).encode())
    assert (state.device_settings, state.axes.ignored) == (snapshot.device_settings, snapshot.axes.ignored)
