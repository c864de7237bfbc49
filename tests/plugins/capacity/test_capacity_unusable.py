"""What capacity says of a queue that is closed, broken or above others, at each point, and which line tells it."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.books.cycle_state import CycleState
from stromboli.narration.observe import Counting
from stromboli.plugins.capacity import Capacity
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import GPU, Bench, conf, task_of
from tests.plugins.queue_jobs import evicted, job, many

KEYS = ("queue_closed_allocate", "capacity_hierarchy_invalid")
CLOSED, INVALID = KEYS
GOOD: dict[str, Any] = {"deserved": {"cpu": 9}}
FLAT = conf("capacity")
TREE = conf("[{name: capacity, enableHierarchy: true}]")
COMPAT = conf("[{name: capacity, enableHierarchy: true}]", more="compat: volcano")

POINTS = {
    "allocatable": lambda session, task, _: session.ask.allocatable(session.queues["mine"], task),
    "allocatable.many": lambda session, task, _: bool(
        session.hooks.batch_forms["allocatable"][0](session.queues["mine"], task, 1)
    ),
    "preemptive": lambda session, task, _: session.ask.preemptive(session.queues["mine"], [task]),
    "reclaimable": lambda session, task, victims: bool(session.ask.reclaimable(task, victims)),
}
SOUND = dict.fromkeys(POINTS, "")

UNUSABLE = [
    pytest.param(FLAT, queue("mine", **GOOD), [], SOUND, id="sound"),
    pytest.param(FLAT, queue("mine", state="Closed", **GOOD), [],
                 {"allocatable": CLOSED, "allocatable.many": CLOSED, "preemptive": CLOSED, "reclaimable": ""},
                 id="closed"),
    pytest.param(FLAT, queue("mine", state="Closing", **GOOD), [],
                 {"allocatable": CLOSED, "allocatable.many": CLOSED, "preemptive": CLOSED, "reclaimable": ""},
                 id="closing"),
    pytest.param(TREE, queue("mine", **GOOD), [], SOUND, id="sound in a tree"),
    pytest.param(TREE, queue("mine", parent="gone", **GOOD), [], dict.fromkeys(POINTS, INVALID), id="broken"),
    pytest.param(TREE, queue("mine", **GOOD), [queue("other", parent="gone")], SOUND, id="another one is broken"),
    pytest.param(COMPAT, queue("mine", **GOOD), [queue("other", parent="gone")], dict.fromkeys(POINTS, INVALID),
                 id="the whole tree counts as broken"),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("text", "mine", "others", "told"), UNUSABLE)
def test_a_queue_that_cannot_be_used_gets_nothing_and_a_line_says_why(point, text, mine, others, told):
    observer = Counting(KEYS)
    objects = [node("n1", cpu=9), queue("root"), mine, *others, queue("theirs"), *many(2, "theirs"),
               *job("new", "mine")]  # fmt: skip
    with Bench(objects, text, compat=text is COMPAT).open(observer) as session:
        observer.counts.clear()
        victims = [task_of(session, f"theirs-{i}-0") for i in range(2)]
        assert POINTS[point](session, task_of(session, "new-0"), victims) is (told[point] == "")
    assert observer.counts == ({told[point]: 1} if told[point] else {})


@pytest.mark.parametrize(("name", "expected"), [("A", False), ("A1", True)])
def test_only_queues_without_others_below_them_get_anything_and_nothing_is_told(name, expected):
    observer = Counting(KEYS)
    objects = [node("n1", cpu=9), queue("root"), queue("A", **GOOD), queue("A1", parent="A"), *job("new", "A1")]
    with Bench(objects, TREE).open(observer) as session:
        assert session.ask.allocatable(session.queues[name], task_of(session, "new-0")) is expected
    assert observer.counts == {}


ABOVE = [
    pytest.param(True, 0, False, id="its own share alone"),
    pytest.param(True, 1, False, id="its parent deserves no more"),
    pytest.param(True, 2, True, id="the one above that does"),
    pytest.param(False, 2, False, id="there is no tree"),
]


@pytest.mark.parametrize(("hierarchy", "level", "expected"), ABOVE)
def test_a_queue_takes_back_what_one_of_the_nearest_above_deserves(hierarchy, level, expected):
    arguments = f"arguments: {{ancestorReclaimLevel: {level}}}"
    text = conf(f"[{{name: capacity, enableHierarchy: {str(hierarchy).lower()}, {arguments}}}]")
    queues = [queue("root"), queue("A", deserved={"cpu": 4}), queue("B", parent="A", deserved={"cpu": 1}),
              queue("C", parent="B", deserved={"cpu": 1})]  # fmt: skip
    objects = [node("n1", cpu=9), *queues, *job("old", "C", running=1), *job("new", "C")]
    with Bench(objects, text).open() as session:
        assert session.ask.preemptive(session.queues["C"], [task_of(session, "new-0")]) is expected


@pytest.mark.parametrize("bad", [queue("mine", parent="gone"), queue("theirs", parent="gone")])
def test_from_a_queue_that_cannot_be_used_and_for_it_nothing_is_taken_whatever_others_would_give(bad):
    """gang would give all of it; nor may a move be tried in the queue."""
    text = conf("[{name: gang}, {name: capacity, enableHierarchy: true}]")
    queues = {one["metadata"]["name"]: one for one in (queue("mine", **GOOD), queue("theirs"), bad)}
    objects = [node("n1", cpu=9), queue("root"), *queues.values(), *many(2, "theirs"), *job("new", "mine")]
    with Bench(objects, text).open() as session:
        victims, task = [task_of(session, f"theirs-{i}-0") for i in range(2)], task_of(session, "new-0")
        assert not session.ask.reclaimable(task, victims)
        name = bad["metadata"]["name"]
        assert not session.ask.simulate_allocatable(CycleState(), session.queues[name], task)
        assert session.ask.simulate_allocatable(CycleState(), session.queues["default"], task)


def test_a_limit_above_counts_for_moves_that_are_tried():
    queues = [queue("root"), queue("A", capability={"cpu": 1}), queue("A1", parent="A")]
    objects = [node("n1", cpu=9), *queues, queue("A2", parent="A"),
               *job("old", "A2", running=1), *job("new", "A1")]  # fmt: skip
    with Bench(objects, TREE).open() as session:
        task = task_of(session, "new-0")
        assert not session.ask.simulate_allocatable(CycleState(), session.queues["A1"], task)
        assert not session.ask.simulate_allocatable(CycleState(), session.queues["root"], task), "others are below it"


def test_in_compat_mode_a_line_says_why_no_gang_takes_anything():
    class Context:
        kind = "GangReclaim"

    observer = Counting(KEYS)
    objects = [node("n1"), queue("root"), queue("theirs"), *many(1, "theirs"), queue("x", parent="gone")]
    with Bench(objects, COMPAT, compat=True).open(observer) as session:
        observer.counts.clear()
        assert session.ask.unified_evictable(Context(), [task_of(session, "theirs-0-0")]) == []
    assert observer.counts == {INVALID: 1}


def test_in_a_tree_queues_without_others_below_them_come_first_and_else_the_branches_are_compared():
    """A1 holds all that it deserves and B1 a quarter, but A an eighth of what it deserves and B a quarter."""
    queues = [queue("root"), queue("A", deserved={"cpu": 8}), queue("B", deserved={"cpu": 8}), queue("z"),
              queue("A1", parent="A", deserved={"cpu": 1}), queue("B1", parent="B", deserved={"cpu": 8})]  # fmt: skip
    objects = [node("n1", cpu=20), *queues, *job("a", "A1", running=1), *job("b", "B1", 2, running=2)]
    with Bench(objects, TREE).open() as session:
        order, found = session.ask.queue_order, session.queues
        assert order(found["A1"], found["B1"]) < 0 < order(found["B1"], found["A1"])
        assert order(found["z"], found["A"]) < 0 < order(found["A"], found["z"])


def test_in_compat_mode_each_queue_with_a_fault_is_told_and_no_order_of_queues_is_asked():
    observer = Counting(("queue_faulty",))
    objects = [node("n1"), queue("root"), queue("z", priority=1), queue("x", parent="gone"), queue("y", parent="x")]
    with Bench(objects, COMPAT, compat=True).open(observer) as session:
        assert {fields["queue"]: fields["fault"] for _, fields in observer.told} == {
            "x": "the queue x has invalid parent queue gone", "y": "the queue x has invalid parent queue gone",
        }  # fmt: skip
        assert session.ask.queue_order(session.queues["root"], session.queues["z"]) < 0, "by their names"
    with Bench(objects[:3], COMPAT, compat=True).open() as session:
        assert session.ask.queue_order(session.queues["root"], session.queues["z"]) > 0, "by their priorities"


def test_a_queue_with_jobs_and_others_below_it_says_what_is_wrong():
    objects = [node("n1"), queue("root"), queue("A"), queue("A1", parent="A"), *job("inner", "A")]
    with Bench(objects, TREE).open() as session:
        assert session.queues["A"].fault == "jobs belong to queues without others below them"
        assert not session.queues["A1"].fault


def test_relatives_are_looked_for_at_every_level_that_is_asked_for():
    """``A`` is above both, two levels up; what is next above them is not the same."""
    queues = [queue("root"), queue("A"), queue("A1", parent="A"), queue("A2", parent="A"), queue("A11", parent="A1"),
              queue("A22", parent="A2")]  # fmt: skip
    for level, spared in ((1, False), (2, True)):
        text = conf(f"[{{name: capacity, enableHierarchy: true, arguments: {{ancestorReclaimLevel: {level}}}}}]")
        objects = [node("n1"), *queues, *many(1, "A22"), *job("new", "A11")]
        with Bench(objects, text).open() as session:
            found = session.ask.reclaimable(task_of(session, "new-0"), [task_of(session, "A22-0-0")])
            assert bool(found) is not spared


def test_a_job_some_of_whose_tasks_ask_for_what_its_queue_deserves_none_of_gives_those():
    """Four cores are deserved and one is held; GPUs are not deserved, so that a pod with one may be taken."""
    queues = [queue("mine", deserved={"cpu": 4, GPU: 4}), queue("theirs", deserved={"cpu": 4})]
    theirs = [pod_group("t", queue="theirs", min_member=0, phase="Running"),
              pod("plain", group="t", cpu=1, memory=0, on="n1"),
              pod("card", group="t", cpu=0, memory=0, requests={GPU: 1}, on="n1")]  # fmt: skip
    asks = job("new", "mine", cpu=0, requests={GPU: 1})
    assert evicted(node("n1", cpu=4, resources={GPU: 1}), *queues, *theirs, *asks) == ["card"]


def test_no_level_and_no_timeout_are_said_by_a_zero():
    for given in ({"ancestorReclaimLevel": 0}, {"gate-timeout": "0s"}):
        assert Capacity(given).complaints == []
