"""Resources that no node offers have no column of their own, and nothing else is different for it.

But two things: a pod that asks for 0 of such a resource asks for nothing, also on a node where pods hold some of it;
and the sums in brackets that explain why minResources are refused leave out what others hold of it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.session.session import Session
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.testing.builders import Manifest, events, node, pod, pod_group, queue
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.acceptance.bench import Bench, answering, conf
from tests.laws.crowds import configurations
from tests.laws.pictures import picture
from tests.laws.scenes import CONFIGURATIONS, NOW, REGISTRY, WITH_CAPACITY, config_of, digest

GPU, RDMA = "nvidia.com/gpu", "example.com/rdma"
NAMES = (GPU, RDMA, "a.invented/x", "ephemeral-storage", "invented.example/y", "z.invented/z")
SUMS = re.compile(r" \([^()]*minResources(?:[^()]|\([^()]*\))*\)")
NODES_ALONE = """\
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""
CONFS = (*CONFIGURATIONS, WITH_CAPACITY, *configurations(actions=("preempt", "reclaim")))

amounts = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("1", "2")), max_size=3)


@st.composite
def clusters(draw: DrawFn) -> list[Manifest]:
    """Nodes of which few offer devices, queues that may name some, and pods, waiting or running, that ask for any."""
    offers = st.dictionaries(st.sampled_from((GPU, RDMA)), st.sampled_from(("1", "4")), max_size=2)
    found = [node(f"n{i}", cpu=draw(st.sampled_from((1, 4))), resources=draw(offers)) for i in range(3)]
    for name in ("default", "other"):
        limits: dict[str, Any] = {"cpu": "6", "memory": "16Gi", **draw(amounts)}
        found.append(queue(name, **draw(st.sampled_from(({}, {"capability": limits}, {"deserved": limits})))))
    for i in range(draw(st.integers(1, 4))):
        phase, home = (
            draw(st.sampled_from(("Pending", "Inqueue", "Running"))),
            draw(st.sampled_from(("default", "other"))),
        )
        least: Any = draw(st.sampled_from(({}, {"minResources": {"cpu": "1", **draw(amounts)}})))
        found.append(
            pod_group(f"g{i}", queue=home, phase=phase, created=i, min_member=draw(st.integers(1, 2)), **least)
        )
        for k in range(draw(st.integers(1, 3))):
            asked = draw(amounts)
            container = {"resources": {"requests": {"cpu": "1", "memory": "1Gi", **asked}, "limits": asked}}
            on = draw(st.sampled_from(("", "", "n0", "n1", "gone")))
            found.append(pod(f"p{i}-{k}", group=f"g{i}", on=on, created=k, container=container))
    return found


def of(objects: list[Manifest], *columns: str) -> ClusterState:
    """The state that the objects make, in their order; ``columns`` are names that have a column from the beginning."""
    found = ClusterState()
    for name in columns:
        found.axes.column(name)
    for event in events(objects):
        found.apply(event)
    return found


def planned(state: ClusterState, conf: str) -> Plan:
    return run_cycle(state.snapshot(), config_of(conf), REGISTRY, NOW)


@pytest.mark.law("whether a resource that no node offers has a column changes no decision and no message")
@given(clusters(), st.sampled_from(CONFS), st.sampled_from(("", "compat: volcano\n")))
def test_columns_change_nothing(objects: list[Manifest], conf: str, way: str) -> None:
    one, other = planned(of(objects), conf + way), planned(of(objects, *NAMES), conf + way)
    assert said(one) == said(other)


CROWDED: list[Manifest] = [
    node("n0", cpu=2, resources={GPU: "1"}), queue("default"), pod_group("g", phase="Inqueue"),
    *(pod(f"g-{i}", group="g", memory=0, requests={GPU: "1"} if i < 2 else {}, cpu=1) for i in range(3)),
    pod_group("h", phase="Inqueue"), pod("h-0", group="h", memory=0, requests={RDMA: "1"}),
]  # fmt: skip
"""Devices for one of two pods, cores for two of three, and what one more asks for is nowhere."""


@pytest.mark.law("the plain evaluation and a snapshot read back see unoffered resources alike")
@example(CROWDED, NODES_ALONE)
@given(clusters(), st.sampled_from(CONFS))
def test_seen_alike(objects: list[Manifest], conf: str) -> None:
    snapshot = of(objects).snapshot()
    plan = digest(run_cycle(snapshot, config_of(conf), REGISTRY, NOW))
    assert digest(run_plain_cycle(snapshot, config_of(conf), REGISTRY, NOW)) == plan
    assert digest(run_cycle(decode_snapshot(encode_snapshot(snapshot)), config_of(conf), REGISTRY, NOW)) == plan


def test_crowded_nodes_take_what_they_have_room_for() -> None:
    """So that the example above tells room from none."""
    assert [bind.key for bind in planned(of(CROWDED), NODES_ALONE).binds] == ["default/g-0", "default/g-2"]


@pytest.mark.law("a resource that nodes offer later counts as if they had always offered it")
@given(clusters(), st.randoms(use_true_random=False), st.sampled_from(CONFS), st.booleans())
def test_names_that_come_later(objects: list[Manifest], chance: Any, conf: str, looked_at: bool) -> None:
    late = [node("n3", resources=dict.fromkeys(NAMES, "3")), queue("default", capability={"cpu": "8", NAMES[2]: "2"})]
    mixed = [*objects]
    chance.shuffle(mixed)
    found = of(mixed)
    if looked_at:
        found.snapshot()
    for event in events(late):
        found.apply(event)
    fresh = of([*mixed, *late], *NAMES)
    if looked_at:  # cycles are numbered
        fresh.snapshot()
    assert picture(found.snapshot()) == picture(fresh.snapshot())
    assert said(planned(found, conf)) == said(planned(fresh, conf))


def said(plan: Plan) -> list[list[str]]:
    """What a plan says, whatever the order in which a job has its pods, the sums behind refused minResources aside."""
    parts = (plan.binds, plan.evictions, plan.reservations, plan.pod_conditions, plan.pod_groups, plan.queues)
    return [sorted(SUMS.sub("", repr(each)) for each in part) for part in parts]


def test_a_waiting_pod_is_placed_once_a_node_has_its_device():
    devices = {"resources": {"requests": {"cpu": "1", RDMA: "1"}, "limits": {RDMA: "1"}}}
    known = of([node("n0"), queue("default"), pod_group("g"), pod("p", group="g", container=devices)])
    first = planned(known, NODES_ALONE)
    told = " ".join(repr(change) for change in (*first.pod_conditions, *first.pod_groups))
    assert not first.binds
    assert f"0/1 nodes are unavailable: 1 Insufficient {RDMA}." in told
    for event in events([node("n1", resources={RDMA: "1"})]):
        known.apply(event)
    assert [(bind.key, bind.node) for bind in planned(known, NODES_ALONE).binds] == [("default/p", "n1")]


def test_no_pod_makes_a_column():
    asking = [pod(f"p{i}", requests={f"example.com/d-{i}": "1"}, on="n0" if i % 2 else "") for i in range(500)]
    least = [pod_group(f"g{i}", minResources={f"example.com/m-{i}": "1"}) for i in range(500)]
    table = of([node("n0"), queue("default"), *asking, *least]).snapshot().table
    assert table.axes.names == ["cpu", "memory", "pods", "unoffered"]
    assert table.alloc.shape == (4, 1)
    assert table.used[3, 0] == 250_000


def test_what_running_pods_hold_is_told_by_name():
    running = [pod(f"p{i}", group="g", requests={f"example.com/d-{i % 2}": "2"}, on="n0") for i in range(4)]
    plan = planned(of([node("n0"), queue("default"), pod_group("g", phase="Running"), *running]), CONFS[0])
    [update] = plan.queues
    assert {name: update.allocated[name] for name in update.allocated if "/" in name} == {
        "example.com/d-0": "4",
        "example.com/d-1": "4",
    }


def test_a_run_of_pods_that_ask_for_what_is_nowhere_gets_no_nodes():
    pods = [pod(f"g-{i}", group="g", requests={RDMA: "1"}) for i in range(2)]
    snapshot = of([node("n0"), queue("default"), pod_group("g", min_member=2), *pods]).snapshot()
    with Session.open(snapshot, config_of(NODES_ALONE), REGISTRY, NOW) as session:
        choice = session.placer.place_run(list(session.jobs["default/g"].tasks.values()))
        assert choice is not None
        assert choice.rows == []


def test_what_pods_lack_that_ask_for_what_is_nowhere_is_counted_anew_after_each_placement():
    """n0 has a core for g-0, which g-1 lacks then before all else."""
    pods = [pod("g-0", group="g", cpu=1, memory=0), pod("g-1", group="g", cpu=1, memory=0, requests={RDMA: "1"})]
    snapshot = of([node("n0", cpu=1), queue("default"), pod_group("g", min_member=2), *pods]).snapshot()
    with Session.open(snapshot, config_of(NODES_ALONE), REGISTRY, NOW) as session, session.statement() as plan:
        first, asking = session.jobs["default/g"].tasks.values()
        lacking = f"0/1 nodes are unavailable: 1 Insufficient {RDMA}."
        assert session.placer.refusals(asking).text == session.placer.refusals(asking).text == lacking
        plan.allocate(first, session.nodes["n0"])
        assert session.placer.refusals(asking).text == "0/1 nodes are unavailable: 1 Insufficient cpu."
        plan.rollback(0)
        assert session.placer.refusals(asking).text == lacking


def test_predicates_are_not_asked_of_pods_that_ask_for_what_is_nowhere():
    asked: list[str] = []
    spy = answering("spy", predicate=lambda task, node: asked.append(task.name))
    pods = [pod("g-0", group="g", cpu=1), pod("g-1", group="g", cpu=1, requests={RDMA: "1"})]
    plan = Bench([node("n0"), pod_group("g"), *pods], conf("gang spy", "predicates", actions="allocate"), spy).cycle()
    assert [bind.key for bind in plan.binds] == ["default/g-0"]
    assert set(asked) == {"g-0"}
