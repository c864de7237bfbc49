"""What capacity says of a queue that is closed, broken or above others, at each point, and which line tells it."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.narration.observe import Counting
from stromboli.testing.builders import node, queue
from tests.acceptance.bench import Bench, conf, task_of
from tests.plugins.queue_jobs import job, many

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
