"""What a session takes for promised where some of its plugins promise it, and how often questions are merged."""

from __future__ import annotations

import pytest

from stromboli.framework.extension.ask import Questions
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.plugin import Plugin, allocatable, job_starving
from stromboli.testing.builders import node
from tests.acceptance.bench import Bench, conf


class Promising(Plugin):
    """Promises with both of its hooks."""

    name = "promising"

    @allocatable
    def any_task(self, _queue: Queue, _task: Task) -> bool:
        return True

    @allocatable.many(own=True)
    def all_of_them(self, _queue: Queue, _task: Task, k: int) -> int:
        return k

    @job_starving(own=True)
    def content(self, _job: Job) -> bool:
        return False


class Free(Plugin):
    """Promises nothing."""

    name = "free"

    @allocatable
    def any_task(self, _queue: Queue, _task: Task) -> bool:
        return True

    @allocatable.many
    def all_of_them(self, _queue: Queue, _task: Task, k: int) -> int:
        return k

    @job_starving
    def always(self, _job: Job) -> bool:
        return True


class OneByOne(Plugin):
    """Has no form for several tasks."""

    name = "one-by-one"

    @allocatable
    def any_task(self, _queue: Queue, _task: Task) -> bool:
        return True


@pytest.mark.parametrize(
    ("tiers", "own_quota", "sated"),
    [
        pytest.param(("promising",), True, True, id="the only plugin promises"),
        pytest.param(("free",), False, False, id="it does not"),
        pytest.param(("promising free",), False, True, id="one of two does"),
        pytest.param(("free promising",), False, True, id="the second one does"),
        pytest.param(("promising one-by-one",), False, True, id="the other one has no form for several tasks"),
        pytest.param(("promising", "free"), False, True, id="the first tier does, which decides who starves"),
        pytest.param(("free", "promising"), False, False, id="the second tier does"),
        pytest.param(("predicates",), True, False, id="nothing is asked"),
    ],
)
def test_a_quota_is_kept_where_all_promise_and_jobs_are_sated_where_one_does(
    tiers: tuple[str, ...], own_quota: bool, sated: bool
) -> None:
    with Bench([node("n0")], conf(*tiers), Promising, Free, OneByOne).open() as session:
        assert (session.hooks.own_quotas["allocatable"], session.hooks.sates_settled) == (own_quota, sated)


def test_a_question_is_merged_when_it_is_first_asked_for_and_not_again() -> None:
    merged: list[str] = []

    def chain_of(point: str) -> tuple[tuple[object, ...], ...]:
        merged.append(point)
        return ()

    asked = Questions(chain_of)  # type: ignore[arg-type]
    assert merged == []
    assert asked.allocatable is asked.allocatable
    assert asked.sub_job_ready is asked.sub_job_ready
    assert merged == ["allocatable", "sub_job_ready", "job_ready"]
