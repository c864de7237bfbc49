"""The crowded clusters of the reservations' benchmark, what is counted in them, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.gates import gated
from benchmarks.measure import in_turns, text_of
from benchmarks.paired import interval
from benchmarks.pipelined.chart import Panel, drawn
from benchmarks.pipelined.comparing import SERVED_COLUMNS, Pair, cells, complaints, served_cells
from benchmarks.pipelined.measuring import BEGINNING, Clock, Decisions, Outcome, run
from benchmarks.pipelined.workloads import CORES, WORKLOADS, Workload, history
from benchmarks.workloads import Workload as Cluster
from stromboli.framework.books.plan import Bind, Eviction, Plan, Reservation
from stromboli.model.reservation import Held, stated
from stromboli.sim.runner import loaded
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import SimWorld
from stromboli.testing.builders import node, pod, pod_group

SLOW = next(workload for workload in WORKLOADS if workload.name == "preempt, crowd")
SMALL = replace(SLOW, nodes=3, between=60.0)


# ---------------------------------------------------------------------- what happens


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_histories_depend_on_their_seed_alone_and_begin_crowded(workload: Workload) -> None:
    first = history(workload, 1, 600)
    assert first == history(workload, 1, 600)
    assert first != history(workload, 2, 600)
    assert [happening.when for happening in first] == sorted(happening.when for happening in first)
    objects = first[0].come
    asked = sum(_cores(each) for each in objects if each["kind"] == "Pod")
    offered = workload.nodes * CORES
    assert 1.15 * offered <= asked < 1.15 * offered + 20
    graces = {each["spec"]["terminationGracePeriodSeconds"] for each in objects if each["kind"] == "Pod"}
    assert workload.grace[0] <= min(graces) <= max(graces) <= workload.grace[1]


def _cores(each: Any) -> int:
    return int(each["spec"]["containers"][0]["resources"]["requests"]["cpu"])


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_adds_up_and_is_the_same_again(keep: bool) -> None:
    found = run(SMALL, 1, keep, seconds=300)
    assert found == run(SMALL, 1, keep, seconds=300)
    assert found.cycles == 61
    assert found.evictions > 0
    assert 0.5 < found.use < 1
    assert all(0 < wait <= 300 for wait in found.waits.values())
    assert {name.partition("-")[0] for name in found.waits} == {"gang"}


# ---------------------------------------------------------------------- what is counted


def test_the_clock_counts_cores_that_work_and_when_gangs_run() -> None:
    timeline = Timeline(BEGINNING)
    world = SimWorld(timeline)
    clock = Clock(world)
    for each in (node("n1", cpu=4), pod_group("gang-1", min_member=2), pod("a", group="gang-1", cpu=2, on="n1")):
        world.create(each)
    timeline.run(BEGINNING + 10)
    world.create(pod("b", group="gang-1", cpu=1, on="n1"))
    timeline.run(BEGINNING + 20)
    world.delete("default/a")
    timeline.run(BEGINNING + 40)
    outcome = Outcome()
    clock.read(outcome)
    assert outcome.waits == {"gang-1": 10}
    assert outcome.use == (10 * 2 + 10 * 3 + 20 * 1) / (40 * 4)


def held(name: str, node: str = "n1") -> Reservation:
    return Reservation(f"uid-{name}", f"default/{name}", "default/g", node)


def bound(name: str, node: str = "n1") -> Bind:
    return Bind(f"uid-{name}", f"default/{name}", "default/g", node)


def seen(*plans: Plan, statements: Any = (), leaves: str = "", keep: bool = False) -> Outcome:
    """What is counted of two plans, with statements committed in the second cycle; mid states that it holds n1."""
    world = SimWorld(Timeline(BEGINNING))
    for each in (node("n1"), node("n2")):
        world.create(each)
    for name, importance in (("low", 1), ("mid", 5), ("mid2", 5), ("high", 9)):
        made = pod(name, priority=importance)
        made["metadata"]["uid"] = f"uid-{name}"
        made["metadata"]["annotations"] = stated(Held("n1")) if name == "mid" else {}
        world.create(made)
    decisions = Decisions(world, keep)
    decisions.planned(plans[0])
    if leaves:
        world.remove("Node", leaves)
    for key, more in statements:
        decisions.tell(key, {"task": more[0], "node": more[1], "reason": "timeout"} if more else {})
    decisions.planned(plans[1])
    return decisions.outcome


def test_evictions_are_counted_and_those_of_slow_victims() -> None:
    world = SimWorld(Timeline(BEGINNING))
    graces: dict[str, dict[str, Any]] = {
        "quick": {"terminationGracePeriodSeconds": 59}, "slow": {"terminationGracePeriodSeconds": 60}, "usual": {},
    }  # fmt: skip
    for name, spec in graces.items():
        world.create(pod(name, **spec))
    decisions = Decisions(world, keep=True)
    decisions.planned(Plan(evictions=[Eviction("", f"default/{name}", "", "n1", "preempt") for name in graces]))
    assert (decisions.outcome.evictions, decisions.outcome.slow) == (3, 1)


FOR_MID = [("evict_operation", ("default/low", "n1")), ("pipeline_operation", ("default/mid", "n1"))]


@pytest.mark.parametrize(
    ("before", "decided", "leaves", "repeated"),
    [
        ([held("mid")], "committing", "", 1),
        ([held("mid", "n2")], "committing", "", 1),
        ([held("mid", "n2")], "committing", "n2", 0),
        ([held("mid")], "discarding", "", 0),
        ([held("high")], "committing", "", 0),
    ],
)
def test_evictions_for_pods_that_hold_room_are_counted(before: Any, decided: str, leaves: str, repeated: int) -> None:
    found = seen(Plan(reservations=before), Plan(), statements=[(decided, None), *FOR_MID], leaves=leaves)
    assert found.repeated == repeated


@pytest.mark.parametrize(
    ("after", "taken"),
    [
        (Plan(binds=[bound("low")]), 1),
        (Plan(reservations=[held("mid2")]), 1),
        (Plan(binds=[bound("high")]), 0),
        (Plan(binds=[bound("low", "n2")]), 0),
        (Plan(binds=[bound("low")], reservations=[held("mid")]), 0),
        (Plan(binds=[bound("low"), bound("mid")]), 0),
        (Plan(), 0),
    ],
)
def test_reservations_that_others_take_are_counted(after: Plan, taken: int) -> None:
    assert seen(Plan(reservations=[held("mid")]), after).taken == taken


@pytest.mark.parametrize(
    ("keep", "before", "told", "taken"),
    [
        (True, Plan(reservations=[held("mid")]), (), 1),
        (True, Plan(allocated_not_bound=[held("mid")]), (), 1),
        (True, Plan(reservations=[held("mid2")]), (), 0),
        (False, Plan(reservations=[held("mid2")]), (), 1),
        (True, Plan(reservations=[held("mid")]), [("reservation_given_up", ("uid-mid", "n1"))], 0),
    ],
)
def test_where_they_are_kept_they_count_once_written_until_given_up(
    keep: bool, before: Plan, told: Any, taken: int
) -> None:
    assert seen(before, Plan(binds=[bound("low")]), statements=told, keep=keep).taken == taken


# ---------------------------------------------------------------------- what is said


def pair(seed: int = 1, **on: Any) -> Pair:
    fields = {"evictions": 60, "slow": 40, "waits": {"gang-1": 80.0}, "use": 0.8, **on}
    off = Outcome(evictions=100, slow=80, repeated=7, taken=3, waits={"gang-1": 100.0}, use=0.8)
    return Pair(seed, off, Outcome(**fields))


def test_the_row_of_a_workload() -> None:
    assert cells(SLOW, [pair(), pair(2)]) == [
        "preempt, crowd", "200 → 120", "40%", "0 of 2", "160 → 80", "50%", "14 → 0", "6 → 0", "2", "100 → 80",
        "80.0% → 80.0%",
    ]  # fmt: skip


def test_histories_in_which_more_go_are_counted() -> None:
    assert cells(SLOW, [pair(evictions=101), pair(2, evictions=100), pair(3)])[3] == "1 of 3"


@pytest.mark.parametrize(
    ("on", "complaint"),
    [
        ({}, ""),
        ({"evictions": 101}, "evicts 101 instead of 100"),
        ({"slow": 56}, "saves only 30% of the evictions of slow victims"),
        ({"repeated": 1}, "evicts 1 pods for others that hold room"),
        ({"taken": 2}, "lets 2 reservations be taken"),
        ({"waits": {"gang-1": 101.0}}, "lets gangs wait 101 s instead of 100 s"),
        ({"use": 0.78}, "uses 78.0% of the cluster instead of 80.0%"),
    ],
)
def test_what_is_not_as_promised_is_said(on: dict[str, Any], complaint: str) -> None:
    found = complaints(SLOW, [pair(**on)])
    assert f"preempt, crowd: {complaint}" in found if complaint else found == []


def test_the_chart_is_an_image_with_a_line_for_each_history_and_one_for_the_median() -> None:
    root = ET.fromstring(drawn([[Panel("a", "b", [(10, 5), (40, 30)])], [Panel("c", "d", [(1, 0)])]]))
    lines = [each for each in root.iter() if each.tag.endswith("line")]
    assert len(lines) == 3 + 2
    assert [line.get("y1") for line in lines[:3]] == ["112.5", "0.0", "56.2"]


def test_ways_take_turns() -> None:
    seen: list[str] = []

    def way(name: str) -> Any:
        def note() -> float:
            seen.append(name)
            return float(len(seen))

        return note

    rounds = list(in_turns([way("a"), way("b")], 2))
    assert seen == ["a", "a", "b", "b", "a"]
    assert rounds == [(2.0, 3.0), (5.0, 4.0)]


@pytest.mark.parametrize("kind", ["preempt", "running"])
def test_a_cycle_that_is_run_again_leaves_nothing(kind: str) -> None:
    cycles = loaded(text_of(Cluster(kind, 10, 100, gang=20, waiting=40)))
    cycles.go()
    before = cycles.answer()["outcome"]
    for kept in ("false", "true"):
        assert cycles.again(gated(kept, cycles.config)) > 0
        assert cycles.config.keeps_reservations is (kept == "true")
    assert cycles.answer()["outcome"] == before


@pytest.mark.parametrize(("count", "ranks"), [(6, (1, 6)), (9, (1, 9)), (25, (7, 19)), (100, (40, 61))])
def test_between_which_ranks_a_median_lies_with_95_percent(count: int, ranks: tuple[int, int]) -> None:
    assert interval([float(rank) for rank in range(count, 0, -1)]) == ranks


def test_what_servers_tell_stands_under_its_headings() -> None:
    row = dict(zip(SERVED_COLUMNS, ["real", *served_cells(SLOW, [pair()])], strict=True))
    assert (row["workload"], row["fewer"], row["gangs"]) == ("preempt, crowd", "40%", "1")
