"""Acceptance rows S2: which pods preempt which within a queue, and what is decided in the end."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.extension.reason import Reason
from stromboli.model.names import PREEMPTABLE
from stromboli.plugin import Plugin, predicate
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, binds, conf, task_of
from tests.acceptance.fights import (
    CLASSES,
    ONE_TIER,
    PREEMPT,
    RECLAIM,
    evicted,
    fight,
    nominated,
    reserved,
    running,
    waiting,
)

LOWS = running("l", 4, priorities=(10, 9, 8, 7))
FREE = conf("conformance gang priority", actions="preempt")
"""Without a queue plugin, so that room alone decides."""


# ---------------------------------------------------------------------- which pods, and where


def test_S2_01_preempt_evicts_in_its_own_queue_alone_and_reclaim_in_others() -> None:
    queues = [queue("q1"), queue("q2")]
    own, others = running("own", 2, queue="q1"), running("other", 2, queue="q2")
    for action, taken in (("preempt", "own"), ("reclaim", "other")):
        bench = fight(queues, own, others, waiting("h", 1, queue="q1"), text=conf("conformance gang", actions=action))
        assert {name.partition("-")[0] for name in evicted(bench.cycle())} == {taken}


def test_S2_02_each_action_asks_its_own_points() -> None:
    asked: list[str] = []

    def spy(point: str, answer: Any) -> Any:
        def say(*arguments: Any) -> Any:
            asked.append(point)
            return arguments[1] if answer == "all" else answer

        return say

    answers = {"preemptable": "all", "reclaimable": "all", "allocatable": True, "overused": False, "preemptive": True}
    plugin = answering("spy", **{point: spy(point, answer) for point, answer in answers.items()})
    for action, points in (
        ("preempt", {"preemptable", "allocatable"}),
        ("reclaim", {"reclaimable", "overused", "preemptive"}),
    ):
        asked.clear()
        objects = [node("n1"), queue("q2"), *CLASSES, *LOWS]
        objects += running("m", 0) + waiting("h", 1, queue="q2" if action == "reclaim" else "default")
        Bench(objects, conf("gang spy", actions=action), plugin).cycle()
        assert set(asked) == points


def counted(*states: tuple[str, str]) -> list[Manifest]:
    return [pod(f"j-{i}", group="j", on=on, phase=phase, cpu=1) for i, (on, phase) in enumerate(states)]


@pytest.mark.parametrize(
    ("pods", "least", "starves"),
    [
        pytest.param(counted(("n1", "Running"), ("", "Pending")), 3, True, id="S2-03 one runs of three"),
        pytest.param(counted(("n1", "Running"), ("n1", "Running"), ("", "Pending")), 2, False, id="S2-03 enough run"),
        pytest.param(counted(("n1", "Running"), ("n1", "Succeeded")), 2, False, id="S2-04 done ones are ready"),
        pytest.param(counted(("n1", "Running"), ("n1", "Failed")), 2, True, id="S2-04 failed ones are not"),
    ],
)
def test_a_job_starves_while_fewer_of_its_pods_are_ready_than_its_minimum(
    pods: list[Manifest], least: int, starves: bool
) -> None:
    bench = Bench([node("n1", cpu=2), pod_group("j", min_member=least), *pods], conf("gang", actions="preempt"))
    with bench.open() as session:
        assert bool(session.ask.job_starving(session.jobs["default/j"])) is starves


def test_S2_03_S2_04_pipelined_tasks_wait_and_do_not_starve() -> None:
    bench = Bench([node("n1", cpu=2), pod_group("j", min_member=1), pod("j-0", group="j")], conf("gang"))
    with bench.open() as session, session.statement() as statement:
        job = session.jobs["default/j"]
        assert job.is_starving()
        statement.pipeline(task_of(session, "j-0"), "n1")
        assert (job.waiting_task_num(), job.ready_task_num(), job.is_starving()) == (1, 0, False)


@pytest.mark.parametrize(
    ("tiers", "starves"),
    [(("gang", "priority"), True), (("gang priority",), False), (("priority",), False), (("conformance",), False)],
)
def test_S2_05_the_first_tier_with_a_function_decides_whether_a_job_starves(tiers: Any, starves: bool) -> None:
    """One of one runs: gang says it starves below 2, priority that it wants nothing."""
    objects = [node("n1"), pod_group("j", min_member=2), *counted(("n1", "Running"))]
    with Bench(objects, conf(*tiers)).open() as session:
        assert bool(session.ask.job_starving(session.jobs["default/j"])) is starves


def test_S2_06_surplus_tasks_do_not_preempt_with_gang() -> None:
    more = [*running("h", 1, cls="high", least=1), pod("h-9", group="h", cpu=1, memory=0)]
    assert evicted(fight(running("l", 3), more).cycle()) == []
    loose = "[{name: gang, enableJobStarving: false}, {name: priority}]"
    assert evicted(fight(running("l", 3), more, text=conf(loose, actions="preempt")).cycle()) == ["l-2"]


def test_S2_07_pending_and_invalid_jobs_are_passed_over() -> None:
    bench = fight(LOWS, waiting("h", 2, least=3))
    assert any("<default/h> Queue <default> skip preemption, reason:" in line for line in bench.logged(4))
    assert evicted(bench.plan) == []
    pending = waiting("h", 1)
    pending[0]["status"]["phase"] = "Pending"
    assert evicted(fight(LOWS, pending).cycle()) == []


def test_S2_08_jobs_with_a_network_topology_are_passed_over() -> None:
    group = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    bench = fight(LOWS, waiting("h", 1, group=group))
    text = "skip preemption, reason: jobs containing networkTopology do not support preemption"
    assert any(text in line for line in bench.logged(3))
    assert evicted(bench.plan) == []


def test_S2_09_queue_by_queue_first_between_jobs_then_within() -> None:
    tasks: list[str] = []

    def note(preemptor: Any, preemptees: Any) -> Any:
        tasks.append(f"{preemptor.job}: {preemptees[0].job}" if preemptees else "")
        return []

    objects: list[Manifest] = [node("n1", cpu=4), queue("q1", priority=2), queue("q2", priority=1), *CLASSES]
    for name in ("q1", "q2"):
        objects += running(f"{name}-low", 1, queue=name) + running(f"{name}-high", 1, queue=name, cls="high", least=2)
        objects.append(pod(f"{name}-high-9", group=f"{name}-high", cpu=1, memory=0))
    text = conf("gang spy proportion", actions="preempt").replace(
        "{name: gang}", "{name: gang, enablePreemptable: false}"
    )
    Bench(objects, text, answering("spy", preemptable=note)).cycle()
    job = "default/{0}-high: default/{0}-{1}"
    pairs = [job.format(name, other) for name in ("q1", "q2") for other in ("low", "high")]
    assert list(dict.fromkeys(filter(None, tasks))) == pairs


def test_S2_10_the_most_important_starving_job_has_its_turn_first() -> None:
    bench = fight(running("l", 1, cpu=4), waiting("b", 1, cls="mid", cpu=4), waiting("c", 1, cls="high", cpu=4))
    assert reserved(bench.cycle()) == {"c-0": "n1"}


def test_S2_11_no_pod_is_evicted_once_the_job_starves_no_more() -> None:
    assert len(evicted(fight(LOWS, waiting("h", 3, least=1)).cycle())) == 1


@pytest.mark.parametrize(("least", "victims", "places"), [(0, ["l-3", "l-2"], 2), (3, [], 0)])
def test_S2_12_victims_go_for_a_whole_gang_or_not_at_all(least: int, victims: list[str], places: int) -> None:
    """P1 and P2: four of one core each, two asked for; a minimum of 3 gives one victim, which is not enough."""
    plan = fight(running("l", 4, priorities=(10, 9, 8, 7), least=least), waiting("h", 2)).cycle()
    assert evicted(plan) == victims
    assert len(reserved(plan)) == places


def test_S2_13_bound_and_running_pods_of_other_jobs_go() -> None:
    bound = pod("l-9", group="l", on="n1", phase="Pending", cpu=1, memory=0)
    ending = pod("l-8", group="l", on="n1", deleting=True, cpu=1, memory=0)
    own = [*running("h", 1, cls="high", least=2), pod("h-9", group="h", cpu=4, memory=0)]
    assert evicted(fight([pod_group("l", min_member=0, phase="Running"), bound, ending], own, text=FREE).cycle()) == []
    plan = fight([pod_group("l", min_member=0, phase="Running"), bound], waiting("h", 1, cpu=4), text=FREE).cycle()
    assert evicted(plan) == ["l-9"]


def test_S2_14_best_effort_pods_evict_only_their_like_and_marked_pods_stay() -> None:
    marked = running("l", 4, annotations={PREEMPTABLE: "false"})
    assert evicted(fight(marked, waiting("h", 1)).cycle()) == []
    full = [node("n1", cpu=4, pods=2), *CLASSES, *running("l", 1), *running("e", 1, cpu=0), *waiting("h", 1, cpu=0)]
    assert evicted(Bench(full, conf("gang priority", "predicates", actions="preempt")).cycle()) == ["e-0"]
    none = [node("n1", cpu=4, pods=2), *CLASSES, *running("l", 2), *waiting("h", 1, cpu=0)]
    assert evicted(Bench(none, conf("gang priority", "predicates", actions="preempt")).cycle()) == []


def test_S2_15_an_important_task_takes_the_place_of_another_of_its_job() -> None:
    """The job is complete afterwards only because one more waits: within a job no action asks whether it is."""
    own = [
        *running("j", 1, priorities=(1,), cls="mid", least=2, cpu=4),
        pod("j-9", group="j", cpu=4, memory=0, priority=10),
    ]
    text = conf("[{name: gang, enablePreemptable: false}]", "priority", actions="preempt")
    plan = fight(own, text=text).cycle()
    assert (evicted(plan), reserved(plan)) == (["j-0"], {"j-9": "n1"})


@pytest.mark.parametrize("text", [PREEMPT, RECLAIM])
def test_S2_16_pods_whose_policy_is_never_evict_no_pod(text: str) -> None:
    for policy, number in (("Never", 0), ("PreemptLowerPriority", 1)):
        asker = "q2" if text is RECLAIM else "default"
        bench = fight([queue("q2")], LOWS, waiting("h", 1, queue=asker, preemptionPolicy=policy), text=text)
        assert len(evicted(bench.cycle())) == number


class Picky(Plugin):
    """Refuses what it is told to refuse."""

    name = "picky"
    refusal: Reason | None = None
    asked: list[str]

    @predicate
    def check(self, task: Any, node: Any) -> Reason | None:
        return self.refusal


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_S2_17_a_task_that_fits_nowhere_evicts_no_pod(action: str) -> None:
    asker = "q2" if action == "reclaim" else "default"
    refusing = answering("refusing", pre_predicate=lambda _task: Reason("not today"))
    objects = [node("n1"), *CLASSES, queue("q2"), *LOWS, *waiting("h", 1, queue=asker)]
    assert evicted(Bench(objects, conf(ONE_TIER, "refusing", actions=action), refusing).cycle()) == []
    objects[0] = node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])
    text = conf(ONE_TIER, "predicates", actions=action)
    assert evicted(Bench(objects, text).cycle()) == []
    assert not any("Considering Task" in line for line in Bench(objects, text).logged(3))


def test_S2_18_what_an_eviction_may_cure_does_not_rule_a_node_out() -> None:
    """The node is full of pods, not of cores: allocate may not place there, preempt may make room."""
    objects = [node("n1", cpu=8, pods=2), *CLASSES, *running("l", 2), *waiting("h", 1)]
    plan = Bench(objects, conf("gang priority", "predicates", actions="allocate, preempt")).cycle()
    assert (binds(plan), len(evicted(plan)), reserved(plan)) == ({}, 1, {"h-0": "n1"})


def test_S3_29_a_pod_that_is_avoided_may_be_evicted_and_one_that_is_missed_may_not() -> None:
    """There is room; only the less important pod's label keeps the other away, which an eviction cures."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    text = conf("gang priority", "predicates", actions="allocate, preempt")
    for kind, victims in (("podAntiAffinity", ["l-0"]), ("podAffinity", [])):
        wish = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        label = "x" if kind == "podAntiAffinity" else "y"
        plan = fight(running("l", 1, labels={"app": label}), waiting("h", 1, affinity=wish), text=text).cycle()
        assert evicted(plan) == victims


# ---------------------------------------------------------------------- one node after the other


def test_S2_19_nodes_by_score_and_only_where_victims_suffice() -> None:
    wanted = answering("wanted", node_order=lambda _task, found: {"n1": 5.0, "n2": 9.0}.get(found.name, 0.0))
    tiers = conf(ONE_TIER, "wanted", actions="preempt")
    for small, chosen in ((4, "n2"), (2, "n1")):
        other = running("big", 4 - small, "n2", cls="high")
        objects = [node("n1"), node("n2"), *CLASSES, *LOWS, *running("m", small, "n2"), *other, *waiting("h", 1, cpu=4)]
        plan = Bench(objects, tiers, wanted).cycle()
        assert reserved(plan) == {"h-0": chosen}
        assert {name[0] for name in evicted(plan)} == {"m" if chosen == "n2" else "l"}


P3 = running("a", 1, priorities=(1,)), running("b", 1, cpu=2, priorities=(5,)), waiting("h", 1, cpu=2)


@pytest.mark.parametrize(("compat", "victims"), [(True, ["a-0", "b-0"]), (False, ["b-0"])])
def test_S2_20_victims_fall_one_by_one_until_the_task_fits(compat: bool, victims: list[str]) -> None:
    """P3: the one core of a is not enough, the two of b are; without compat mode a is spared then."""
    assert evicted(fight(*P3, text=FREE, cpu=3, compat=compat).cycle()) == victims


def test_S2_20_predicates_must_hold_too() -> None:
    """The place among the pods is free only with the second victim gone."""
    objects = [node("n1", cpu=8, pods=2), *CLASSES, *running("l", 2, cpu=4), *waiting("h", 1)]
    plan = Bench(objects, conf("gang priority", "predicates", actions="preempt")).cycle()
    assert len(evicted(plan)) == 1
    block = Picky
    block.refusal = Reason("never here")
    assert evicted(Bench(objects, conf("gang priority", "picky", actions="preempt"), block).cycle()) == []
    block.refusal = None
    assert len(evicted(Bench(objects, conf("gang priority", "picky", actions="preempt"), block).cycle())) == 1


def test_S2_21_the_node_with_evictions_is_nominated() -> None:
    plan = fight(LOWS, waiting("h", 1)).cycle()
    assert (reserved(plan), nominated(plan)) == ({"h-0": "n1"}, {"h-0": "n1"})
    plan = fight(running("l", 2), waiting("h", 1)).cycle()
    assert (evicted(plan), reserved(plan), nominated(plan)) == ([], {"h-0": "n1"}, {})


def test_S2_22_a_queue_beyond_its_share_preempts_no_pod() -> None:
    """q1 deserves 2 of 4 cores and its protected pods hold 3: not even without the fourth there is quota."""
    queues = [queue("q1"), queue("q2")]
    kept = running("keep", 3, queue="q1", annotations={PREEMPTABLE: "false"})
    other = waiting("o", 4, queue="q2", least=1)
    asks = waiting("h", 1, queue="q1")
    assert evicted(fight(queues, kept, running("l", 1, queue="q1"), other, asks).cycle()) == []
    assert evicted(fight(queues, kept, running("l", 1, queue="q1"), other, asks, text=FREE).cycle()) == ["l-0"]


@pytest.mark.parametrize(("least", "number"), [(3, 2), (5, 0)])
def test_S2_23_gang_gives_what_a_job_has_beyond_its_minimum(least: int, number: int) -> None:
    objects = [node("n1", cpu=5), *CLASSES, *running("l", 5, least=least), *waiting("h", 1)]
    with Bench(objects, PREEMPT).open() as session:
        tasks = list(session.jobs["default/l"].tasks.values())
        assert len(session.ask.preemptable(task_of(session, "h-0"), tasks)) == number


def test_S2_24_drf_gives_as_long_as_the_victims_job_is_left_richer() -> None:
    """10 cores; the asking job would have 0.2, the other 0.3, then 0.2."""
    objects = [node("n1", cpu=10), *running("a", 1), *running("b", 4), pod("a-9", group="a", cpu=1, memory=0)]
    with Bench(objects, conf("drf")).open() as session:
        tasks = sorted(session.jobs["default/b"].tasks.values(), key=lambda task: task.name)
        named = session.ask.preemptable(task_of(session, "a-9"), tasks)
        assert [task.name for task in named] == ["b-0", "b-1"]


def test_S2_25_the_least_important_falls_first() -> None:
    assert evicted(fight(LOWS, waiting("h", 1), text=FREE).cycle()) == ["l-3"]
    jobs = running("a", 2, cls="mid"), running("b", 2, cls="low")
    assert evicted(fight(*jobs, waiting("h", 1), text=FREE).cycle())[0].startswith("b-")
    tied = running("a", 2, priorities=(1, 9)), running("b", 2, priorities=(5, 7))
    assert evicted(fight(*tied, waiting("h", 2), text=FREE).cycle()) == ["a-0", "b-0"]


def test_S2_26_between_queues_the_order_of_victim_queues() -> None:
    queues = [queue("q1", priority=1), queue("q5", priority=5), queue("q9", priority=9)]
    held = running("a", 2, queue="q5"), running("b", 2, queue="q1")
    plan = fight(queues, *held, waiting("h", 1, queue="q9"), text=RECLAIM).cycle()
    assert evicted(plan)[0].startswith("b-")


def test_S2_63_the_case_of_two_jobs() -> None:
    """Two cores, two pods of priority 1 with a minimum of 1; one pod of priority 100 comes, and runs a cycle later."""
    bench = fight(running("b", 2, least=1), waiting("a", 1), text=conf(ONE_TIER, actions="allocate, preempt"), cpu=2)
    plan = bench.cycle()
    assert (len(evicted(plan)), reserved(plan)) == (1, {"a-0": "n1"})
    assert binds(bench.cycle()) == {"a-0": "n1"}
