from __future__ import annotations

from types import SimpleNamespace

import pytest

from stromboli.plugins.priority import Priority
from tests.plugins.support import FakeSession, asked, make_job, make_task, opened


def plugin_with(*jobs):
    session = FakeSession(jobs=jobs)
    return opened(Priority(), session), session


@pytest.mark.parametrize(
    ("left", "right", "answer"), [(10, 5, -1), (5, 10, 1), (5, 5, 0)], ids=["S3-40-first", "S3-40-last", "S3-40-equal"]
)
@pytest.mark.parametrize("point", ["job_order", "task_order", "sub_job_order"])
def test_higher_first(point, left, right, answer):
    plugin, _ = plugin_with()
    made = {
        "job_order": lambda number: make_job(f"ns/j{number}", priority=number),
        "task_order": lambda number: make_task(priority=number),
        "sub_job_order": lambda number: SimpleNamespace(priority=number),
    }[point]
    one, other = made(left), made(right)
    assert asked(plugin, point)(one, other) == answer
    key = asked(plugin, point, "key")
    assert (key(one) > key(other)) - (key(one) < key(other)) == answer


@pytest.mark.parametrize(
    ("theirs", "mine", "evicted"),
    [(1, 2, True), (2, 2, False), (3, 2, False)],
    ids=["S3-41-lower", "S3-41-equal", "S3-41-higher"],
)
def test_only_less_important_jobs_lose_tasks(theirs, mine, evicted):
    victim, preemptor = make_task("v", "ns/theirs", priority=9), make_task("p", "ns/mine", priority=1)
    plugin, _ = plugin_with(
        make_job("ns/theirs", [victim], priority=theirs), make_job("ns/mine", [preemptor], priority=mine)
    )
    expected = [victim] if evicted else []
    assert plugin.less_important(preemptor, [victim]) == expected
    for kind in ("GangPreempt", "TaskPreempt"):
        assert (
            plugin.less_important_for_gang(SimpleNamespace(kind=kind, job=plugin.session.jobs["ns/mine"]), [victim])
            == expected
        )


@pytest.mark.parametrize(
    ("theirs", "evicted"), [(1, True), (2, False), (3, False)], ids=["S3-41-lower-task", "S3-41-equal-task", "higher"]
)
def test_within_a_job_tasks_are_compared(theirs, evicted):
    victim, preemptor = make_task("v", priority=theirs), make_task("p", priority=2)
    plugin, _ = plugin_with(make_job("ns/j", [victim, preemptor], priority=7))
    assert plugin.less_important(preemptor, [victim]) == ([victim] if evicted else [])


def test_reclaiming_gangs_do_not_look_at_priorities():
    victim = make_task("v", "ns/theirs")
    plugin, _ = plugin_with(make_job("ns/theirs", [victim], priority=9), make_job("ns/mine", priority=1))
    context = SimpleNamespace(kind="GangReclaim", job=plugin.session.jobs["ns/mine"])
    assert plugin.less_important_for_gang(context, [victim]) == [victim]


def test_orphans_are_no_victims_and_no_preemptors():
    orphan, task = make_task("o", "ns/gone"), make_task("v", "ns/here")
    plugin, session = plugin_with(make_job("ns/here", [task], priority=9))
    assert plugin.less_important(orphan, [task]) == []
    assert plugin.less_important(task, [orphan]) == []
    assert [told["what"] for told in session.told("orphan_skipped")] == ["preemptor", "preemptee"]


@pytest.mark.parametrize(
    ("tasks", "starving"),
    [
        ({"Running": 2, "Pipelined": 1, "Pending": 1}, True),
        ({"Running": 3, "Pipelined": 1}, False),
        ({"Running": 3, "Succeeded": 1}, False),
        ({"Running": 3, "Failed": 1}, True),
        ({"Running": 3, "Releasing": 1}, True),
    ],
    ids=["S3-42-3-of-4", "all-placed", "succeeded-counts", "failed-never-counts", "ending-does-not-count"],
)
def test_starving_until_all_tasks_are_placed(tasks, starving):
    job = make_job(tasks=tasks, min_member=1)
    plugin, _ = plugin_with(job)
    assert plugin.wants_all(job) == starving


def test_all_are_placed_after_as_many_as_wait():
    job = make_job(tasks={"Running": 1, "Pipelined": 1, "Pending": 3})
    plugin, _ = plugin_with(job)
    assert [plugin.all_wanted_after(job, make_task(), k) for k in (2, 3, 4)] == [3, 3, 3]


def test_what_is_told():
    victim, preemptor = make_task("v", "ns/theirs"), make_task("p", "ns/mine")
    plugin, session = plugin_with(
        make_job("ns/theirs", [victim], priority=3), make_job("ns/mine", [preemptor], priority=3)
    )
    plugin.less_important(preemptor, [victim])
    plugin.important_job_first(*session.jobs.peek())
    assert session.told("priority_refused_job") == [{"task": "ns/v", "preemptee": 3, "preemptor": 3}]
    assert session.told("priority_victims") == [{"victims": []}]
    assert session.told("priority_job_order")[0]["left"] == "ns/theirs"
