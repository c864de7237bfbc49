"""Ascend NPUs with HAMi: which devices have room, which are taken, how nodes score, and the log lines about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from stromboli.model.resources.device_settings import ChipSettings, Template
from stromboli.model.spec import NodeSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import CardUse
from stromboli.plugins.deviceshare.npu import NO_DEVICE, NO_PART, AscendNpu, NpuPool
from stromboli.testing.builders import Manifest, pod, state

CHIP: Final = "huawei.com/Ascend910B3"
SETTINGS: Final = ChipSettings(
    "Ascend910B3", CHIP, f"{CHIP}-memory", 60_000, 64_000, (Template("vir10", 32_000), Template("vir05", 16_000))
)
SOFT: Final = {"huawei.com/vnpu-mode": "hami-core"}
HELD: Final = "hami.io/Ascend910B3-devices-allocated"


def node(
    *devices: Mapping[str, object], allocatable: int = 8, notes: Mapping[str, str] = MappingProxyType({})
) -> NodeSpec:
    register = [{"id": f"d{n}", "index": n, "count": 3, "devmem": 60_000, **one} for n, one in enumerate(devices)]
    written = {"hami.io/node-register-Ascend910B3": json.dumps(register), **notes}
    return NodeSpec("n", annotations=written, allocatable={CHIP: allocatable})


def kind(policy: str = "binpack", *, soft: bool = False, over_capacity: bool = False) -> AscendNpu:
    return AscendNpu(SETTINGS, policy, soft=soft, over_capacity=over_capacity)


def pool(*devices: Mapping[str, object], policy: str = "binpack", soft: bool = False) -> NpuPool:
    found = kind(policy, soft=soft).pool_of(node(*devices))
    assert found is not None
    return found


def asks(*containers: Mapping[str, int], name: str = "p", held: str = "", soft: bool = False) -> Task:
    """A pod whose containers have these limits: the word behind the chip's name, or nothing for the number."""
    notes = {**({HELD: held} if held else {}), **(SOFT if soft else {})}
    body: Manifest = pod(name, annotations=notes)
    rows = [{CHIP + (f"-{word}" if word else ""): str(value) for word, value in each.items()} for each in containers]
    body["spec"]["containers"] = [{"name": f"c{n}", "resources": {"limits": row}} for n, row in enumerate(rows)]
    [task] = state(body).tasks.values()
    return task


def outcome(devices: NpuPool, task: Task, of: AscendNpu | None = None) -> str:
    """The devices that a pod would get, by container and with memory and cores; else why it gets none."""
    demand = (of or kind()).demand_of(task)
    assert demand is not None
    why = devices.refusal(demand)
    return devices.assign(task, demand, 5.0)[HELD] if why is None else why.text


PARTS: Final = {"": 1, "memory": 16_000}


@pytest.mark.parametrize(
    ("device", "soft", "held", "asked", "fits"),
    [
        pytest.param({}, False, ["60000,0"], PARTS, False, id="no memory is left"),
        pytest.param({}, False, ["44000,0"], PARTS, True, id="just as much memory is left"),
        pytest.param({}, False, ["44001,0"], PARTS, False, id="one MB less is left"),
        pytest.param({"count": 2}, False, ["0,0"], PARTS, True, id="one more may share it"),
        pytest.param({"count": 2}, False, ["0,0"] * 2, PARTS, False, id="as many share it as may"),
        pytest.param({"count": 0}, False, [], PARTS, False, id="nothing may share it"),
        pytest.param({}, True, ["0,60"], {**PARTS, "core": 40}, True, id="just as many cores are left"),
        pytest.param({}, True, ["0,61"], {**PARTS, "core": 40}, False, id="too few cores are left"),
        pytest.param({}, True, [], {**PARTS, "core": 100}, True, id="all cores of an idle one"),
        pytest.param({}, True, ["0,0"], {**PARTS, "core": 100}, False, id="all cores of one that is shared"),
        pytest.param({}, True, ["0,100"], PARTS, False, id="no cores, of one without any left"),
        pytest.param({}, True, ["0,99"], PARTS, True, id="no cores, of one with some left"),
        pytest.param({"devcore": 30}, False, ["0,30"], PARTS, False, id="no cores of its own are left"),
        pytest.param({"devcore": 30}, False, ["0,29"], PARTS, True, id="one core of its own is left"),
        pytest.param({"devcore": 30}, True, ["0,30"], PARTS, True, id="software divides all cores alike"),
        pytest.param({"devcore": 30}, False, ["0,10"], {**PARTS, "core": 21}, False, id="too few of its own"),
        pytest.param({"devcore": 30}, False, ["0,10"], {**PARTS, "core": 20}, True, id="just as many of its own"),
        pytest.param({"devcore": 100}, False, ["0,0"], {**PARTS, "core": 100}, False, id="all of its own, shared"),
    ],
)
def test_whether_a_device_has_room(
    device: dict[str, int], soft: bool, held: list[str], asked: dict[str, int], fits: bool
) -> None:
    devices = pool(device, soft=soft)
    for number, amounts in enumerate(held):
        devices.restore(asks(PARTS, name=f"held-{number}", held=f"d0,Ascend910B3,{amounts}:;"))
    assert (outcome(devices, asks(asked, soft=soft)) != NO_DEVICE.text) is fits


@pytest.mark.parametrize(
    ("containers", "soft", "found"),
    [
        pytest.param([{"": 1}], False, "d0,Ascend910B3,60000,0:;", id="a device without an amount is whole"),
        pytest.param([{"memory": 9000}], False, "d0,Ascend910B3,16000,0:;", id="an amount alone is of one device"),
        pytest.param([{"": 1, "memory": 0}], False, "d0,Ascend910B3,60000,0:;", id="no amount is all"),
        pytest.param([{"": 0}], False, ";", id="no device"),
        pytest.param([{"": 2}], False, "d0,Ascend910B3,60000,0:d1,Ascend910B3,60000,0:;", id="two whole ones"),
        pytest.param([{"": 2, "memory": 9000}], False, NO_PART.text, id="parts of two"),
        pytest.param([{"": 2, "memory": 33_000}], False, "d0,Ascend910B3,60000,0:d1,Ascend910B3,60000,0:;",
                     id="more than any template is whole devices"),
        pytest.param([{"": 3}], False, NO_DEVICE.text, id="more than there are"),
        pytest.param([{"": 1}, {"": 1}], False, "d0,Ascend910B3,60000,0:;d1,Ascend910B3,60000,0:;",
                     id="each container has devices of its own"),
        pytest.param([{"": 1, "memory": 9000}] * 2, False, "d0,Ascend910B3,16000,0:;d1,Ascend910B3,16000,0:;",
                     id="two containers share none"),
        pytest.param([{"": 2}, {"": 1}], False, NO_DEVICE.text, id="the second container's are missing"),
        pytest.param([{"": 2, "memory": 9000, "core": 7}], True,
                     "d0,Ascend910B3,9000,7:d1,Ascend910B3,9000,7:;", id="software gives parts of two as asked for"),
    ],
)  # fmt: skip
def test_what_containers_get(containers: list[dict[str, int]], soft: bool, found: str) -> None:
    assert outcome(pool({}, {}, soft=soft), asks(*containers, soft=soft)) == found


def test_a_pod_that_asks_for_nothing_has_no_demand_and_holds_nothing() -> None:
    assert kind().demand_of(asks({})) is None
    assert kind().demand_of(asks({"core": 5})) is None, "cores alone are of no device"
    devices = pool({})
    devices.restore(asks({}, held="d0,Ascend910B3,60000,0:;"))
    assert devices.cards()[0].used == 0


@pytest.mark.parametrize(
    ("held", "used"),
    [
        ("d0,Ascend910B3,16000,5:;", (16_000, 5)),
        ("d0,Ascend910B3,16000,5:d0,Ascend910B3,1000,1:;d0,Ascend910B3,1,1:", (17_001, 7)),
        ("d7,Ascend910B3,16000,5:;", (0, 0)),
        ("d0,Ascend910B3,x,5:;", (0, 0)),
        ("d0,Ascend910B3,16000,x:;", (0, 0)),
        ("d0,Ascend910B3,16000:;", (0, 0)),
        ("d0:;", (0, 0)),
        ("d0,Ascend910B3,16000,5,more:;", (16_000, 5)),
    ],
)
def test_what_annotations_hold_is_shown_until_the_pod_is_gone(held: str, used: tuple[int, int]) -> None:
    devices, task = pool({"devcore": 30}), asks({"": 1}, held=held)
    devices.restore(task)
    [card] = devices.cards()
    assert (card.used, card.used_cores) == used
    assert card[:3] + card[4:5] == ("d0", "Ascend910B3", 60_000, 30)
    devices.release(task)
    assert devices.cards() == [CardUse("d0", "Ascend910B3", 60_000, 0, 30, 0, False)]


def test_a_card_is_full_when_as_many_share_it_as_may() -> None:
    devices = pool({"count": 2}, soft=True)
    found = []
    for number in range(3):
        found.append((devices.cards()[0].is_full, devices.cards()[0].all_cores))
        devices.restore(asks(PARTS, name=f"p{number}", held="d0,Ascend910B3,1,1:;"))
    assert found == [(False, 100), (False, 100), (True, 100)]


def test_what_is_to_be_allocated_counts_where_nothing_is_yet() -> None:
    task = asks({"": 1})
    task.annotations = {"hami.io/Ascend910B3-devices-to-allocate": "d0,Ascend910B3,16000,5:;"}
    devices = pool({})
    devices.restore(task)
    assert devices.cards()[0].used == 16_000


@pytest.mark.parametrize(
    ("policy", "held", "score", "first"),
    [
        ("binpack", {}, 0.0, "d0"),
        ("binpack", {"d1": 30_000}, 50.0, "d1"),
        ("spread", {}, 100.0, "d0"),
        ("spread", {"d0": 1}, 100.0, "d1"),
        ("", {"d0": 1}, 0.0, "d0"),
    ],
)
def test_the_devices_with_the_best_score_are_taken(policy: str, held: dict[str, int], score: float, first: str) -> None:
    devices = pool({}, {}, policy=policy)
    for name, memory in held.items():
        devices.restore(asks(PARTS, name=f"on-{name}", held=f"{name},Ascend910B3,{memory},0:;"))
    task = asks(PARTS)
    demand = kind(policy).demand_of(task)
    assert demand is not None
    assert devices.score(demand) == score
    assert outcome(devices, task).startswith(f"{first},")


def test_of_devices_alike_the_first_by_index_is_taken() -> None:
    assert outcome(pool({"index": 5}, {"index": 2}), asks({"": 1})).startswith("d1,")


def test_what_finds_no_device_scores_nothing() -> None:
    demand = kind().demand_of(asks({"": 2}))
    assert demand is not None
    assert pool({}).score(demand) == 0.0


def networks(*numbers: object) -> NpuPool:
    """Devices of these networks, of a chip whose devices are placed by network."""
    return pool(*({} if number is None else {"custominfo": {"NetworkID": number}} for number in numbers))


@pytest.mark.parametrize(
    ("numbers", "containers", "ids", "score"),
    [
        pytest.param((0, 1, 1), [2], ["d1", "d2"], 10.0, id="the network with the most"),
        pytest.param((1, 0), [1], ["d1"], 10.0, id="of equals the first network"),
        pytest.param((0, 1, 1), [1, 1, 1], ["d1", "d0", "d2"], 20 / 3, id="two of three containers in one network"),
        pytest.param((0, 1, None), [1], ["d0"], 0.0, id="one says none: networks do not count"),
        pytest.param((0, 1, "x"), [2], ["d0", "d1"], 10.0, id="what is no number is a network of its own"),
        pytest.param((0, 1 << 31, 1 << 32), [2], ["d1", "d2"], 10.0, id="numbers that are too large are none"),
        pytest.param((-1, (1 << 31) - 1, 7), [2], ["d0", "d1"], 10.0, id="numbers just small enough"),
        pytest.param((0,), [0], [], 0.0, id="no device, no network"),
    ],
)
def test_devices_of_one_network_are_taken_together(
    numbers: tuple[object, ...], containers: list[int], ids: list[str], score: float
) -> None:
    devices, task = networks(*numbers), asks(*({"": number} for number in containers))
    demand = kind().demand_of(task)
    assert demand is not None
    assert devices.score(demand) == pytest.approx(score)
    found = outcome(devices, task).replace(";", "").rstrip(":")
    assert [entry.split(",")[0] for entry in found.split(":") if entry] == ids


@pytest.mark.parametrize(
    ("notes", "by_default", "able"),
    [({}, False, False), ({}, True, True), ({"hami-vnpu-core": "true"}, False, True),
     ({"hami-vnpu-core": "false"}, True, False), ({"hami-vnpu-core": "x"}, True, False)],
)  # fmt: skip
def test_a_node_says_whether_software_slices_its_devices(notes: dict[str, str], by_default: bool, able: bool) -> None:
    devices = kind(soft=by_default).pool_of(node({}, notes=notes))
    assert devices is not None
    assert (outcome(devices, asks(PARTS, soft=True)) != NO_DEVICE.text) is able
    assert devices.cards()[0].all_cores == (100 if able else 0)


@pytest.mark.parametrize(("allocatable", "known"), [(1, True), (0, False), (-1, False)])
def test_a_node_that_offers_none_has_no_devices(allocatable: int, known: bool) -> None:
    assert (kind().pool_of(node({}, allocatable=allocatable)) is not None) is known


@pytest.mark.parametrize(("devices", "known"), [(1, True), (1024, True), (1025, False)])
def test_so_many_devices_of_a_node_are_read(devices: int, known: bool) -> None:
    assert (kind().pool_of(node(*[{}] * devices)) is not None) is known


def test_what_a_register_leaves_out_is_not_there() -> None:
    register = '[{"id": "d0", "index": 1}, {"id": "d1"}]'
    written = NodeSpec("n", annotations={"hami.io/node-register-Ascend910B3": register}, allocatable={CHIP: 2})
    devices = kind().pool_of(written)
    assert devices is not None
    assert devices.cards() == [CardUse(name, "Ascend910B3", 0, 0, 0, 0, True) for name in ("d0", "d1")]
    [(key, text)] = written.annotations.items()
    text = text.replace('"id"', '"count": 1, "devmem": 60000, "id"')
    devices = kind().pool_of(NodeSpec("n", annotations={key: text}, allocatable={CHIP: 2}))
    assert devices is not None
    assert outcome(devices, asks({"": 1})).startswith("d1,")


def test_a_register_is_read_up_to_a_length() -> None:
    whole = node({})
    [(key, text)] = whole.annotations.items()
    for length, known in ((1 << 18, True), ((1 << 18) + 1, False)):
        padded = NodeSpec("n", annotations={key: text.ljust(length)}, allocatable=whole.allocatable)
        assert (kind().pool_of(padded) is not None) is known


def test_all_that_a_binding_tells() -> None:
    devices, task = pool({"devcore": 20}), asks({"": 1, "memory": 9000, "core": 3})
    demand = kind().demand_of(task)
    assert demand is not None
    ids = "d0,Ascend910B3,16000,3:;"
    told: dict[str, Any] = {
        "hami.io/Ascend910B3-devices-to-allocate": ids, HELD: ids, "predicate-time": "5",
        "huawei.com/Ascend910B3": '[{"UUID":"d0","temp":"vir05"}]', "hami.io/vgpu-node": "n",
        "hami.io/vgpu-time": "5", "hami.io/bind-phase": "allocating", "hami.io/bind-time": "5",
    }  # fmt: skip
    assert devices.assign(task, demand, 5.9) == told
