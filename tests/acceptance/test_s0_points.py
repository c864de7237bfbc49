"""Acceptance rows S0: how the answers of plugins become one, asked through real sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.session.reference import ReferenceView
from stromboli.model.task import Task
from stromboli.plugin import Reason
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, answering, binds, conf, messages, task_of

TASKS = [node("n1", cpu=9), pod_group("v"), *(pod(f"T{i}", group="v", on="n1") for i in range(1, 5)), pod_group("g"),
         pod("p", group="g")]  # fmt: skip

Names = Sequence[str] | None


def always(answer: Any) -> Callable[..., Any]:
    return lambda *_arguments: answer


def tiers_of(point: str, answers: Sequence[Sequence[Any]], answer: Callable[[Any], Any] = always) -> Any:
    """The text of a configuration with a plugin an answer, tier by tier, and the plugins."""
    names = [[f"plugin{tier}{number}" for number in range(len(own))] for tier, own in enumerate(answers)]
    plugins = [
        answering(name, **{point: answer(value)})
        for own, values in zip(names, answers, strict=True)
        for name, value in zip(own, values, strict=True)
    ]
    return [" ".join(own) for own in names], plugins


def bench_of(point: str, answers: Sequence[Sequence[Any]], answer: Any = always, *, compat: bool = False) -> Bench:
    tiers, plugins = tiers_of(point, answers, answer)
    return Bench(TASKS, conf(*tiers), *plugins, compat=compat)


# ---------------------------------------------------------------------- comparisons


@pytest.mark.parametrize(("tiers", "first"), [(("gang", "drf"), "greedy"), (("drf", "gang"), "ready")])
def test_S0_26_the_first_tier_with_an_opinion_decides(tiers: tuple[str, str], first: str) -> None:
    """gang wants the incomplete job first, drf the one that holds less."""
    objects = [node("n1", cpu=4, memory="64Gi"), pod_group("greedy", min_member=3), pod_group("ready", min_member=1),
               *(pod(f"greedy-{i}", group="greedy", on="n1" if i < 2 else "") for i in range(3)),
               *(pod(f"ready-{i}", group="ready", on="n1" if i < 1 else "") for i in range(2))]  # fmt: skip
    plan = Bench(objects, conf(*tiers)).cycle()
    assert [bind.job for bind in plan.binds] == [f"default/{first}"]


def test_S0_26_negative_means_left_first_and_lower_tiers_are_overridden() -> None:
    def by_name(sign: int) -> Callable[..., int]:
        return lambda left, right: sign * ((left.uid > right.uid) - (left.uid < right.uid))

    with bench_of("job_order", [[1], [-1]], by_name).open() as session:
        first, second = session.jobs["default/g"], session.jobs["default/v"]
        assert (session.ask.job_order(first, second), session.ask.job_order(second, first)) == (-1, 1)


@pytest.mark.parametrize(("created", "first"), [((5, 9), "a"), ((9, 5), "b"), ((5, 5), "a")])
def test_S0_27_equal_jobs_go_by_age_then_by_uid(created: tuple[int, int], first: str) -> None:
    jobs = [pod_group(name, created=age) for name, age in zip("ab", created, strict=True)]
    plan = Bench([node("n1", cpu=1), *jobs, pod("b-0", group="b"), pod("a-0", group="a")], conf("gang")).cycle()
    assert [bind.job for bind in plan.binds] == [f"default/{first}"]


# ---------------------------------------------------------------------- votes

VOTES = [
    pytest.param([[1, 0, -1]], False, id="S0-28-a-reject-in-the-tier"),
    pytest.param([[-1, 1]], False, id="S0-28-at-once"),
    pytest.param([[1], [-1]], True, id="S0-29-tier-1-permits"),
    pytest.param([[0], [-1]], False, id="S0-29-tier-1-abstains"),
    pytest.param([[0, 0]], True, id="S0-29-only-abstentions"),
    pytest.param([], True, id="S0-29-no-plugin"),
]


@pytest.mark.parametrize(("votes", "permitted"), VOTES)
def test_votes_on_enqueueing(votes: list[list[int]], permitted: bool) -> None:
    tiers, plugins = tiers_of("job_enqueueable", votes)
    waiting = [node("n1"), pod_group("g", phase="Pending", minResources={"cpu": "1"}), pod("p", group="g")]
    bench = Bench(waiting, conf(*tiers, actions="enqueue, allocate"), *plugins)
    assert binds(bench.cycle()) == ({"p": "n1"} if permitted else {})


@pytest.mark.parametrize(("votes", "permitted"), VOTES)
def test_votes_on_pipelining(votes: list[list[int]], permitted: bool) -> None:
    with bench_of("job_pipelined", votes).open() as session:
        assert session.ask.job_pipelined(session.jobs["default/g"]) is permitted


def test_S0_28_no_plugin_is_asked_after_a_reject() -> None:
    asked: list[int] = []

    def vote(answer: int) -> Callable[..., int]:
        def asked_once(*_: object) -> int:
            asked.append(answer)
            return answer

        return asked_once

    with bench_of("job_pipelined", [[0, -1, 2], [3]], vote).open() as session:
        assert session.ask.job_pipelined(session.jobs["default/g"]) is False
    assert asked == [0, -1]


# ---------------------------------------------------------------------- victims


def naming(names: Names) -> Callable[..., Any]:
    """Answers with those candidates, in the order of the names; None abstains."""

    def victims(_actor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        by_name = {task.name: task for task in candidates}
        return None if names is None else [by_name[name] for name in names]

    return victims


T: dict[str, list[str]] = {key: [f"T{digit}" for digit in key] for key in ("1", "2", "3", "12", "123", "234", "23")}
VICTIMS = [
    pytest.param([[T["123"], T["234"]]], T["23"], T["23"], id="S0-30-intersection"),
    pytest.param([[T["123"]], [T["234"]]], T["123"], T["123"], id="S0-30-first-tier-with-a-result-ends"),
    pytest.param([[None, T["234"]]], T["234"], T["234"], id="S0-30-vote-0-abstains"),
    pytest.param([[[]], [T["1"]]], T["1"], T["1"], id="S0-31-an-empty-list-ends-only-its-tier"),
    pytest.param([[T["12"], []], [T["1"]]], T["1"], T["1"], id="S0-31-a-later-empty-list-too"),
    pytest.param([[T["1"], T["2"], T["12"]]], [], T["12"], id="S0-32-none-that-not-all-accept"),
]


@pytest.mark.parametrize("compat", [False, True], ids=["ours", "compat"])
@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
@pytest.mark.parametrize(("named", "ours", "reference"), VICTIMS)
def test_victims(point: str, named: Any, ours: list[str], reference: list[str], compat: bool) -> None:
    with bench_of(point, named, naming, compat=compat).open() as session:
        candidates = [task_of(session, f"T{i}") for i in range(1, 5)]
        found = getattr(session.ask, point)(task_of(session, "p"), candidates)
    assert [task.name for task in found] == (reference if compat else ours)


SYSTEM = [node("n1", cpu=9), pod_group("v"), pod("T1", group="v", on="n1"), pod_group("s", namespace="kube-system"),
          pod("dns", group="s", namespace="kube-system", on="n1"), pod_group("g"), pod("p", group="g")]  # fmt: skip


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
@pytest.mark.parametrize(("compat", "victims"), [(False, []), (True, ["dns"])])
def test_what_conformance_refuses_no_other_tier_can_take(point: str, compat: bool, victims: list[str]) -> None:
    """Its empty answer ends its tier; in compat mode, as in the reference, the next one then names the pod."""
    greedy = answering("greedy", **{point: lambda _actor, candidates: list(candidates)})
    with Bench(SYSTEM, conf("conformance", "greedy"), greedy, compat=compat).open() as session:
        found = getattr(session.ask, point)(task_of(session, "p"), [task_of(session, "dns")])
        assert [task.name for task in found] == victims
        found = getattr(session.ask, point)(task_of(session, "p"), [task_of(session, "dns"), task_of(session, "T1")])
        assert [task.name for task in found] == ["T1"]


# ---------------------------------------------------------------------- nodes


def test_S0_33_predicates_are_asked_about_one_node_whatever_their_form() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    later = answering("later", predicate=lambda _task, where: Reason("full") if where.name != "n3" else None)
    objects = [node("n1", taints=[taint]), node("n2"), node("n3"), pod_group("g"), pod("p", group="g")]
    with Bench(objects, conf("gang", "later predicates"), later).open() as session:
        task, nodes, ask = task_of(session, "p"), session.nodes, session.ask
        texts = [
            [
                getattr(answer, "text", None)
                for answer in map(question, [task] * 3, [nodes[n] for n in ("n1", "n2", "n3")])
            ]
            for question in (ask.predicate, ask.predicate_for_allocate, ask.predicate_for_preempt)
        ]
    assert texts[0] == texts[1] == ["full", "full", None]
    tainted, curable, free = texts[2]
    assert "untolerated taint" in str(tainted)
    assert (curable, free) == (None, None)


def test_S0_33_a_part_of_a_job_that_is_not_split_is_ready_when_the_job_is() -> None:
    asked: list[str] = []

    def noting(name: str) -> Callable[[object], bool]:
        def answer(_asked: object) -> bool:
            asked.append(name)
            return True

        return answer

    plugin = answering("notes", sub_job_ready=noting("part"), job_ready=noting("job"))
    split = pod_group("s", subGroupPolicy=[{"name": "a", "subGroupSize": 1}])
    objects = [node("n1"), pod_group("g"), pod("p", group="g"), split, pod("q", group="s")]
    with Bench(objects, conf("notes"), plugin).open() as session:
        for uid in ("default/g", "default/s"):
            job = session.jobs[uid]
            assert session.ask.sub_job_ready(job, next(iter(session.sub_jobs(job).values())))
    assert asked == ["job", "part"]


def test_S0_33_the_first_error_refuses_and_scores_add_up() -> None:
    asked: list[str] = []

    def refuse(_task: Task, where: Any) -> Reason | None:
        asked.append("first")
        return reason if where.name == "n1" else None

    reason = Reason("not here")
    first = answering("first", predicate=refuse, node_order=lambda _task, where: 10.0 if where.name == "n2" else 15.0)
    second = answering("second", predicate=lambda *_: asked.append("second"), node_order=always(20.0))
    objects = [node("n1"), node("n2"), node("n3", unschedulable=True), pod_group("g"), pod("p", group="g")]
    bench = Bench(objects, conf("first second", "predicates"), first, second)
    with bench.open() as session:
        task, nodes = task_of(session, "p"), session.nodes
        assert session.ask.node_order(task, nodes["n2"]) == 30.0
        asked.clear()
        refused = session.ask.predicate(task, nodes["n1"])
        assert refused is not None
        assert refused.text == "not here"
        assert asked == ["first"]
        assert session.ask.predicate(task, nodes["n2"]) is None
    assert binds(bench.cycle()) == {"p": "n2"}


# ---------------------------------------------------------------------- yes or no

DISSENT: list[Any] = [
    pytest.param("job_valid", [None, ("No", "first"), ("No", "second")], ("No", "first"), None, id="job_valid"),
    pytest.param("job_ready", [True, False, True], False, True, id="job_ready"),
    pytest.param("allocatable", [True, False, True], False, True, id="allocatable"),
    pytest.param("overused", [False, True, False], True, False, id="overused"),
]


@pytest.mark.parametrize(("point", "answers", "merged", "default"), DISSENT)
def test_S0_34_one_dissenting_plugin_decides(point: str, answers: list[Any], merged: Any, default: Any) -> None:
    for given, expected in (([answers[:2], answers[2:]], merged), ([[answers[0]]], default), ([], default)):
        with bench_of(point, given).open() as session:
            queue, task = session.queues["default"], task_of(session, "p")
            arguments = {"job": session.jobs["default/g"], "queue": queue, "task": task}
            assert getattr(session.ask, point)(*(arguments[name] for name in POINTS[point].arguments)) == expected


def test_S0_34_an_invalid_job_is_left_out() -> None:
    invalid = lambda job: ("NotNow", "wait") if job.name == "g" else None  # noqa: E731
    bench = Bench([*TASKS, pod("q", group="v")], conf("judge", "predicates"), answering("judge", job_valid=invalid))
    assert binds(bench.cycle()) == {"q": "n1"}


@pytest.mark.parametrize(("point", "answer"), [("job_ready", False), ("allocatable", False), ("overused", True)])
def test_S0_34_one_dissenting_plugin_keeps_a_job_back(point: str, answer: bool) -> None:
    plugins = answering("yes", **{point: always(not answer)}), answering("no", **{point: always(answer)})
    plan = Bench(TASKS, conf("yes no", "predicates"), *plugins).cycle()
    assert plan.binds == []
    assert messages(plan, "default/g")


def test_S0_35_victim_tasks_joins_what_the_first_tier_names() -> None:
    answers = [[["T2"], ["T1", "T2"]], [["T3"]]]
    with bench_of("victim_tasks", answers, lambda names: lambda tasks: named(tasks, names)).open() as session:
        tasks = [task_of(session, f"T{i}") for i in range(1, 5)]
        assert [task.name for task in session.ask.victim_tasks(tasks)] == ["T2", "T1"]


def test_S0_35_shuffle_evicts_the_tasks_they_name() -> None:
    stub = answering("stub", victim_tasks=lambda tasks: [task for task in tasks if task.name == "b"])
    pods = [pod(name, group="g", on="n1") for name in "abc"]
    plan = Bench([node("n1"), pod_group("g"), *pods], conf("stub", actions="shuffle"), stub).cycle()
    assert [(eviction.key, eviction.reason) for eviction in plan.evictions] == [("default/b", "shuffle")]


def named(tasks: Sequence[Task], names: Sequence[str]) -> list[Task]:
    return [task for name in names for task in tasks if task.name == name]


# ---------------------------------------------------------------------- registration


def test_S0_24_every_point_can_be_registered_in_a_session() -> None:
    class Stub(Plugin):
        name = "stub"

        def on_session_open(self, session: ClusterView) -> None:
            for point in POINTS:
                getattr(session, f"add_{point}")(self.name, always(None))

    with Bench(TASKS, conf("stub"), Stub).open() as session:
        assert session.plan.inconsistencies == []
        asked = {point for point, plugins in ReferenceView(session).points.items() if "stub" in plugins}
    assert asked == set(POINTS) - {"cluster_order"}  # its switch is off unless written


SEVENTEEN = {
    "AddJobOrderFn": "job_order", "AddQueueOrderFn": "queue_order", "AddTaskOrderFn": "task_order",
    "AddPredicateFn": "predicate", "AddPrePredicateFn": "pre_predicate", "AddNodeOrderFn": "node_order",
    "AddBatchNodeOrderFn": "batch_node_order", "AddBestNodeFn": "best_node", "AddPreemptableFn": "preemptable",
    "AddReclaimableFn": "reclaimable", "AddOverusedFn": "overused", "AddAllocatableFn": "allocatable",
    "AddJobReadyFn": "job_ready", "AddJobPipelinedFn": "job_pipelined", "AddJobValidFn": "job_valid",
    "AddJobEnqueueableFn": "job_enqueueable", "AddVictimTasksFn": "victim_tasks",
}  # fmt: skip


@pytest.mark.parametrize(("seed", "name"), SEVENTEEN.items())
def test_S0_25_the_seventeen_first_registrations_have_their_python_names(seed: str, name: str) -> None:
    called: list[str] = []
    with Bench(TASKS, conf("late"), answering("late", **{name: lambda *_: called.append(name)})).open() as session:
        assert name in ReferenceView(session).points
        assert "late" in ReferenceView(session).points[name]
    assert POINTS[name].seed == seed
    assert len(SEVENTEEN) == 17
