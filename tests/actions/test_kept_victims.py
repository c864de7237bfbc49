"""Victims of a node are remembered from pod to pod for as long as a vote would name the same."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.extension.plugin import Plugin
from stromboli.model.task import Task
from stromboli.narration.observe import SILENT, Counting, Observer
from stromboli.plugin import Reason, predicate
from stromboli.preemption.eviction_policy import PREEMPT
from stromboli.preemption.victim_search import Search
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf, task_of
from tests.acceptance.fights import fight, running, waiting


def nothing(session, search, plan):
    """Nothing happens."""


def far_away(session, search, plan):
    plan.evict(task_of(session, "a-f"), "test")


def untold(session, search, plan):
    plan.evict(task_of(session, "b-0"), "test")


def told_of_one(session, search, plan):
    plan.evict(task_of(session, "b-0"), "test")
    search.kept.evicted(0, [task_of(session, "b-0")])


def told_of_one_of_two(session, search, plan):
    plan.evict(task_of(session, "c-0"), "test")
    search.kept.evicted(0, [task_of(session, "c-0")])


def told_of_another_node(session, search, plan):
    search.kept.evicted(1, [])


def searches(change, *, asking="x-0"):
    """The victims on n1 before and after, and how often plugins were asked for the second time."""
    far = running("a", 1, "n2")
    far[1]["metadata"]["name"] = "a-f"
    crowd = [*running("a", 1, "n1"), far[1], *running("b", 1, "n1"), *running("c", 2, "n1")]
    pods = waiting("x", 2)
    pods[2]["metadata"]["labels"] = {"unlike": "others"}
    with fight(crowd, pods, nodes=2).open() as session, session.statement() as plan:
        job = session.jobs["default/x"]
        search = Search(session, job, PREEMPT, lambda other: other is not job, minimal=True)
        kept = search.kept
        assert kept is not None
        asked: list[Any] = []
        vote = kept._vote

        def noting(*each):
            asked.append(each)
            return vote(*each)

        kept._vote = noting
        first = [
            each.name for each in search.victims(task_of(session, "x-0"), 0, search.reach(task_of(session, "x-0")))
        ]
        change(session, search, plan)
        del asked[:]
        task = task_of(session, asking)
        return first, [each.name for each in search.victims(task, 0, search.reach(task))], len(asked)


@pytest.mark.parametrize(
    ("change", "options", "gone", "votes"),
    [
        pytest.param(nothing, {}, [], 0, id="nothing has happened"),
        pytest.param(nothing, {"asking": "x-1"}, [], 1, id="an unlike pod"),
        pytest.param(far_away, {}, [], 1, id="one of the jobs has lost a pod elsewhere"),
        pytest.param(untold, {}, ["b-0"], 1, id="a pod there is gone"),
        pytest.param(told_of_one, {}, ["b-0"], 0, id="its job's only pod there is told to be gone"),
        pytest.param(told_of_one_of_two, {}, ["c-0"], 1, id="one of its job's two pods there is told to be gone"),
        pytest.param(told_of_another_node, {}, [], 0, id="what is told of another node"),
    ],
)  # fmt: skip
def test_plugins_are_asked_again_where_something_has_happened(change, options, gone, votes):
    before, after, asked = searches(change, **options)
    assert sorted(before) == ["a-0", "b-0", "c-0", "c-1"]
    assert (after, asked) == ([name for name in before if name not in gone], votes)


@pytest.mark.parametrize(
    ("crowd", "names", "of"),
    [
        pytest.param([running("a", 1), running("b", 1)], ["a-0", "b-0"], "default", id="each the only one"),
        pytest.param([running("a", 1), running("b", 2)], [], "default", id="the first comes before a second"),
        pytest.param([running("a", 1), running("b", 1, queue="q")], [], "", id="of two queues"),
    ],
)
def test_victims_that_are_each_the_only_one_of_their_job(crowd, names, of):
    unlike = waiting("y", 1, requests={"memory": "1Mi"})
    with fight([queue("q")], *crowd, waiting("x", 1), unlike).open() as session:
        job, task = session.jobs["default/x"], task_of(session, "x-0")
        search = Search(session, job, PREEMPT, lambda other: other is not job, minimal=True)
        kept = search.kept
        assert kept is not None
        assert kept.one_each(0) == ([], "")
        victims = search.victims(task, 0, search.reach(task))
        found, queue_name = kept.one_each(0)
        expected = [each.name for each in victims if each.name in names or not names]
        if of and len(crowd[1]) == 3:
            expected = expected[: next(n for n, name in enumerate(expected) if name.startswith("b"))]
        assert ([each.name for each in found], queue_name) == (expected if of else [], of)
        left = kept.left(task, 0)
        assert left is not None
        assert left.victims == victims
        assert kept.left(task_of(session, "y-0"), 0) is None
        assert kept.left(task, 1) is None


class Picky(Plugin):
    """Refuses one pod on all nodes; a predicate without a key is asked about each pod."""

    name = "picky"

    @predicate
    def fits(self, task: Task, node: Any) -> Reason | None:
        return Reason("not this one") if task.name == "g0" else None


@pytest.mark.parametrize("observer", [SILENT, Counting()], ids=["unheard", "heard"])
def test_a_pod_is_looked_at_after_an_equal_one_that_a_predicate_refused_by_itself(observer: Observer) -> None:
    rank = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    objects = [
        node("n0", cpu=4), rank, pod_group("low", min_member=0, phase="Running"),
        pod("low", group="low", on="n0", cpu=4, priority=1), pod_group("g", priorityClassName="high"),
        *(pod(f"g{number}", group="g", priority=9, cpu=4) for number in range(2)),
    ]  # fmt: skip
    text = conf("gang priority", "predicates picky", actions="allocate, preempt")
    plan = Bench(objects, text, Picky).cycle(observer)
    assert [one.key for one in plan.evictions] == ["default/low"]
    assert [one.key for one in plan.reservations] == ["default/g1"]
