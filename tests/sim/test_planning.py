"""Plans from files: the reasons are true, the explanation agrees with them, and what is said to help does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.errors import NotFoundError
from stromboli.sim.explanation import whatif
from stromboli.sim.explanation.explain import explain, find_job
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests as m
from tests.cli.manifests import Obj

QUOTA: Obj = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small", "namespace": "ns"},
    "status": {"hard": {"cpu": "2"}, "used": {"cpu": "1"}},
}
SMALL = m.queue("q", capability={"cpu": "2"})
TAINT = {"key": "only", "value": "others", "effect": "NoSchedule"}


def planned(directory: Path, objects: Sequence[Obj], conf: str = m.CHART, cycles: int = 1, **more: Any) -> Planning:
    file = directory / "scheduler.conf"
    file.write_text(conf, encoding="utf-8")
    settings = Settings(config=str(file), **more)
    registry = full_registry(settings.plugins)
    planning = Planning(config_of(settings, registry), registry, now=1_800_000_000.0, seed=more.get("seed") or 0)
    planning.load([m.write(directory, objects)])
    planning.run(cycles)
    return planning


def without(conf: str, line: str) -> str:
    return conf.replace(f"  - name: {line}\n", "")


TREE = m.CHART.replace("  - name: proportion\n", "  - name: capacity\n    enableHierarchy: true\n")
ABOVE = [m.node("n1", cpu="9"), m.queue("root"), m.queue("A", capability={"cpu": "2"}), m.queue("A1", parent="A")]

CASES: dict[str, tuple[list[Obj], str, str, tuple[str, ...]]] = {
    "queue that is not there": (
        [m.node("n1"), *m.gang("j", 1, queue="nowhere")], m.CHART, "no queue", ("queue nowhere does not exist",),
    ),
    "group that is not there": (
        [m.node("n1"), m.pod("p", "j")], m.CHART, "no pod group", ("there is no PodGroup ns/j",),
    ),
    "overcommit": (
        [m.node("n1"), *m.gang("j", 1, group={"minResources": {"cpu": "5"}})], without(m.CHART, "proportion"),
        "not admitted",
        ("overcommit: resource in cluster is overused: overused cpu", "minResources 5 > idle 4.8"),
    ),
    "overcommit after others": (
        [m.node("n1"), *m.gang("i", 1, cpu="3", group={"minResources": {"cpu": "3"}}),
         *m.gang("j", 1, group={"minResources": {"cpu": "2"}})],
        without(m.CHART, "proportion"), "not admitted", ("cpu: admitted jobs 3 + minResources 2 > idle 4.8",),
    ),
    "capability": (
        [m.node("n1"), SMALL, *m.gang("j", 1, "q", group={"minResources": {"cpu": "3"}})], m.CHART, "not admitted",
        ("proportion: queue resource quota insufficient", "minResources 3 > real capability 2"),
    ),
    "capability partly taken": (
        [m.node("n1"), SMALL, *m.gang("i", 1, "q", node="n1", group={"minResources": {"cpu": "1"}}),
         *m.gang("j", 1, "q", group={"minResources": {"cpu": "2"}})],
        m.CHART, "not admitted", ("cpu: allocated 1", "minResources 2 > real capability 2"),
    ),
    "limit of the queue above": (
        [*ABOVE, *m.gang("j", 1, "A1", group={"minResources": {"cpu": "3"}})], TREE, "not admitted",
        ("capacity: queue resource quota insufficient: insufficient cpu", "minResources 3 > real capability 2"),
    ),
    "quota of the queue above": (
        [*ABOVE, *m.gang("j", 3, "A1")], TREE, "queue quota",
        ("2 found a node in vain", "queue A1: cpu: allocated 2 + request 1 > realCapability 2"),
    ),
    "bad queue": (
        [*ABOVE, m.queue("x", parent="gone"), *m.gang("j", 1, "x")], TREE, "queue quota",
        ("queue x cannot be used: the queue x has invalid parent queue gone",),
    ),
    "bad queue that admits no job": (
        [*ABOVE, m.queue("x", parent="gone"), *m.gang("j", 1, "x", group={"minResources": {"cpu": "1"}})], TREE,
        "not admitted", ("queue x cannot be used: the queue x has invalid parent queue gone",),
    ),
    "queue with others below it": (
        [*ABOVE, *m.gang("j", 1, "A")], TREE, "queue quota", ("jobs belong to queues without others below them",),
    ),
    "closed queue": (
        [m.node("n1"), m.queue("q", state="Closed"), *m.gang("j", 1, "q", group={"minResources": {"cpu": "1"}})],
        m.CHART, "not admitted", ("queue q is Closed, not Open",),
    ),
    "quota of the namespace": (
        [m.node("n1"), QUOTA, *m.gang("j", 1, group={"minResources": {"cpu": "2"}})],
        m.CHART + "  - name: resourcequota\n", "not admitted",
        ("resource quota insufficient", "cpu: used 1 + minResources 2 > limit 2"),
    ),
    "too few pods": (
        [m.node("n1"), *m.gang("j", 2, members=3)], m.CHART, "invalid", ("valid: 2, min: 3",),
    ),
    "no pods": ([m.node("n1"), m.group("j", 2)], m.CHART, "invalid", ("it has no pods yet, 2 needed",)),
    "gated": (
        [m.node("n1"), *m.gang("j", 1, schedulingGates=[{"name": "example.com/wait"}])], m.CHART, "gated",
        ("example.com/wait",),
    ),
    "overused queue": (
        [m.node("n1", cpu="3", memory="3Gi", pods="3"), m.queue("q"), m.queue("r", weight=2),
         *m.gang("i", 2, "q", node="n1"), *m.gang("k", 1, "r", node="n1"), *m.gang("l", 1, "r"), *m.gang("j", 1, "q")],
        m.CHART, "queue overused", ("queue q holds all that it deserves", "cpu 2 of 1"),
    ),
    "queue without weight": (
        [m.node("n1"), m.queue("q", weight=0), *m.gang("j", 1, "q")],
        m.CHART, "queue overused", ("queue q deserves nothing",),
    ),
    "no nodes": (m.gang("j", 1), m.CHART, "no node", ("the cluster has no nodes",)),
    "no nodes to be admitted for": (
        m.gang("j", 1, group={"minResources": {"cpu": "1"}}), m.CHART, "no node", ("the cluster has no nodes",),
    ),
    "quota for part of a gang": (
        [m.node("n1"), m.queue("q", capability={"cpu": "2", "memory": "64Gi"}), *m.gang("j", 3, "q")],
        m.CHART, "queue quota",
        ("0 of 3 pods placed, 3 needed, 2 found a node in vain", "cpu: allocated 2 + request 1 > deserved 2"),
    ),
    "no node is large enough": (
        [m.node("n1"), m.node("n2"), *m.gang("j", 1, cpu="6", memory="1Gi")], without(m.CHART, "overcommit"),
        "no node", ("0/2 nodes are unavailable: 2 Insufficient cpu.",),
    ),
    "taint": (
        [m.node("n1", taints=[TAINT]), *m.gang("j", 1)], m.CHART, "no node", ("1 node(s) had untolerated taint(s)",),
    ),
    "half a gang fits": (
        [m.node("n1", cpu="2"), m.node("n2", cpu="2"), m.node("n3", cpu="16", taints=[TAINT]), *m.gang("j", 6)],
        m.CHART, "no node", ("0 of 6 pods placed, 6 needed, 4 found a node in vain", "2 Insufficient cpu"),
    ),
    "surplus": (
        [m.node("n1", cpu="2"), m.node("n2", cpu="8", taints=[TAINT]), *m.gang("j", 4, members=2)],
        m.CHART, "no node", ("2 of 4 pods placed, 2 needed", "1 Insufficient cpu"),
    ),
    "room that is being freed": (
        [m.node("n1", cpu="2"), m.node("n2", cpu="8", taints=[TAINT]), *m.gang("i", 2, node="n1", deleted=True),
         *m.gang("j", 2)],
        m.CHART, "reserved", ("2 pods hold reservations on n1: they wait for i-0, i-1 to end",),
    ),
    "no allocate": (
        [m.node("n1"), *m.gang("j", 1)], m.CHART.replace(", allocate", ""), "not tried", ("no action allocate",),
    ),
    "no backfill": (
        [m.node("n1"), *m.gang("j", 1, cpu="")], m.CHART.replace(", backfill", ""), "not tried", ("backfill",),
    ),
    "backfill finds no node": (
        [m.node("n1", taints=[TAINT]), *m.gang("j", 1, cpu="")], m.CHART, "no node", ("untolerated taint",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_first_cause_is_named_with_its_numbers(name: str, tmp_path: Path) -> None:
    objects, conf, cause, told = CASES[name]
    planning = planned(tmp_path, objects, conf)
    reason = planning.reasons()["ns/j"]
    assert reason.cause == cause, reason.message
    assert [text for text in told if text not in reason.message] == []


@pytest.mark.parametrize("name", [name for name in CASES if name != "group that is not there"])
def test_the_explanation_agrees_with_the_reason(name: str, tmp_path: Path) -> None:
    objects, conf, cause, _ = CASES[name]
    planning = planned(tmp_path, objects, conf)
    found = explain(planning, find_job(planning, "j"))
    steps = {
        "no queue": 0, "not admitted": 0, "invalid": 2, "queue overused": 5, "queue quota": 5, "no node": 5, "gang": 6,
        "gated": 6, "reserved": 6, "not tried": 6,
    }  # fmt: skip
    assert found.cause == cause
    assert found.step == (7 if name == "no backfill" else steps[cause])  # a gang of pods without requests is complete
    assert [step.n for step in found.steps] == sorted(step.n for step in found.steps)
    failing = next(step for step in found.steps if step.ok is False)
    reason = planning.reasons()["ns/j"]
    assert (failing.n, found.bound, found.needed, found.phase) == (
        found.step,
        reason.bound,
        reason.needed,
        reason.phase,
    )


def test_nodes_are_not_said_to_take_pods_that_the_queue_refused(tmp_path: Path) -> None:
    objects = [m.node("n1"), m.queue("q", capability={"cpu": "0.5"}), *m.gang("j", 1, "q")]
    (step,) = [each for each in explain(planned(tmp_path, objects), "ns/j").steps if each.name == "nodes"]
    assert (step.ok, step.text) == (None, "not asked")


def test_pods_for_which_room_was_made_count_among_those_that_found_no_node(tmp_path: Path) -> None:
    conf = without(m.CHART, "proportion").replace("backfill", "preempt")
    low = m.gang("low", 2, members=1, node="n1", group={"priorityClassName": "low"})
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 1), ("high", 2))
    ]
    high = m.gang("j", 1, group={"priorityClassName": "high"})
    planning = planned(tmp_path, [m.node("n1", cpu="2"), *classes, *low, *high], conf)
    assert len(planning.plans[-1].evictions) == 1
    (step,) = [each for each in explain(planning, "ns/j").steps if each.name == "nodes"]
    assert step.lines[0].startswith("1 pod like j-0, each cpu 1")


def test_all_refusals_at_the_door_are_told(tmp_path: Path) -> None:
    conf = m.CHART + "  - name: resourcequota\n"
    objects = [m.node("n1", cpu="1"), QUOTA, *m.gang("j", 1, group={"minResources": {"cpu": "3"}})]
    planning = planned(tmp_path, objects, conf)
    reason = planning.reasons()["ns/j"]
    assert [refusal.plugin for refusal in reason.refused_by] == ["overcommit", "proportion", "resourcequota"]
    numbers = reason.refused_by[0].numbers
    assert numbers == {"request": {"cpu": 3000.0}, "admitted": {"cpu": 0.0}, "idle": {"cpu": 1200.0}}
    normal = [event.message for event in planning.plans[-1].events if event.type == "Normal"]
    assert len(normal) == 1, "asking once more leaves no events"


def test_a_job_that_runs_has_no_reason_and_every_step_is_passed(tmp_path: Path) -> None:
    planning = planned(tmp_path, [m.node("n1"), *m.gang("j", 2)])
    assert planning.reasons() == {}
    found = explain(planning, "ns/j")
    assert (found.step, found.cause, found.bound) == (None, "", 2)
    assert all(step.ok for step in found.steps)


# ---------------------------------------------------------------------- what would help

HELP: dict[str, tuple[str, tuple[str, ...]]] = {
    "half a gang fits": ("ns/j", ("minMember 4 instead of 6 in PodGroup ns/j", "1 more node like n1")),
    "capability": ("ns/j", ("queue q without its capability",)),
    "no node is large enough": ("ns/j", ()),
}


@pytest.mark.parametrize("name", HELP)
def test_what_would_help_is_confirmed_by_a_cycle(name: str, tmp_path: Path) -> None:
    objects, conf, _, _ = CASES[name]
    planning = planned(tmp_path, objects, conf)
    uid, expected = HELP[name]
    assert explain(planning, uid).would_help == expected


def unmade(name: str, cpu: str, phase: str = "Pending") -> Obj:
    """A PodGroup as the controllers make it for a Volcano Job, whose pods come once it is admitted."""
    return m.group(name, 3, status={"phase": phase}, minResources={"cpu": cpu, "pods": "3"})


@pytest.mark.parametrize(
    ("job", "conf", "expected"),
    [
        pytest.param(unmade("j", "6"), without(m.CHART, "proportion"), ("1 more node like n1",), id="overcommit"),
        pytest.param(
            unmade("j", "12"), without(m.CHART, "proportion"), ("2 more nodes like n1",), id="beyond one more node"
        ),
        pytest.param(unmade("j", "600"), without(m.CHART, "proportion"), (), id="beyond all that is tried"),
        pytest.param(unmade("j", "3", "Inqueue"), m.CHART, (), id="admitted, and still without pods"),
    ],
)
def test_a_job_whose_pods_are_made_later_is_helped_by_what_admits_it(
    job: Obj, conf: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    found = explain(planned(tmp_path, [m.node("n1"), job], conf), "ns/j")
    assert found.verdict == "waits: it has no pods yet, 3 needed at once"
    assert found.would_help == expected


@pytest.mark.parametrize(
    ("phase", "verdict", "steps"),
    [
        ("Succeeded", "has ended", []),
        (
            "Pending",
            "waits: 1 pod without a node, 0 needed at once",
            [(False, "there is no PodGroup ns/j, which the pods' annotation names")],
        ),
    ],
)
def test_a_job_without_its_pod_group(phase: str, verdict: str, steps: list[tuple[bool, str]], tmp_path: Path) -> None:
    """The controllers delete the PodGroup of a Job that is over; its pods stay."""
    over = m.pod("p", "j", node="n1" if phase == "Succeeded" else "")
    over["status"] = {"phase": phase}
    found = explain(planned(tmp_path, [m.node("n1"), over]), "ns/j")
    assert found.verdict == verdict
    assert [(step.ok, step.text) for step in found.steps] == steps


def kinds_of_nodes(count: int) -> list[dict[str, object]]:
    """Nodes of so many kinds, the last alone large enough for the pods of a job that waits for one more of it."""
    small = [m.node(f"n{number}", cpu="0.5", labels={"kind": str(number)}) for number in range(count - 1)]
    return [*small, m.node("z", cpu="1", labels={"kind": "large"}), *m.gang("j", 4)]


@pytest.mark.parametrize(
    ("tries", "expected", "untried"),
    [
        (40, ("minMember 1 instead of 4 in PodGroup ns/j", "4 more nodes like z"), 0),
        (13, ("minMember 1 instead of 4 in PodGroup ns/j", "16 more nodes like z"), 0),
        (5, ("minMember 1 instead of 4 in PodGroup ns/j",), 7),
        (0, (), 12),
    ],
)
def test_every_kind_of_node_is_tried_or_counted(
    tries: int, expected: tuple[str, ...], untried: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatif, "MOST_TRIES", tries)
    monkeypatch.setattr(whatif, "SECONDS", 1e6)
    found = explain(planned(tmp_path, kinds_of_nodes(10)), "ns/j")
    assert (found.would_help, found.untried) == (expected, untried)


@pytest.mark.parametrize(
    ("name", "tried"),
    [
        ("no nodes", ()),
        ("taint", ("a wider queue", "more nodes")),
        ("half a gang fits", ("a smaller gang", "a wider queue", "more nodes")),
    ],
)
def test_only_what_was_tried_is_said_to_be_in_vain(name: str, tried: tuple[str, ...], tmp_path: Path) -> None:
    objects, conf, _, _ = CASES[name]
    assert explain(planned(tmp_path, objects, conf), "ns/j").tried == tried


def test_asking_what_would_help_changes_nothing(tmp_path: Path) -> None:
    planning = planned(tmp_path, CASES["half a gang fits"][0])
    before = {**planning.answer(planning.reasons()), "timing": None}
    first = explain(planning, "ns/j")
    assert {**planning.answer(planning.reasons()), "timing": None} == before
    assert explain(planning, "ns/j") == first
    assert planning.state.jobs["ns/j"].min_available == 6
    again = planning.cycle()
    assert again.reasons() == planning.reasons()


def test_one_more_node_does_help(tmp_path: Path) -> None:
    objects = CASES["half a gang fits"][0]
    helped = planned(tmp_path, [*objects, m.node("n4", cpu="2")])
    assert helped.reasons() == {}


# ---------------------------------------------------------------------- names, cycles, seeds


def test_jobs_are_found_by_any_of_their_names(tmp_path: Path) -> None:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": "sim", "namespace": "ns", "uid": "u-1"},
        "spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": [{"name": "w", "replicas": 2, "template": {
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}]},
    }  # fmt: skip
    planning = planned(tmp_path, [m.node("n1"), job, *m.gang("j", 1)])
    group = find_job(planning, "sim")
    assert planning.state.jobs[group].tasks.keys() >= {task.uid for task in planning.state.jobs[group].of()}
    assert {find_job(planning, name) for name in ("ns/sim", "sim-w-0", "ns/sim-w-1", group)} == {group}
    with pytest.raises(NotFoundError, match="did you mean"):
        find_job(planning, "simm")


def test_a_second_cycle_sees_the_first_one_s_pods_run(tmp_path: Path) -> None:
    objects = [m.node("n1", cpu="2"), *m.gang("i", 2)]
    once, twice = planned(tmp_path, objects), planned(tmp_path, objects, cycles=2)
    assert once.last.phase(once.last.session.jobs["ns/i"]) == "Inqueue"
    assert twice.last.phase(twice.last.session.jobs["ns/i"]) == "Running"
    assert [len(plan.binds) for plan in twice.plans] == [2, 0]


def test_a_seed_draws_among_equal_nodes(tmp_path: Path) -> None:
    objects = [*(m.node(f"n{number}") for number in range(8)), *m.gang("j", 1)]
    nodes = {seed: planned(tmp_path, objects, seed=seed).plans[0].binds[0].node for seed in range(12)}
    assert nodes == {seed: planned(tmp_path, objects, seed=seed).plans[0].binds[0].node for seed in range(12)}
    assert len(set(nodes.values())) > 2
    assert planned(tmp_path, objects).plans[0].binds[0].node == "n0"


def test_empty_files_and_later_objects_are_remarks(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    planning = planned(tmp_path, [m.node("n1"), m.node("n1"), m.queue("q", parent="nobody")])
    planning.loading.take([tmp_path / "empty.yaml"])
    planning.loading.complete()
    assert planning.loading.problems == []
    told = " ".join(str(remark) for remark in planning.loading.remarks)
    assert "stood already" in told
    assert "there is no Queue nobody" in told
    assert "holds no object" in told
