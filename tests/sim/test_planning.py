"""Plans from files: the reasons are true, the explanation agrees with them, and what is said to help does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stromboli.errors import NotFoundError
from stromboli.sim.explain import explain, find_job
from stromboli.sim.planning import Planning, Settings, config_of, registry_of
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
    registry = registry_of(settings)
    planning = Planning(config_of(settings, registry), registry, now=1_800_000_000.0, seed=more.get("seed") or 0)
    planning.load([m.write(directory, objects)])
    planning.run(cycles)
    return planning


def without(conf: str, line: str) -> str:
    return conf.replace(f"  - name: {line}\n", "")


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
        m.CHART, "reserved", ("2 pods wait for room that is about to become free on n1",),
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
    steps = {"no queue": 0, "not admitted": 0, "invalid": 2, "queue overused": 5, "queue quota": 5, "no node": 5}
    assert found.cause == cause
    assert found.step == steps.get(cause, found.step)
    assert found.step is not None
    assert [step.n for step in found.steps] == sorted(step.n for step in found.steps)
    failing = next(step for step in found.steps if step.ok is False)
    reason = planning.reasons()["ns/j"]
    assert (failing.n, found.bound, found.needed, found.phase) == (
        found.step,
        reason.bound,
        reason.needed,
        reason.phase,
    )


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
