"""Votes on victims, and answers about whole jobs, are kept only where all plugins that decide promise ``own=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from stromboli.framework.extension.prefilters import AllAgree
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.plugin import Plugin, preemptable, task_order
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf
from tests.acceptance.fights import CLASSES, evicted, priority_class, reserved, running, waiting

PODS = 4
"""So many pods wait, each of which needs the room of one victim."""
FIRST, SECOND = ("outsider gang priority",), ("gang priority", "outsider")


class Outsider(NamedTuple):
    """A plugin from outside: whether its hooks promise, what its form for jobs says, and what it does."""

    vote: bool = True
    job: bool = True
    task: bool = True
    protects: bool = False
    abstains: bool = False
    tiers: Sequence[str] = FIRST
    allows: bool = True

    def made(self, asked: list[Task], asked_of: set[tuple[str, str]]) -> type[Plugin]:
        """The plugin; it notes the tasks for which it votes, and for which job it was asked about which others."""
        abstains, allows = self.abstains, self.allows

        class Made(Plugin):
            name = "outsider"

            @preemptable(own=self.vote, protects=self.protects)
            def votes(self, preemptor: Task, preemptees: Sequence[Task]) -> Sequence[Task] | None:
                asked.append(preemptor)
                return None if abstains else preemptees

            @preemptable.job(own=self.job)
            def may_name(self, preemptor: Task, job: Job) -> bool:
                asked_of.add((preemptor.job, job.uid))
                return allows

            @task_order
            def same(self, left: Task, right: Task) -> int:
                return 0

            @task_order.key(own=self.task)
            def none(self, task: Task) -> int:
                return 0

        return Made

    def bench(self, *gangs: Any) -> tuple[Bench, list[Task], set[tuple[str, str]]]:
        """A node full of jobs of one pod and of waiting gangs, and the plugin's notes of what it was asked."""
        asked, asked_of = list[Task](), set[tuple[str, str]]()
        crowd = [each for number in range(PODS) for each in running(f"v{number}", 1)]
        text, plugin = conf(*self.tiers, actions="preempt"), self.made(asked, asked_of)
        return Bench([node("n1", cpu=PODS), *CLASSES, *crowd, *gangs], text, plugin), asked, asked_of


def saying(
    says: Callable[[Task, Job], bool], *, protects: bool = False, own: bool = False, by_priority: bool = False
) -> type[Plugin]:
    """A plugin that lets all candidates go, but for those of jobs of which ``says`` is false."""

    class Saying(Plugin):
        name = "outsider"

        @preemptable(own=own, protects=protects)
        def votes(self, preemptor: Task, preemptees: Sequence[Task]) -> Sequence[Task]:
            return preemptees

        @preemptable.job(own=own, by_priority=by_priority)
        def may_name(self, preemptor: Task, job: Job) -> bool:
            return says(preemptor, job)

    return Saying


VOTES = [
    pytest.param(Outsider(), 1, id="all promise"),
    pytest.param(Outsider(protects=True), 1, id="all promise, and it protects"),
    pytest.param(Outsider(job=False), 1, id="what it says of whole jobs does not count"),
    pytest.param(Outsider(vote=False, tiers=SECOND), 0, id="a lower tier is not asked"),
    pytest.param(Outsider(vote=False), PODS, id="a voter without own"),
    pytest.param(Outsider(vote=False, protects=True), PODS, id="a guard without own"),
    pytest.param(Outsider(vote=False, protects=True, tiers=SECOND), PODS, id="a guard of a lower tier without own"),
    pytest.param(Outsider(abstains=True), 2 * PODS, id="a voter that abstains: the point is asked after it"),
    pytest.param(Outsider(task=False), PODS, id="a task order without own"),
]


@pytest.mark.parametrize(("outsider", "times"), VOTES)
def test_a_vote_is_kept_for_pods_that_are_alike(outsider: Outsider, times: int) -> None:
    bench, asked, _ = outsider.bench(*waiting("x", PODS))
    assert len(evicted(bench.cycle())) == PODS
    assert len(asked) == times


JOBS = [
    pytest.param(Outsider(), True, id="all promise"),
    pytest.param(Outsider(protects=True), True, id="all promise, and it protects"),
    pytest.param(Outsider(vote=False), True, id="its vote does not count"),
    pytest.param(Outsider(job=False, tiers=SECOND), True, id="a lower tier is not asked"),
    pytest.param(Outsider(job=False), False, id="a voter without own"),
    pytest.param(Outsider(job=False, protects=True), False, id="a guard without own"),
    pytest.param(Outsider(job=False, protects=True, tiers=SECOND), False, id="a guard of a lower tier without own"),
]


@pytest.mark.parametrize(("outsider", "kept"), JOBS)
def test_what_is_said_of_a_job_is_kept_for_other_jobs_until_it_moves(outsider: Outsider, kept: bool) -> None:
    """The second job evicts others than the first, and what was said of these stands."""
    bench, _, asked_of = outsider.bench(*waiting("x", 1), *waiting("y", 1))
    with bench.open() as session:
        prefilter = session.hooks.job_prefilters["preemptable"]
        assert isinstance(prefilter, AllAgree)
        assert prefilter.own is kept
    asked_of.clear()
    plan = bench.cycle()
    assert len(evicted(plan)) == 2
    moved = {eviction.job for eviction in plan.evictions}
    of_others = [uid for _, uid in asked_of if uid not in moved]
    decides = outsider.tiers is FIRST or outsider.protects
    assert len(of_others) == (PODS - 2) * (2 - kept) * decides


@pytest.mark.parametrize(("tiers", "kept"), [(FIRST, True), (("outsider", "gang priority"), False)])
def test_that_nothing_of_a_job_can_be_named_is_kept_where_no_later_tier_decides(
    tiers: Sequence[str], kept: bool
) -> None:
    bench, _, asked_of = Outsider(abstains=True, tiers=tiers, allows=False).bench(*waiting("x", 1), *waiting("y", 1))
    assert len(evicted(bench.cycle())) == (0 if kept else 2)
    assert len({uid for job, uid in asked_of if job == "default/x"}) == PODS
    assert len({uid for job, uid in asked_of if job == "default/y"}) == (0 if kept else PODS)


@pytest.mark.parametrize(("tiers", "asked"), [(FIRST, 0), (("outsider", "gang priority"), 2)])
def test_jobs_that_priority_rules_out_are_not_asked_about(tiers: Sequence[str], asked: int) -> None:
    """No plugin is asked whether x may evict jobs of its own priority, unless a tier without such a promise decides."""
    equal = [each for number in range(2) for each in running(f"e{number}", 1, cls="high")]
    bench, _, asked_of = Outsider(tiers=tiers).bench(*waiting("x", 1), *equal)
    bench.cycle()
    assert {uid for _, uid in asked_of} >= {f"default/v{number}" for number in range(PODS)}
    assert len([uid for _, uid in asked_of if uid.startswith("default/e")]) == asked


@pytest.mark.parametrize(("protects", "tiers"), [(False, FIRST), (True, FIRST), (True, SECOND)])
def test_one_job_of_a_queue_and_a_priority_is_asked_about_for_all(protects: bool, tiers: Sequence[str]) -> None:
    """It says that none of them may be evicted; of those of another priority it says that they may."""
    asked_of: list[str] = []

    def may_name(_preemptor: Task, job: Job) -> bool:
        asked_of.append(job.name)
        return job.priority > 1

    by_priority = saying(may_name, protects=protects, by_priority=True)
    low = [each for number in range(PODS) for each in running(f"v{number}", 1)]
    mid = [priority_class("mid", 5), *running("m", 1, cls="mid")]
    scene = [node("n1", cpu=PODS + 1), *CLASSES, *low, *mid, *waiting("x", 1)]
    plan = Bench(scene, conf(*tiers, actions="preempt"), by_priority).cycle()
    assert evicted(plan) == ["m-0"]
    assert len([name for name in asked_of if name.startswith("v")]) == 1


def test_what_a_later_tier_without_own_rules_out_is_asked_again() -> None:
    """For priority all jobs are equal; the second tier lets y evict, and x not."""
    for_y = saying(lambda preemptor, _job: preemptor.job == "default/y")
    scene = [node("n1", cpu=1), *CLASSES, *running("v", 1, cls="high"), *waiting("x", 1), *waiting("y", 1)]
    assert list(reserved(Bench(scene, conf(*SECOND, actions="preempt"), for_y).cycle())) == ["y-0"]


def test_what_was_named_for_another_pod_in_between_does_not_count() -> None:
    """x-1 may evict v-3 alone, which is not enough for it; x-0 and x-2 are alike, and may evict all others."""

    class ByLabel(Plugin):
        name = "outsider"

        @preemptable(own=True)
        def votes(self, preemptor: Task, preemptees: Sequence[Task]) -> Sequence[Task]:
            return [task for task in preemptees if (task.job == "default/v3") == ("odd" in preemptor.labels)]

    odd: dict[str, Any] = {"labels": {"odd": ""}, "cpu": 2}
    pods = [
        pod(f"x-{number}", group="x", **{"cpu": 1, "memory": 0, "priority": 10, **each})
        for number, each in enumerate(({}, odd, {}))
    ]
    crowd = [each for number in range(PODS) for each in running(f"v{number}", 1)]
    gang = [pod_group("x", min_member=2, priorityClassName="high"), *pods]
    bench = Bench([node("n1", cpu=PODS), *CLASSES, *crowd, *gang], conf(*FIRST, actions="preempt"), ByLabel)
    assert sorted(evicted(bench.cycle())) == ["v1-0", "v2-0"]


Pod = dict[str, Any]
PAIRS = [
    pytest.param({"cpu": 1}, {"cpu": "999m"}, id="spec"),
    pytest.param({"priority": 10}, {"priority": 9}, id="priority"),
    pytest.param(*({"annotations": {"volcano.sh/task-spec": role}} for role in "ab"), id="role"),
]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_form_for_jobs_is_asked_for_each_kind_of_pod(
    first: dict[str, Any], second: dict[str, Any], own: bool
) -> None:
    """It rules all jobs out for x-0, and none for x-1."""
    not_first = saying(lambda preemptor, _job: preemptor.name != "x-0", own=own)
    pods = [
        pod(f"x-{number}", group="x", **{"cpu": 1, "memory": 0, "priority": 10, **each})
        for number, each in enumerate((first, second))
    ]
    gang = [pod_group("x", min_member=1, priorityClassName="high"), *pods]
    bench = Bench([node("n1", cpu=1), *CLASSES, *running("v", 1), *gang], conf(*FIRST, actions="preempt"), not_first)
    assert list(reserved(bench.cycle())) == ["x-1"]
