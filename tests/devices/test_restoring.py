"""After a restart the annotations that bindings have put on pods say all: for every kind of device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stromboli.model.resources.device_settings import (
    ChipReport,
    ChipSettings,
    Geometry,
    Instance,
    Models,
    NvidiaSettings,
    Template,
)
from stromboli.model.spec import NodeSpec, PodSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.gpushare import GpuShare
from stromboli.plugins.deviceshare.holdings import cards_in_use, holdings
from stromboli.plugins.deviceshare.kind import Kind, Need
from stromboli.plugins.deviceshare.mind_cluster import MindCluster
from stromboli.plugins.deviceshare.npu import AscendNpu, Request
from stromboli.plugins.deviceshare.npu import Demand as NpuDemand
from stromboli.plugins.deviceshare.vgpu import VGpu
from stromboli.testing.builders import pod, state

V: Final = "volcano.sh/"
NPU: Final = "huawei.com/Ascend910B3"
CORE: Final = "huawei.com/npu-core"
MIG: Final = Models(
    ("A100",),
    (Geometry("small", (Instance("1g", 5000, 3),)),
     Geometry("mixed", (Instance("2g", 10_000, 1), Instance("1g", 5000, 1)))),
)  # fmt: skip
CHIP: Final = ChipSettings(
    "Ascend910B3", NPU, f"{NPU}-memory", 60_000, 65_536, (Template("vir05", 16_000), Template("vir10", 32_000))
)


class Case(NamedTuple):
    """A kind, a node, what pods ask for by limits, and their labels and annotations."""

    kind: Kind[Any]
    node: NodeSpec
    asks: tuple[Mapping[str, int], ...]
    notes: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}


def vgpus(mode: str, kind: str) -> NodeSpec:
    register = "".join(f"GPU-{n},3,20000,{kind},true,{mode}:" for n in range(2))
    offer: Any = {f"{V}vgpu-number": 6, f"{V}vgpu-memory": 40_000, f"{V}vgpu-cores": 200}
    return NodeSpec("n", annotations={f"{V}node-vgpu-register": register}, allocatable=offer)


def npus(soft: bool) -> NodeSpec:
    devices = [{"id": f"d{n}", "index": n, "count": 4, "devmem": 60_000, "devcore": 20} for n in range(2)]
    notes = {"hami.io/node-register-Ascend910B3": json.dumps(devices), "hami-vnpu-core": str(soft).lower()}
    return NodeSpec("n", annotations=notes, allocatable={NPU: 2})


GPUS: Final = NodeSpec("n", capacity={f"{V}gpu-memory": 16_000, f"{V}gpu-number": 2})
SHARES: Final = tuple(
    {f"{V}vgpu-number": number, f"{V}vgpu-memory": memory, f"{V}vgpu-cores": cores}
    for number, memory, cores in ((1, 4000, 0), (2, 4000, 30), (1, 9000, 100), (1, 15_000, 10), (1, 4000, 50))
)
SLICES: Final = tuple(
    {NPU: number, f"{NPU}-memory": memory} for number, memory in ((1, 9000), (1, 30_000), (2, 60_000))
)
CASES: Final = {
    "memory": Case(GpuShare(whole=False), GPUS, tuple({f"{V}gpu-memory": size} for size in (3000, 5000, 8000))),
    "whole": Case(GpuShare(whole=True), GPUS, ({f"{V}gpu-number": 1}, {f"{V}gpu-number": 2})),
    "vgpu": Case(VGpu("binpack", (), spread_scores=True), vgpus("hami-core", "T4"), SHARES),
    "spread": Case(VGpu("spread", ({"a": "b"},), spread_scores=True), vgpus("hami-core", "T4"), SHARES, {}, {"a": "b"}),
    "mig": Case(
        VGpu("", (), NvidiaSettings(known_mig_geometries=(MIG,)), spread_scores=True), vgpus("mig", "A100"), SHARES
    ),
    "templates": Case(AscendNpu(CHIP, "binpack", soft=False, over_capacity=False), npus(False), SLICES),
    "software": Case(
        AscendNpu(CHIP, "", soft=True, over_capacity=False), npus(True),
        tuple({**asked, f"{NPU}-core": 15} for asked in SLICES), {"huawei.com/vnpu-mode": "hami-core"},
    ),
    "mind-cluster": Case(
        MindCluster({"n": ChipReport((0, 1))}),
        NodeSpec("n", {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}, capacity={CORE: 16},
                 allocatable={CORE: 16}),
        tuple({CORE: cores} for cores in (1, 4, 8, 16)),
    ),
}  # fmt: skip


@cache
def tasks_of(name: str) -> list[Task]:
    """Two pods for each thing to ask for, and last one that asks for nothing."""
    case = CASES[name]
    made = [
        pod(f"p{number}-{twin}", requests=dict(asked), annotations=dict(case.notes))
        for number, asked in enumerate(case.asks) for twin in range(2)
    ]  # fmt: skip
    for body in made:
        body["metadata"]["labels"] = dict(case.labels)
        body["spec"]["containers"][0]["resources"]["limits"] = body["spec"]["containers"][0]["resources"]["requests"]
    return sorted(state(*made, pod("stranger")).tasks.values(), key=lambda task: task.name)


@pytest.mark.law("annotations restore what pods hold of every kind of device, and nothing is over-committed")
@pytest.mark.parametrize("name", CASES)
@given(steps=st.lists(st.integers(0, 99), max_size=12))
def test_a_restart_restores_exactly_what_was_held(name: str, steps: list[int]) -> None:
    kind, node = CASES[name].kind, CASES[name].node
    held: dict[str, Task] = {}
    pool, tasks = kind.pool_of(node), tasks_of(name)[:-1]
    assert pool is not None
    for step in steps:
        task = tasks[step % len(tasks)]
        if task.uid in held:
            pool.release(held.pop(task.uid))
        elif pool.refusal(demand := kind.demand_of(task)) is None:
            notes = pool.assign(task, demand, 1_000_000.0)
            held[task.uid] = replace(task, annotations={**task.annotations, **notes})
        for card in pool.cards():
            assert 0 <= card.used <= card.memory
            assert 0 <= card.used_cores <= (card.all_cores or 100)
    again = kind.pool_of(node)
    assert again is not None
    for task in held.values():
        again.restore(task)
    assert again.cards() == pool.cards()
    if name != "mind-cluster":  # its device plugin decides by itself while it makes slices
        waiting = [kind.demand_of(task) for task in tasks if task.uid not in held]
        assert [again.refusal(one) for one in waiting] == [pool.refusal(one) for one in waiting]
    for task in held.values():
        again.release(task)
    fresh = kind.pool_of(node)
    assert fresh is not None
    assert again.cards() == fresh.cards()


@pytest.mark.parametrize("name", CASES)
def test_every_kind_has_pods_that_fit(name: str) -> None:
    """So that the law is about something."""
    case = CASES[name]
    pool = case.kind.pool_of(case.node)
    assert pool is not None
    first = tasks_of(name)[0]
    demand = case.kind.demand_of(first)
    assert pool.refusal(demand) is None
    assert pool.assign(first, demand, 0.0)
    assert any(card.used or card.used_cores for card in pool.cards())


@pytest.mark.parametrize("name", CASES)
def test_annotations_of_pods_that_ask_for_nothing_hold_nothing(name: str) -> None:
    """Every user may annotate a pod; what its demand does not name is not given back with it either."""
    case, (first, *_, stranger) = CASES[name], tasks_of(name)
    pool, fresh = case.kind.pool_of(case.node), case.kind.pool_of(case.node)
    assert pool is not None
    assert fresh is not None
    notes = {**first.annotations, **pool.assign(first, case.kind.demand_of(first), 0.0)}
    assert cards_in_use([case.kind], case.node, [replace(first, annotations=notes)]) == pool.cards() != fresh.cards()
    assert cards_in_use([case.kind], case.node, [replace(stranger, annotations=notes)]) == fresh.cards()


def test_whole_gpus_and_shares_keep_each_other_away_where_the_kind_was_switched() -> None:
    (share, *_), whole = tasks_of("memory"), CASES["whole"].kind
    pool = whole.pool_of(GPUS)
    assert pool is not None
    pool.restore(replace(share, annotations={"volcano.sh/gpu-index": "0"}))
    assert pool.refusal(whole.demand_of(tasks_of("whole")[2])) is not None


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("memory", [Need(1, 3000), Need(1, 5000), Need(1, 8000)]),
        ("whole", [Need(1, None), Need(2, None)]),
        ("templates", [Need(1, 16_000), Need(1, 32_000), Need(2, 60_000)]),
        ("software", [Need(1, 9000, 15), Need(1, 30_000, 15), Need(2, 60_000, 15)]),
        ("mind-cluster", [Need(1, 0, 12), Need(1, 0, 50), Need(1, None), Need(2, None)]),
    ],
)
def test_what_pods_need_of_each_kind_of_card(name: str, needs: list[Need]) -> None:
    kind = CASES[name].kind
    asked = [kind.demand_of(task) for task in tasks_of(name)]
    assert asked[-1] is None
    assert [kind.need(demand) for demand in asked[:-1:2]] == needs


def test_an_npu_without_an_amount_of_memory_is_needed_whole() -> None:
    kind = AscendNpu(CHIP, "", soft=False, over_capacity=False)
    whole, some = Request(1, None, 0), Request(2, 9000, 0)
    assert kind.need(NpuDemand((some, whole), False)) == Need(3, None)
    assert kind.need(NpuDemand((some, Request(1, 20_000, 70)), False)) == Need(3, 32_000)
    assert kind.need(NpuDemand((some, Request(1, 20_000, 70)), True)) == Need(3, 20_000, 70)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("memory", ("free: 0 8000 of 8000 MB, 1 8000 of 8000 MB", "free: 0 5000 of 8000 MB, 1 8000 of 8000 MB")),
        ("whole", ("free: 2 of 2 cards", "free: 1 of 2 cards")),
        (
            "templates",
            ("free: d0 60000 of 60000 MB, d1 60000 of 60000 MB", "free: d0 44000 of 60000 MB, d1 60000 of 60000 MB"),
        ),
    ],
)
def test_what_is_left_of_cards_is_said(name: str, texts: tuple[str, str]) -> None:
    kind = CASES[name].kind
    pool, task = kind.pool_of(CASES[name].node), tasks_of(name)[0]
    assert pool is not None
    demand = kind.demand_of(task)
    before = pool.shortage(demand)
    pool.assign(task, demand, 0.0)
    assert (before, pool.shortage(demand)) == texts


@pytest.mark.parametrize(
    ("notes", "held"),
    [
        ({f"{V}vgpu-ids-new": "G0,T4,4000,30:G1,T4,,:;G2,T4,x,y:"},
         [("G0", 4000, 30, ""), ("G1", 0, 0, ""), ("G2", 0, 0, "")]),
        ({f"{V}vgpu-ids-new": " ,T4,1,1: G0 "}, [("G0", 0, 0, "")]),
        ({CORE: "0-vir02"}, [("Ascend310P-0", 0, 0, "vir02")]),
        ({CORE: "0,1"}, [("Ascend310P-0", 0, 0, ""), ("Ascend310P-1", 0, 0, "")]),
        ({f"{V}gpu-index": "1,x"}, [("GPU 1", 0, 0, ""), ("GPU x", 0, 0, "")]),
        ({}, []),
    ],
)  # fmt: skip
def test_what_annotations_say_that_a_pod_holds(notes: dict[str, str], held: list[tuple[str, int, int, str]]) -> None:
    assert [tuple(each) for each in holdings(notes, PodSpec())] == held
