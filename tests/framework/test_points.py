"""The table of extension points, against the names the reference and its documents use."""

from __future__ import annotations

import re
from functools import cmp_to_key
from types import SimpleNamespace as Thing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.extension import hook, order
from stromboli.framework.extension.ask import Questions
from stromboli.framework.extension.merge import Agree
from stromboli.framework.extension.points import POINTS, SWITCHES
from stromboli.framework.extension.points_page import generate_page
from stromboli.model.task import pod_index

FILLED = """
enableJobOrder enableJobReady enableJobPipelined enableTaskOrder enablePreemptable enableReclaimable enablePreemptive
enableQueueOrder enablePredicate enableBestNode enableNodeOrder enableTargetJob enableReservedNodes enableJobEnqueued
enableJobStarving enabledVictim enabledOverused enabledAllocatable enabledHyperNodeOrder enabledSubJobReady
enabledSubJobPipelined enabledSubJobOrder enabledHyperNodeGradient
"""


def test_switches_are_those_of_the_reference():
    assert sorted(switch for switch, on in SWITCHES.items() if on) == sorted(FILLED.split())
    assert [switch for switch, on in SWITCHES.items() if not on] == ["enabledClusterOrder"]


def test_every_point_has_its_decorator():
    ties = {name: tie for name, tie in vars(hook).items() if isinstance(tie, hook.Tie)}
    assert {name: tie.point for name, tie in ties.items()} == dict(POINTS)


@pytest.mark.parametrize("name", POINTS)
def test_rows_are_complete(name):
    point = POINTS[name]
    assert point.doc.endswith(".")
    assert point.answers
    assert point.asked_by
    assert point.registration
    assert not point.reverse_of or point.reverse_of in POINTS
    assert not point.alias_of or point.alias_of in POINTS


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("job_order", (Thing(created=1, uid="b"), Thing(created=2, uid="a")), -1),
        ("job_order", (Thing(created=1, uid="b"), Thing(created=1, uid="a")), 1),
        ("queue_order", (Thing(created=1, name="a"), Thing(created=1, name="b")), -1),
        ("victim_queue_order", (Thing(created=1, name="a"), Thing(created=1, name="b"), Thing(created=0, name="c")), 1),
        ("sub_job_order", (Thing(match_index=2, uid="a"), Thing(match_index=10, uid="b")), -1),
        ("cluster_order", (Thing(name="b"), Thing(name="a")), 1),
        ("job_valid", ("job",), None),
        ("job_ready", ("job",), True),
        ("job_pipelined", ("job",), True),
        ("job_starving", ("job",), False),
        ("job_enqueueable", ("job",), True),
        ("overused", ("queue",), False),
        ("allocatable", ("queue", "task"), True),
        ("preemptive", ("queue", []), True),
        ("target_job", ([],), None),
        ("predicate", ("task", "node"), None),
        ("node_order", ("task", "node"), 0.0),
        ("batch_node_order", ("task", []), {}),
        ("best_node", ("task", {}), None),
        ("hyper_node_gradient_for_job", ("job", "h0", "Allocate"), [["h0"]]),
        ("preemptable", ("task", []), []),
        ("victim_tasks", ([],), []),
    ],
)
def test_answers_without_a_plugin(name, asked, expected):
    assert getattr(Questions(lambda _: ()), name)(*asked) == expected


def test_reversed_default_follows_the_plugins_of_the_other_point():
    by_weight = ((lambda left, right: right.weight - left.weight,),)
    asked = Questions(lambda point: by_weight if point == "queue_order" else ())
    light, heavy = Thing(weight=1, created=0, name="a"), Thing(weight=2, created=0, name="b")
    assert asked.queue_order(heavy, light) < 0
    assert asked.victim_queue_order(light, heavy, heavy) < 0


def test_restart_reaches_every_point_that_names_victims():
    first, second = Thing(uid="1"), Thing(uid="2")
    chain = ((lambda *_args: [first], lambda *_args: [second], lambda *_args: [first, second]),)
    names = [name for name, point in POINTS.items() if isinstance(point.merge, Agree)]
    ours, reference = (Questions(lambda _: chain, restart=restart) for restart in (False, True))
    assert names == ["preemptable", "reclaimable", "unified_evictable"]
    assert all(getattr(ours, name)("actor", [first, second]) == [] for name in names)
    assert all(getattr(reference, name)("actor", [first, second]) == [first, second] for name in names)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("job-role-7", 7), ("job-role-07", 7), ("a-b-c-+3", 3), ("job-7", -1), ("job-role-x", -1), ("job--", -1),
        ("job-role-1_0", -1), ("job-role-99999999999999999999", -1),
    ],
)  # fmt: skip
def test_pod_index(name, index):
    assert pod_index(name) == index


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(("j-r-2", 9, "z"), ("j-r-10", 1, "a"), -1, id="indexes as numbers, before age"),
        pytest.param(("j-r-2", 9, "a"), ("other", 1, "b"), 1, id="only one has an index: age"),
        pytest.param(("j-r-2", 1, "b"), ("k-r-2", 1, "a"), 1, id="same index and age: uid"),
        pytest.param(("j-r-2", 1, "a"), ("j-r-2", 1, "a"), 0, id="the same task"),
    ],
)
def test_default_order_of_tasks(left, right, expected):
    tasks = [Thing(index=pod_index(name), created=created, uid=uid) for name, created, uid in (left, right)]
    assert order.by_turn(*tasks) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.text("ab", max_size=2)), max_size=10))
def test_task_keys_sort_as_the_comparison(rows):
    tasks = [Thing(index=index - 1, created=created, uid=uid) for index, created, uid in rows]
    assert sorted(tasks, key=order.TaskTurn) == sorted(tasks, key=cmp_to_key(order.by_turn))


def test_page_has_every_point_with_all_its_names():
    page = generate_page()
    for point in POINTS.values():
        row = next(line for line in page.splitlines() if f"| `{point.name}` |" in line)
        words = (point.registration, point.seed, *point.query, *point.switches)
        assert all(word in row for word in words)
        assert f"### {point.name}({', '.join(point.arguments)})" in page


REGISTRATIONS = """
AddJobOrderFn AddQueueOrderFn AddTaskOrderFn AddSubJobOrderFn AddClusterOrderFn AddVictimQueueOrderFn AddPredicateFn
AddPrePredicateFn AddNodeOrderFn AddBatchNodeOrderFn AddNodeMapFn AddNodeReduceFn AddBestNodeFn AddHyperNodeOrderFn
AddHyperNodeGradientForJobFn AddHyperNodeGradientForSubJobFn AddPreemptableFn AddReclaimableFn AddUnifiedEvictableFn
AddOverusedFn AddAllocatableFn AddPreemptiveFn AddJobReadyFn AddJobPipelinedFn AddSubJobReadyFn AddSubJobPipelinedFn
AddJobStarvingFns AddJobValidFn AddJobEnqueueableFn AddJobEnqueuedFn AddTargetJobFn AddReservedNodesFn AddVictimTasksFns
AddSimulateAddTaskFn AddSimulateRemoveTaskFn AddSimulatePredicateFn AddSimulateAllocatableFn AddEventHandler
RegisterBinder SetupBindContextExtension
"""

DESCRIBED_FIRST = """
AddJobOrderFn AddQueueOrderFn AddTaskOrderFn AddPredicateFn AddPrePredicateFn AddNodeOrderFn AddBatchNodeOrderFn
AddBestNodeFn AddPreemptableFn AddReclaimableFn AddOverusedFn AddAllocatableFn AddJobReadyFn AddJobPipelinedFn
AddJobValidFn AddJobEnqueueableFn AddVictimTasksFn
"""


def test_page_lists_the_registrations_of_the_reference_and_no_other():
    """S0-25: every registration of the reference has its Python name, and none is invented."""
    on_page = re.findall(r"\bAdd\w+Fns?\b|AddEventHandler|RegisterBinder|SetupBindContextExtension", generate_page())
    assert set(on_page) == {*REGISTRATIONS.split(), "AddVictimTasksFn"}


def test_the_first_described_registrations_are_marked():
    assert sorted(point.seed for point in POINTS.values() if point.seed) == sorted(DESCRIBED_FIRST.split())


def python_name(go):
    words = re.sub(r"^Add|Fns?$", "", go)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower()


def test_python_names_follow_the_rule():
    named = [point for point in POINTS.values() if point.registration != "AddEventHandler"]
    assert {point.name for point in named} == {python_name(point.registration) for point in named}
    assert all(python_name(point.registration) == point.name for point in named)
