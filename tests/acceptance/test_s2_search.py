"""Acceptance rows S2: the topology-aware search, reclaim, and what the log says of both."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from stromboli.actions.preempt import Preempt
from stromboli.model.names import PREEMPTABLE
from stromboli.model.table import Node
from stromboli.preemption.dry_run import Candidate, Numbers, choose
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, binds, conf, task_of
from tests.acceptance.fights import (
    CLASSES,
    ONE_TIER,
    RECLAIM,
    TOPOLOGY,
    evicted,
    fight,
    reserved,
    running,
    waiting,
)

TIERS = "conformance gang priority"
AWARE = conf(TIERS, actions="preempt", more=TOPOLOGY % "")
P3 = running("a", 1, priorities=(1,)), running("b", 1, cpu=2, priorities=(5,)), waiting("h", 1, cpu=2)


# ---------------------------------------------------------------------- the topology-aware search


def test_S2_27_S2_33_off_by_default_and_when_on_victims_are_reprieved() -> None:
    """P3 and P4: the plain search evicts a, then b; the dry run puts a back."""
    plain, aware = (
        fight(*P3, cpu=3, text=conf(TIERS, actions="preempt", more=more), compat=True) for more in ("", TOPOLOGY % "")
    )
    assert evicted(plain.cycle()) == ["a-0", "b-0"]
    assert evicted(aware.cycle()) == ["b-0"]


def test_S2_28_numbers_of_candidates_are_arguments() -> None:
    fresh = Preempt()
    assert (fresh.percentage, fresh.least, fresh.most, fresh.topology_aware) == (10, 1, 100, False)
    given = {"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 2, "maxCandidateNodesAbsolute": 7}
    other = Preempt({**given, "topologyAwarePreemptWorkerNum": 4, "enableTopologyAwarePreemption": True})
    assert (other.percentage, other.least, other.most, other.topology_aware) == (50, 2, 7, True)
    assert [(each.kind, each.key) for each in other.complaints] == [("tolerated", "topologyAwarePreemptWorkerNum")]
    for least, chosen in ((1, "n1"), (100, "n2")):  # the second node's victim matters less
        text = conf(TIERS, actions="preempt", more=TOPOLOGY % f", minCandidateNodesAbsolute: {least}")
        held = running("a", 1, "n1", cpu=4, priorities=(5,)), running("b", 1, "n2", cpu=4, priorities=(1,))
        assert reserved(fight(*held, waiting("h", 1, cpu=4), text=text, nodes=2).cycle()) == {"h-0": chosen}


@pytest.mark.parametrize(("nodes", "number"), [(5, 1), (50, 5), (2000, 100)])
def test_S2_29_how_many_candidates_are_wanted(nodes: int, number: int) -> None:
    assert Numbers(10, 1, 100).of(nodes) == number
    assert (Numbers(0, 0, 100).of(nodes), Numbers(10, 9999, 9999).of(nodes)) == (0, nodes)


@pytest.mark.parametrize("tie_break", ["first", "seeded"])
def test_S2_30_the_number_of_workers_changes_nothing(tie_break: str) -> None:
    found = []
    for workers in (1, 16):
        more = f"tie-break: {tie_break}\n" + TOPOLOGY % f", topologyAwarePreemptWorkerNum: {workers}"
        held = [each for i in range(1, 6) for each in running(f"l{i}", 1, f"n{i}", cpu=4)]
        bench = fight(held, waiting("h", 1, cpu=4), text=conf(TIERS, actions="preempt", more=more), nodes=5)
        found.append(reserved(bench.cycle()))
    assert found[0] == found[1]
    assert tie_break == "seeded" or found[0] == {"h-0": "n1"}


def test_S2_31_a_failed_dry_run_leaves_nothing_behind() -> None:
    """Proportion counts the removed pods in a copy; anti-affinity keeps the task off in the end."""
    text = conf(f"{ONE_TIER} predicates", actions="preempt", more=TOPOLOGY % "")
    avoid = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]}}  # fmt: skip
    keeper = running("k", 1, labels={"app": "x"}, annotations={PREEMPTABLE: "false"})
    bench = fight(running("l", 3), keeper, waiting("h", 1, affinity=avoid), text=text)
    with bench.open() as session:
        before = (
            str(session.queues["default"].sums.held),
            session.table.used.tolist(),
            session.table.releasing.tolist(),
        )
        bench.act(session, "preempt")
        Preempt({"enableTopologyAwarePreemption": True}).execute(session)
        after = (
            str(session.queues["default"].sums.held),
            session.table.used.tolist(),
            session.table.releasing.tolist(),
        )
    assert before == after
    assert session.plan.evictions == []


def test_S2_32_S2_34_victims_leave_until_quota_room_and_predicates_fit() -> None:
    said: list[tuple[str, str]] = []

    def note(point: str, answer: Any) -> Any:
        def say(*arguments: Any) -> Any:
            victim = arguments[2].name if point in ("remove", "add") else ""
            said.append((point, victim))
            return answer

        return say

    spy = answering("spy", simulate_remove_task=note("remove", None), simulate_add_task=note("add", None),
                    simulate_predicate=note("predicate", None), simulate_allocatable=note("quota", True))  # fmt: skip
    text = conf(f"{TIERS} spy", actions="preempt", more=TOPOLOGY % "")
    objects = [node("n1"), *CLASSES, *running("l", 4, priorities=(9, 8, 7, 6)), *waiting("h", 1, cpu=2)]
    assert evicted(Bench(objects, text, spy).cycle()) == ["l-2", "l-3"]
    assert [name for point, name in said if point == "remove"][:2] == ["l-3", "l-2"]
    assert {point for point, _ in said} == {"remove", "add", "predicate", "quota"}
    with Bench(objects, conf("proportion predicates")).open() as session:
        named = {point: {a.plugin.name for a in session.hooks.answers.of(f"simulate_{point}")} for point in
               ("add_task", "remove_task", "allocatable")}  # fmt: skip
    assert all("proportion" in plugins for plugins in named.values())


def candidate(row: int, *victims: tuple[int, int]) -> Candidate:
    """A node with victims of (priority, start)."""
    objects = [pod(f"v-{i}", on="n1", priority=priority) for i, (priority, _) in enumerate(victims)]
    bench = Bench([node("n1"), *objects], conf("gang"))
    tasks = [bench.state.tasks[f"default/v-{i}"] for i in range(len(victims))]
    for task, (_, start) in zip(tasks, victims, strict=True):
        task.start_time = start
    return Candidate(row, tuple(tasks))


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        pytest.param([((5, 1),), ((3, 1), (3, 1)), ((3, 1),)], 2, id="S2-35 lowest top victim, then smallest sum"),
        pytest.param([((3, 1), (2, 1)), ((3, 1), (1, 1))], 1, id="S2-35 smallest sum"),
        pytest.param([((1, 10),), ((1, 11),)], 1, id="S2-36 latest start"),
        pytest.param([((1, 10), (0, 99)), ((1, 11), (0, 1))], 1, id="S2-36 of the most important victims"),
        pytest.param([((1, 10),), ((1, 10),), ((1, 10),)], 0, id="S2-37 the first of equals"),
        pytest.param([((1, 10),)], 0, id="S2-37 the only one"),
    ],
)
def test_which_candidate_is_the_best(candidates: list[Any], best: int) -> None:
    found = [candidate(row, *victims) for row, victims in enumerate(candidates)]
    assert choose(found, now=100.0).row == best
    assert choose(found, now=100.0) is choose(list(found), now=100.0)


def test_S2_35_the_search_takes_the_smallest_loss() -> None:
    """P5: a victim of 5 on n1, two of 3 on n2, one of 3 on n3."""
    held = (
        running("a", 1, "n1", cpu=2, priorities=(5,)),
        running("b", 2, "n2", priorities=(3, 3)),
        running("c", 1, "n3", cpu=2, priorities=(3,)),
    )
    text = conf(TIERS, actions="preempt", more=TOPOLOGY % ", minCandidateNodesAbsolute: 100")
    plan = fight(*held, waiting("h", 1, cpu=2), text=text, nodes=3, cpu=2).cycle()
    assert (evicted(plan), reserved(plan)) == (["c-0"], {"h-0": "n3"})


def test_S2_37_without_a_candidate_no_pod_is_evicted() -> None:
    bench = fight(running("l", 4, cls="high"), waiting("h", 1), text=AWARE)
    assert any("no candidates that fit the pod, the status of the nodes are" in line for line in bench.logged(3))
    assert evicted(bench.plan) == []


def test_S2_37_without_a_node_that_predicates_leave_no_pod_is_evicted() -> None:
    bench = fight(
        running("l", 4),
        waiting("h", 1, nodeSelector={"no": "where"}),
        text=conf(f"{TIERS} predicates", actions="preempt", more=TOPOLOGY % ""),
    )
    assert "No nodes are eligible to preempt task default/h-0" in bench.logged(3)
    assert evicted(bench.plan) == []
    assert evicted(bench.cycle()) == []


def test_S2_38_first_the_evictions_then_the_reservation() -> None:
    with fight(*P3, cpu=3, text=AWARE).open() as session, session.statement() as statement:
        action = Preempt({"enableTopologyAwarePreemption": True})
        search = action.search(session, session.jobs["default/h"], within=False)
        assert action.preempt(search, statement, task_of(session, "h-0"))
        assert [str(operation.kind) for operation in statement.operations] == ["Evict", "Pipeline"]


# ---------------------------------------------------------------------- reclaim

QUEUES = [queue("q1"), queue("q2")]


def across(least: int, pods: int, *, held_least: int = 1, **fields: Any) -> Bench:
    """R1 to R3: q1 runs four of one core on four cores, q2 asks; each deserves two."""
    held = running("a", 4, queue="q1", least=held_least)
    return fight(QUEUES, held, waiting("b", pods, least=least, queue="q2", cls="low"), text=RECLAIM, **fields)


def test_S2_39_queues_that_have_their_share_and_jobs_that_have_enough_take_nothing_back() -> None:
    held = running("a", 2, queue="q1"), running("c", 2, queue="q2")
    asks = waiting("b", 1, queue="q2"), waiting("d", 2, queue="q1")
    bench = fight(QUEUES, *held, *asks, text=RECLAIM, pods=4)
    assert any(line == "Queue <q2> is overused, ignore it." for line in bench.logged(3))
    assert evicted(bench.plan) == []
    assert evicted(across(0, 2).cycle()) == []


def test_S2_40_S2_43_what_the_queue_may_not_have_is_refused_and_all_is_undone() -> None:
    """R2: the third task would be beyond q2's share."""
    bench = across(3, 3)
    assert "Queue <q2> cannot reclaim for task <b-2>, skip" in bench.logged(3)
    assert (evicted(bench.plan), reserved(bench.plan)) == ([], {})


def test_S2_41_running_pods_of_reclaimable_queues_that_do_not_refuse() -> None:
    assert len(evicted(across(1, 1).cycle())) == 1
    closed = [queue("q1", reclaimable=False), queue("q2")]
    asks = waiting("b", 1, queue="q2", cls="low")
    assert evicted(fight(closed, running("a", 4, queue="q1"), asks, text=RECLAIM).cycle()) == []
    bound = running("a", 4, queue="q1", phase="Pending")
    assert evicted(fight(QUEUES, bound, asks, text=RECLAIM).cycle()) == []
    marked = running("a", 4, queue="q1", annotations={PREEMPTABLE: "false"})
    assert evicted(fight(QUEUES, marked, asks, text=RECLAIM).cycle()) == []


def test_S2_42_S1_38_evictions_until_there_is_room() -> None:
    """R1: q1 has 4 and deserves 2."""
    plan = across(2, 2).cycle()
    assert evicted(plan) == ["a-3", "a-2"]
    assert len(evicted(across(1, 4).cycle())) == 1
    assert reserved(plan) == {"b-0": "n1", "b-1": "n1"}


def test_S2_43_a_gang_that_needs_all_its_pods_loses_none() -> None:
    """R3, and a node whose victims do not suffice."""
    assert evicted(across(2, 2, held_least=4).cycle()) == []
    kept = running("k", 2, queue="q1", annotations={PREEMPTABLE: "false"})
    held = running("a", 2, queue="q1"), kept, running("c", 1, "n2", queue="q1", cpu=4)
    short = fight(QUEUES, *held, waiting("b", 1, queue="q2", cpu=4), text=RECLAIM, nodes=2)
    plan = short.cycle()
    assert (evicted(plan), reserved(plan)) == (["c-0"], {"b-0": "n2"})


def test_S2_44_S2_45_what_is_beyond_a_share_may_be_taken_and_no_more_asked_for() -> None:
    objects = [node("n1"), *QUEUES, *CLASSES, *running("a", 4, queue="q1"), *waiting("b", 4, queue="q2")]
    with Bench(objects, conf("proportion")).open() as session:
        tasks = sorted(session.jobs["default/a"].tasks.values(), key=lambda task: task.name)
        asking = [task_of(session, f"b-{i}") for i in range(3)]
        assert [task.name for task in session.ask.reclaimable(asking[0], tasks)] == ["a-0", "a-1"]
        answers = [session.ask.preemptive(session.queues["q2"], asking[:count]) for count in (1, 2, 3)]
        assert (answers, session.ask.preemptive(session.queues["q1"], asking[:1])) == ([True, True, False], False)


# ---------------------------------------------------------------------- what becomes of it


def test_S2_46_only_what_is_committed_stands_in_the_plan() -> None:
    text = conf(ONE_TIER, actions="allocate, preempt")
    asks = waiting("h", 1, cpu=2), waiting("e", 1, cls="mid"), waiting("big", 5, cls="low")
    plan = fight(running("l", 3, priorities=(3, 2, 1)), *asks, text=text).cycle()
    assert (evicted(plan), binds(plan)) == (["l-2", "l-1"], {"e-0": "n1"})


def test_S2_47_discarded_attempts_leave_every_sum_as_it_was() -> None:
    bench = across(3, 3)
    with bench.open() as session:

        def dump() -> object:
            queues = {name: [*one.sums.held] for name, one in session.queues.items()}
            nodes = [str(Node(session.table, row).future_idle()) for row in range(len(session.table))]
            jobs = {
                job.uid: (session.axes.full(job.sums.held), sorted(map(str, job.index))) for job in session.jobs.peek()
            }
            return queues, nodes, jobs, session.table.used.tolist(), session.table.requested.tolist()

        before = dump()
        bench.act(session, "reclaim")
        assert dump() == before
        assert {str(task.status) for task in session.jobs["default/a"].tasks.values()} == {"Running"}


def test_S2_48_S2_49_S2_53_lines_of_the_actions() -> None:
    bench = fight(QUEUES, running("a", 4, queue="q1"), waiting("b", 1, queue="q2", cls="low"),
                  text=conf(ONE_TIER, actions="preempt, reclaim"))  # fmt: skip
    lines = bench.logged(5)
    for wanted in ("Enter Preempt ...", "Leaving Preempt ...", "Enter Reclaim ...", "Leaving Reclaim ..."):
        assert lines.count(wanted) == 1
    assert "No preemptors in Queue <q1>, break." in bench.logged(3)
    with_surplus = fight(running("l", 4), waiting("h", 1, least=2)[:1] + waiting("h", 1)[1:])
    assert not any("No preemptor task" in line for line in with_surplus.logged(3))  # it is not valid
    asks = waiting("b", 2, queue="q2"), waiting("c", 1, queue="q1")
    overused = fight(QUEUES, running("a", 4, queue="q1"), *asks, text=RECLAIM, pods=4)
    assert any(re.search("Queue <.*> is overused", line) for line in overused.logged(3))


def test_S2_49_a_job_without_a_task_left_is_told() -> None:
    gated = waiting("h", 2, schedulingGates=[{"name": "example.com/else"}])
    assert "No preemptor task in job <default/h>." in fight(running("l", 4), gated).logged(3)


def test_S2_50_what_is_looked_at_and_which_victims_fall() -> None:
    lines = fight(running("l", 4, priorities=(4, 3, 2, 1)), waiting("h", 1)).logged(3)
    assert "Considering Task <default/h-0> on Node <n1>." in lines
    assert "Try to preempt Task <default/l-3> for Task <default/h-0>" in lines
    freed = next(line for line in lines if line.startswith("Preempted <"))
    assert re.fullmatch("Preempted <cpu 1000.00, .*> for Task <default/h-0> requested <cpu 1000.00, .*>.", freed)


def test_S2_51_S2_61_a_failed_search_says_why() -> None:
    picky = waiting("h", 1, nodeSelector={"no": "where"})
    lines = fight(running("l", 4), picky, text=conf("gang priority", "predicates", actions="preempt")).logged(3)
    failed = next(line for line in lines if re.search("failed to preempt Task", line, re.IGNORECASE))
    assert failed.startswith("Preemptor <default/h-0> failed to preempt Task , err: 0/1 nodes are unavailable")
    assert "1 node(s) didn't match Pod's node affinity/selector" in failed


@pytest.mark.parametrize(("least", "ending"), [(0, "Committing operations ..."), (3, "Discarding operations ...")])
def test_S2_52_statements_end_with_their_operations(least: int, ending: str) -> None:
    lines = fight(running("l", 4, priorities=(4, 3, 2, 1), least=least), waiting("h", 2)).logged(3)
    after = [follower for line, follower in pairwise(lines) if line == ending]
    assert any(re.fullmatch("task default/l-3 evict from node n1", line) for line in after)
    assert "task default/h-0 pipeline from node n1" in lines


def test_S2_54_each_level_shows_more() -> None:
    found = [fight(running("l", 4), waiting("h", 1)).logged(level) for level in (3, 4, 5)]
    assert len(found[0]) < len(found[1]) < len(found[2])
    assert set(found[0]) <= set(found[1]) <= set(found[2])


def test_S2_57_why_a_job_is_not_considered_and_that_there_are_no_victims() -> None:
    content = fight(running("l", 3), running("h", 1, cls="high", least=1)).logged(4)
    text = "skip preemption, reason: not starving: ready 1, waiting 0, minAvailable 1"
    assert f"Job <default/h> Queue <default> {text}" in content
    marked = running("l", 4, annotations={PREEMPTABLE: "false"})
    lines = fight(marked, waiting("h", 1)).logged(3)
    assert any(line.startswith("No validated victims on Node <n1>: not enough resources") for line in lines)


def test_S2_58_gang_names_the_tasks_it_keeps() -> None:
    lines = fight(running("l", 4, least=4), waiting("h", 1)).logged(4)
    kept = "Can not preempt task <default/l-3> because job l ready num(4) <= MinAvailable(4) for gang-scheduling"
    assert kept in lines


def test_S2_59_drf_says_both_shares() -> None:
    held: list[Manifest] = [
        *running("l", 2),
        *running("h", 2, cls="low", least=3),
        pod("h-9", group="h", cpu=1, memory=0),
    ]
    lines = fight(held, text=conf("drf gang", actions="preempt")).logged(4)
    shares = r"\[drf\] Can not preempt task <default/l-\d>: share of preemptor 0.75 > share of preemptee 0.25"
    assert any(re.fullmatch(shares, line) for line in lines)


def test_S2_60_the_queue_says_what_it_has_and_deserves() -> None:
    lines = fight(running("l", 4, annotations={PREEMPTABLE: "false"}), running("m", 0), waiting("h", 1)).logged(3)
    wanted = (
        r"Queue <default>: deserved <cpu 4000.00.*>, allocated <cpu 4000.00.*>; Candidates total request <cpu 1000.*"
    )
    assert not any(re.match(wanted, line) for line in lines)  # no pod may go, so the quota is never asked about
    lines = fight(running("l", 4), waiting("h", 1)).logged(3)
    assert any(re.match(wanted, line) for line in lines)


def test_S2_62_policy_never_is_told() -> None:
    bench = fight(running("l", 4), waiting("h", 1, preemptionPolicy="Never"))
    assert any("due to preemptionPolicy is Never" in line for line in bench.logged(3))
    bench = fight(
        QUEUES, running("a", 4, queue="q1"), waiting("b", 1, queue="q2", preemptionPolicy="Never"), text=RECLAIM
    )
    assert "Task default/b-0 cannot preempt (policy Never)" in bench.logged(3)


def test_S2_38_pods_of_one_group_alone() -> None:
    """A group without any pod on a node is a victim of no job."""
    assert evicted(fight([pod_group("x", phase="Running")], waiting("h", 1), text=AWARE).cycle()) == []
