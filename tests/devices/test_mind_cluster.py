"""Ascend 310P chips with MindCluster: templates, whole chips, what its ConfigMaps report, and a live cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from stromboli.cli.vcctl.top_devices import device_lines
from stromboli.cluster.decoding.chip_reports import report_of
from stromboli.cluster.decoding.devices import settings_of
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.objects import absent, from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.kube.transport import Request, Response
from stromboli.model.resources.device_settings import ChipReport, DeviceSettings
from stromboli.model.spec import NodeSpec
from stromboli.plugins.deviceshare.kind import CardUse, Need
from stromboli.plugins.deviceshare.mind_cluster import (
    TEMPLATES,
    ChipPool,
    Demand,
    MindCluster,
    Piece,
    piece_of,
    reports_in,
    scores,
    templates_for,
)
from stromboli.testing.builders import Manifest, node, pod, pod_group, resources_of
from tests.acceptance.bench import NOW, Bench, binds, messages
from tests.support.live_world import Json, LiveWorld, group
from tests.support.live_world import node as live_node
from tests.support.live_world import pod as live_pod
from tests.support.memory_server import status as answer
from tests.support.virtual import run

CORE: Final = "huawei.com/npu-core"
CONF: Final = """\
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - name: deviceshare
    arguments: {deviceshare.AscendMindClusterVNPUEnable: true, deviceshare.ScheduleWeight: 1}
"""
LABELS: Final = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}


def machine(name: str, chips: int = 2, **more: str) -> Manifest:
    return node(name, cpu=64, memory="64Gi", resources={CORE: 8 * chips}, labels={**LABELS, **more})


def devices(name: str, free: str, unhealthy: str = "") -> Manifest:
    """What the device plugin reports of a node."""
    lists = {"huawei.com/Ascend310P": free, "huawei.com/Ascend310P-Unhealthy": unhealthy}
    data = {"DeviceInfoCfg": json.dumps({"DeviceInfo": {"DeviceList": lists, "UpdateTime": 1}, "CheckCode": "x"})}
    meta = {"name": f"mindx-dl-deviceinfo-{name}", "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def status(name: str, of: str) -> Manifest:
    """What NodeD reports of a node."""
    data = {"NodeInfo": json.dumps({"NodeInfo": {"FaultDevList": [], "NodeStatus": of}, "CheckCode": "x"})}
    meta = {"name": f"mindx-dl-nodeinfo-{name}", "namespace": "mindx-dl", "labels": {"mx-consumer-cim": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def asking(name: str, cores: int, on: str = "", has: str = "", real: str = "", **labels: str) -> list[Manifest]:
    notes = {CORE: has, "huawei.com/AscendReal": real} if has else {}
    made = pod(name, group=name, on=on, requests={CORE: str(cores)}, annotations=notes)
    made["metadata"]["labels"] = {key.replace("_", "-"): value for key, value in labels.items()}
    return [pod_group(name), made]


ALL: Final = "Ascend310P-0,Ascend310P-1"


def given(*objects: Manifest, free: str = ALL, unhealthy: str = "") -> dict[str, str]:
    bench = Bench([machine("n"), devices("n", free, unhealthy), *objects], CONF)
    return {bind.key.partition("/")[2]: bind.annotations[CORE] for bind in bench.cycle().binds}


@pytest.mark.parametrize(
    ("cores", "dvpp", "is_high", "names"),
    [
        (1, "null", False, ("vir01",)), (1, "yes", True, ("vir01",)),
        (2, "null", False, ("vir02_1c",)), (2, "no", True, ("vir02", "vir02_1c")),
        (4, "yes", False, ("vir04_4c_dvpp",)), (4, "no", True, ("vir04_3c_ndvpp",)),
        (4, "null", False, ("vir04_3c",)), (4, "null", True, ("vir04", "vir04_3c")),
        (3, "null", False, ()),
    ],
)  # fmt: skip
def test_templates(cores: int, dvpp: str, is_high: bool, names: tuple[str, ...]) -> None:
    assert templates_for(cores, dvpp, is_high=is_high) == names


def test_slices_fill_a_chip_and_whole_chips_are_idle_ones() -> None:
    found = given(*asking("a", 4), *asking("b", 4), *asking("c", 8), *asking("d", 4))
    assert found == {"a": "0-vir04_3c", "b": "0-vir04_3c", "c": "1"}
    assert given(*asking("a", 16)) == {"a": "0,1"}


def test_the_annotations_are_those_that_the_device_plugin_reads() -> None:
    (bind,) = Bench([machine("n"), devices("n", ALL), *asking("a", 2, vnpu_level="high")], CONF).cycle().binds
    assert bind.annotations == {CORE: "0-vir02", "predicate-time": str(int(NOW * 1e9))}


def test_fewer_cpus_where_the_level_cannot_be_had() -> None:
    """Three slices with two CPUs each leave one of seven; slices of two templates are made one after the other."""
    asked = [one for name in "abcd" for one in asking(name, 2, vnpu_level="high")]
    bench = Bench([machine("n"), devices("n", "Ascend310P-0"), *asked], CONF)
    assert sorted(binds(bench.cycle())) == ["a", "b", "c"]
    assert "node n is using vir02, and not rewrite" in messages(bench.plan, "default/d")[-1]
    made = [one for k, name in enumerate("abc") for one in asking(name, 2, "n", "0-vir02", f"Ascend310P-2c-10{k}-0_0")]
    assert given(*made, *asked[6:], free="Ascend310P-0") == {"d": "0-vir02_1c"}


def test_a_pod_of_the_high_level_waits_while_slices_with_fewer_cpus_are_made() -> None:
    """Where chips have the CPUs of its level it gets them, later on; where they lack them it gets fewer at once."""
    placed, wants = asking("a", 2, "n", "0-vir02_1c"), asking("b", 2, vnpu_level="high")
    bench = Bench([machine("n"), devices("n", ALL), *placed, *wants], CONF)
    assert binds(bench.cycle()) == {}
    assert "node n is using vir02_1c, and not rewrite" in messages(bench.plan, "default/b")[-1]
    assert given(*asking("a", 2, "n", "0-vir02_1c", "Ascend310P-2c.1cpu-100-0_0"), *wants) == {"b": "0-vir02"}


@pytest.mark.parametrize(
    ("pieces", "asked", "fits"),
    [
        ((), "vir04", True),
        ((Piece((0,), "vir04_4c_dvpp"),), "vir04_4c_dvpp", False),
        ((Piece((0,), "vir04_4c_dvpp"),), "vir01", False),
        ((Piece((0,), "vir04_4c_dvpp"),), "vir04_3c_ndvpp", True),
        ((Piece((0,), "vir01"),), "vir04_4c_dvpp", False),
        ((Piece((0,), "vir04_3c_ndvpp"),), "vir04_4c_dvpp", True),
        ((Piece((0,), "vir01", None, False),), "vir01", False),
        ((Piece((0,), ""),), "vir01", False),
        (tuple(Piece((0,), "vir01", group) for group in range(3)), "vir04", False),
        (tuple(Piece((0,), "vir01", group) for group in range(3)), "vir02", True),
        (tuple(Piece((0,), "vir01", group) for group in range(4)), "vir02", False),
        (tuple(Piece((0,), "vir01", group) for group in range(4)), "vir01", True),
        (tuple(Piece((0,), "vir01", 1) for _ in range(4)), "vir04_3c", True),
        (tuple(Piece((0,), "vir02") for _ in range(3)), "vir02", False),
        ((Piece((0,), "vir01", None, False, True),), "vir01", True),
        ((Piece((0,), "vir04"),), "vir04_3c", True),
    ],
)
def test_what_a_chip_takes(pieces: tuple[Piece, ...], asked: str, fits: bool) -> None:
    pool = ChipPool("n", 8, 1, ChipReport((0,)), None)
    pool.held = {str(number): piece for number, piece in enumerate(pieces)}
    [chip] = pool._chips()
    assert chip.takes(TEMPLATES[asked]) == fits


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([machine("n")], "checkNodeNPUByDyTask invalid VNode: no report of its chips is known"),
        ([machine("n", servertype="Ascend310P"), devices("n", ALL)], "checkNodeNPUByDyTask invalid VNode: its labels"),
        ([machine("n", accelerator="huawei-Ascend910"), devices("n", ALL)], "invalid VNode: its labels"),
        ([machine("n", accelerator="huawei-Ascend910")], "invalid VNode: its labels"),
        ([machine("n"), devices("n", ALL), status("n", "PreSeparate")], "preCheckNodePredicate failure"),
        ([machine("n"), devices("n", "Ascend310P-0", ALL)], "node not meet task request huawei.com/npu-core:4"),
        ([machine("n"), devices("n", ""), *asking("r", 8, "n", "0")], "node not meet task request"),
    ],
)
def test_why_a_node_is_refused(objects: list[Manifest], text: str) -> None:
    bench = Bench([*objects, *asking("p", 4)], CONF)
    assert "p" not in binds(bench.cycle())
    assert text in messages(bench.plan, "default/p")[-1]


@pytest.mark.parametrize(
    ("cores", "labels", "text"),
    [(4, {"vnpu_dvpp": "maybe"}, "err dvpp value:maybe"), (3, {}, "no template of Ascend310P has 3 cores")],
)
def test_what_no_template_gives(cores: int, labels: dict[str, str], text: str) -> None:
    bench = Bench([machine("n"), devices("n", ALL), *asking("p", cores, **labels)], CONF)
    assert binds(bench.cycle()) == {}
    assert text in messages(bench.plan, "default/p")[-1]


def test_what_runs_is_counted_wherever_its_chip_is_listed() -> None:
    """A chip that is taken whole is not among the free ones, and one with slices may be either."""
    running = [*asking("w", 8, "n", "1"), *asking("s", 4, "n", "0-vir04_3c", "Ascend310P-4c.3cpu-100-0_1")]
    assert given(*running, *asking("p", 4), free="") == {"p": "0-vir04_3c"}
    assert given(*running[2:], *asking("p", 4, vnpu_dvpp="no"), free="") == {"p": "0-vir04_3c_ndvpp"}
    waiting = asking("s", 4, "n", "0-vir04_3c")
    assert given(*waiting, *asking("p", 4)) == {"p": "1-vir04_3c"}, "no second slice while one is being made"


@pytest.mark.parametrize(
    ("real", "group", "is_made"),
    [("Ascend310P-2c.1cpu-105-0_3", 3, True), ("Ascend310P-0", None, True), ("x_y", None, True), ("", None, False)],
)
def test_the_device_plugin_says_the_group_of_a_slice_once_it_is_made(
    real: str, group: int | None, is_made: bool
) -> None:
    assert piece_of({CORE: "0-vir02", "huawei.com/AscendReal": real}) == Piece((0,), "vir02", group, is_made)


def test_of_several_reports_of_a_node_the_last_by_name_counts() -> None:
    first, last = (DeviceSettings(chips={"n": ChipReport(free)}) for free in ((0,), (1,)))
    assert reports_in({"b": last, "a": first}) == reports_in({"a": first, "b": last}) == {"n": ChipReport((1,))}


def test_chips_of_ten_cores_and_those_beyond_the_nodes_own() -> None:
    ten = node("n", resources={CORE: 20}, labels={**LABELS, "servertype": "Ascend310P-10"})
    listed = "Ascend310P-2,Ascend310P-1,Ascend310P-0"
    bench = Bench([ten, devices("n", listed), *asking("a", 10), *asking("b", 10), *asking("c", 10)], CONF)
    assert {bind.key: bind.annotations[CORE] for bind in bench.cycle().binds} == {"default/a": "0", "default/b": "1"}
    pool = MindCluster({"n": ChipReport((2, 0))}).pool_of(
        NodeSpec("n", {**LABELS, "servertype": "Ascend310P-10"}, capacity={CORE: 20}, allocatable={CORE: 20})
    )
    assert pool is not None
    assert [card.name for card in pool.cards()] == ["Ascend310P-0"]


@pytest.mark.parametrize(("allocatable", "has_chips"), [(0, False), (1, True), (16, True)])
def test_a_node_that_offers_no_cores_has_no_chips(allocatable: int, has_chips: bool) -> None:
    spec = NodeSpec("n", LABELS, capacity={CORE: 16}, allocatable={CORE: allocatable})
    assert (MindCluster({}).pool_of(spec) is not None) is has_chips


def test_the_first_container_that_names_cores_counts() -> None:
    body = pod("p", group="p")
    body["spec"]["containers"] = [
        {"name": name, "resources": resources_of({"cpu": 1, CORE: cores} if cores else {"cpu": 1})}
        for name, cores in (("a", None), ("b", "8"), ("c", "4"))
    ]
    assert given(pod_group("p"), body) == {"p": "0"}


def test_how_much_of_a_chip_is_needed_and_shown() -> None:
    kind = MindCluster({})
    assert [kind.need(Demand(cores, ())) for cores in (4, 8, 16)] == [Need(1, 0, 50), Need(1, None), Need(2, None)]
    chips = ChipPool("n", 8, 2, ChipReport((0, 1)), None)
    chips.held = {"whole": Piece((0,), ""), "part": Piece((1,), "vir02", 1)}
    assert chips.cards() == [
        CardUse("Ascend310P-0", "Ascend310P", 0, 0, 100, 100, True),
        CardUse("Ascend310P-1", "Ascend310P", 0, 0, 100, 25, False),
    ]


@pytest.mark.parametrize("text", ["", "x", "0-vir99", "0,1-vir02", "9" * 40, "-vir02", "0-"])
def test_what_no_device_plugin_writes_holds_nothing(text: str) -> None:
    assert piece_of({CORE: text}) is None


def test_a_pod_that_asks_for_nothing_holds_nothing_whatever_it_is_annotated_with() -> None:
    stranger = pod("s", group="s", on="n", requests={"cpu": "1"}, annotations={CORE: "0,1"})
    assert given(pod_group("s"), stranger, *asking("p", 16)) == {"p": "0,1"}


@pytest.mark.parametrize(("reports", "all_and_used"), [(True, [(4, 1)]), (False, [])])
def test_chips_are_shown_where_they_are_reported(reports: bool, all_and_used: list[tuple[int, int]]) -> None:
    chips = ",".join(f"Ascend310P-{number}" for number in range(4))
    objects = [machine("n", 4), *asking("r", 8, "n", "0"), *([devices("n", chips)] if reports else ())]
    assert [(line.all, line.used) for line in device_lines(Bench(objects, CONF).state)] == all_and_used


def test_nodes_with_the_fewest_free_cores_come_first() -> None:
    objects = [machine("a"), machine("b"), devices("a", ALL), devices("b", ALL)]
    running = asking("r", 4, "b", "0-vir04_3c", "Ascend310P-4c.3cpu-100-0_1")
    assert binds(Bench([*objects, *asking("p", 4)], CONF).cycle()) == {"p": "a"}
    assert binds(Bench([*objects, *running, *asking("p", 4)], CONF).cycle()) == {"p": "b"}


def test_nodes_that_give_less_score_half_of_the_first_that_does_not() -> None:
    wanted = Demand(2, ("vir02", "vir02_1c"))
    tight, tighter, idle, more = (ChipPool(name, 8, 1, ChipReport((0,)), None) for name in ("b", "a", "c", "d"))
    assert scores([more, idle], wanted) == {"c": 8.0}
    for pool in (tight, tighter):
        pool.held = {str(number): Piece((0,), "vir02") for number in range(3)}
        assert pool.gives_less(wanted)
    assert scores([more, idle, tight, tighter], wanted) == {"a": 8.0, "b": 8.0, "c": 16.0}
    assert scores([], wanted) == {}


@pytest.mark.parametrize("text", ['{"DeviceInfo": 1}', "[", '{"DeviceInfo": {"DeviceList": {"a": 1}}}'])
def test_a_report_that_cannot_be_read_is_told(text: str) -> None:
    body = devices("n", ALL)
    body["data"]["DeviceInfoCfg"] = text
    found: Any = from_value("ConfigMap", body)
    with pytest.raises(ManifestError, match=r"data\.DeviceInfoCfg"):
        settings_of(found)


# ---------------------------------------------------------------------- a live cluster


def put(world: LiveWorld, body: Manifest) -> None:
    world.server.put("configmaps", {key: value for key, value in body.items() if key in ("metadata", "data")})


def npu_pod(name: str, cores: int) -> Json:
    body = live_pod(name, name)
    limits = {CORE: str(cores)}
    body["spec"]["containers"][0]["resources"].update(limits=limits)
    body["spec"]["containers"][0]["resources"]["requests"].update(limits)
    return body


@pytest.mark.parametrize("on", ["memory", "embedded"])
def test_reports_are_followed_where_the_plugin_reads_them(on: str, tmp_path: Path) -> None:
    async def story() -> None:
        world = LiveWorld(nodes=0, on=on)
        (tmp_path / "conf").write_text(CONF)
        body = live_node("n", 4, **LABELS)
        for amounts in body["status"].values():
            amounts[CORE] = "8"
        world.server.put("nodes", body)
        put(world, devices("n", "Ascend310P-0", "Ascend310P-0"))
        stranger = devices("n", "Ascend310P-0")
        stranger["metadata"]["namespace"] = "ns"
        put(world, stranger)
        scheduler = world.scheduler(str(tmp_path / "conf"))
        world.start(scheduler)
        world.server.put("podgroups", group("p", 1))
        world.server.put("pods", npu_pod("p", 4))
        await asyncio.sleep(10)
        assert world.pods() == {"p": ""}, "the chip is broken, whatever a user says of it"
        put(world, devices("n", "Ascend310P-0"))
        await asyncio.sleep(5)
        assert world.pods() == {"p": "n"}
        assert world.server.get("pods", "p", "ns")["metadata"]["annotations"][CORE] == "0-vir04_3c"
        assert not await scheduler.audit.run()
        await world.end()

    run(story())


@pytest.mark.parametrize("may_read", [True, False])
def test_a_scheduler_that_is_told_of_the_plugin_later_follows_reports_from_then_on(
    may_read: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        world, conf = LiveWorld(nodes=0), tmp_path / "conf"
        conf.write_text(CONF.replace("Enable: true", "Enable: false"))
        body = live_node("n", 4, **LABELS)
        for amounts in body["status"].values():
            amounts[CORE] = "16"
        world.server.put("nodes", body)
        put(world, devices("n", ALL))
        if not may_read:
            world.server.faults.append(refused)
        scheduler = world.scheduler(str(conf))
        world.start(scheduler)
        await asyncio.sleep(5)
        conf.write_text(CONF)
        await asyncio.sleep(3)
        world.server.put("podgroups", group("p", 1))
        world.server.put("pods", npu_pod("p", 4))
        await asyncio.sleep(5)
        assert world.pods() == {"p": "n" if may_read else ""}
        if not may_read:
            [why] = world.server.get("pods", "p", "ns")["status"]["conditions"]
            assert "the scheduler must be allowed to read the ConfigMaps" in why["message"]
            world.server.faults.clear()
        await world.end()

    run(story())


def test_a_deletion_known_by_name_alone_removes_an_npu_report() -> None:
    state, report = ClusterState(), devices("n", ALL)
    state.apply(Added("NpuReport", from_value("NpuReport", report)))
    assert list(state.device_settings) == ["kube-system/mindx-dl-deviceinfo-n"]
    state.apply(Deleted("NpuReport", absent("NpuReport", ("kube-system", report["metadata"]["name"]), "")))
    assert not state.device_settings


def refused(request: Request, when: str) -> Response | None:
    """The answer to everything about reports."""
    is_report = when == "before" and "mx-consumer-cim" in str(request.params)
    return answer(403, "Forbidden", "not with this role") if is_report else None


@pytest.mark.parametrize(
    ("free", "chips"),
    [
        ("Ascend310P-1,Ascend310P-0", (0, 1)),
        ("Ascend310P-300,Ascend310P-16,Ascend310P-3,Ascend310P-16", (3, 16, 300)),
        ("Ascend310P-999999,Ascend310P-1000000", (999999,)),
        ("Ascend310P-x, 3,Ascend310P-\u0663,Ascend310P-2-1", (3,)),
        (",".join(f"Ascend310P-{number}" for number in range(1025)), tuple(range(1024))),
    ],
)
def test_which_chips_of_a_list_are_read(free: str, chips: tuple[int, ...]) -> None:
    found: Any = from_value("ConfigMap", devices("n", free))
    assert report_of(found).free == chips


def test_what_is_short_of_chips_is_said() -> None:
    demand = Demand(2, ("vir02",))
    taken = ChipPool("n", 8, 2, ChipReport((0, 1)), None)
    taken.held = {"whole": Piece((0,), ""), "part": Piece((1,), "vir04_3c", 1)}
    assert taken.shortage(demand) == "free: Ascend310P-0 0 of 8 cores, 0 CPUs; Ascend310P-1 4 of 8 cores, 4 CPUs"
    for report, why in ((ChipReport(), "no report of its chips is known"), (ChipReport(()), "no healthy chip of it")):
        assert ChipPool("n", 8, 2, report, None).shortage(demand).startswith(f"free: nothing on node n, as {why}")
