"""What preempt tells of its turns, and that jobs after one that is passed over have theirs."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.narration.observe import Counting
from stromboli.plugin import Reason
from stromboli.testing.builders import node, pod
from tests.acceptance.bench import Bench, answering, conf
from tests.acceptance.fights import CLASSES, evicted, fight, running, waiting


@pytest.mark.parametrize(
    ("key", "cores", "found"),
    [
        ("metric.eviction_transaction", 4, [{"action": "preempt"}]),
        ("metric.preemption_victims", 4, [{"count": 4}]),
        ("metric.preemption_attempt", 4, [{}]),
        ("metric.eviction_transaction", 9, []),
        ("no_preemptors", 4, [{"queue": "default"}]),
    ],
)
def test_what_is_told_of_a_job_that_needs_one_eviction_or_none(key: str, cores: int, found: list[Any]) -> None:
    observer = Counting((key,))
    plan = fight(running("l", 4), waiting("h", 1), cpu=cores).cycle(observer)
    assert [fields for _, fields in observer.told] == found
    assert len(evicted(plan)) == (cores == 4)


def test_a_job_that_idle_room_serves_keeps_no_other_from_its_victim() -> None:
    """The first fits on what is idle of n2; the second needs a whole node."""
    text = conf("conformance gang priority", "predicates", actions="preempt, allocate")
    jobs = waiting("h", 1), waiting("i", 1, cpu=4)
    plan = fight(running("l", 4), running("m", 3, "n2"), *jobs, text=text, nodes=2).cycle()
    assert sorted(evicted(plan)) == [f"l-{number}" for number in range(4)]


def test_a_task_refused_before_its_nodes_are_tried_evicts_no_pod_and_its_reason_is_logged() -> None:
    observer = Counting(("pre_predicate_failed",))
    refuses = answering("refuses", pre_predicate=lambda task: Reason("not yet") if task.name == "h-0" else None)
    text = conf("conformance gang priority refuses", "predicates", actions="preempt")
    plan = Bench([node("n1", cpu=4), *CLASSES, *running("l", 4), *waiting("h", 1)], text, refuses).cycle(observer)
    assert {(str(each["task"]), each["error"]) for each in observer.of("pre_predicate_failed")} == {
        ("Task(default/h-0, Pending)", "not yet")
    }
    assert evicted(plan) == []


def test_what_a_job_takes_from_itself_is_counted() -> None:
    """Its second pod is more important than its first, and gang lets it take what it will."""
    observer = Counting(("metric.preemption_victims", "metric.preemption_attempt"))
    job = [*running("j", 1, cpu=4, least=2, priorities=(1,)), pod("j-1", group="j", cpu=4, memory=0, priority=10)]
    text = conf("[{name: gang, enablePreemptable: false}]", "priority", "predicates", actions="preempt")
    assert evicted(fight(job, text=text).cycle(observer)) == ["j-0"]
    assert observer.of("metric.preemption_victims") == [{"count": 1}]
    assert len(observer.of("metric.preemption_attempt")) == 1
