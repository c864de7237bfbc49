"""Acceptance rows S2: an explanation walks through the steps of taking room and names the first that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.model.names import PREEMPTABLE
from stromboli.sim.explanation.explain import Explanation, explain
from stromboli.sim.planning import Planning, Settings, config_of
from stromboli.testing.builders import Manifest, node, pod, queue
from tests.acceptance.bench import conf
from tests.acceptance.fights import CLASSES, TOPOLOGY, running, waiting

ONE = "conformance gang priority proportion"
BASE = conf(ONE, "predicates", actions="enqueue, allocate, preempt")
Explain = Callable[..., Explanation]


@pytest.fixture
def explained(tmp_path: Path) -> Explain:
    """Explains a job of a cluster with one node of two cores."""

    def run(objects: list[Manifest], text: str = BASE, job: str = "default/a") -> Explanation:
        objects = [node("n1", cpu=2), *CLASSES, *objects]
        (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
        (tmp_path / "conf.yaml").write_text(text, encoding="utf-8")
        settings = Settings(config=str(tmp_path / "conf.yaml"))
        registry = full_registry(settings.plugins)
        planning = Planning(config_of(settings, registry), registry, now=1_800_000_000.0)
        planning.load([tmp_path / "objects.yaml"])
        planning.run()
        return explain(planning, job)

    return run


def two(**fields: Any) -> list[Manifest]:
    """The running job of two pods."""
    return running("b", 2, **{"least": 1, "priorities": (2, 1), **fields})


BEYOND: dict[str, Any] = {"minResources": {"cpu": 9}}
OVERFULL = [queue("q1"), queue("q2"), *running("k", 1, queue="q1", annotations={PREEMPTABLE: "false"}),
            *running("b", 1, queue="q1"), *waiting("o", 2, queue="q2", least=1)]  # fmt: skip

BROKEN: dict[str, tuple[list[Manifest], int, str, str]] = {
    "admission": ([*two(), *waiting("a", 1, group=BEYOND)], 0, "admitted", "minResources 9"),
    "starving": ([*running("b", 1), *running("a", 1, cls="high", least=1), pod("a-9", group="a", cpu=1, memory=0)],
                 1, "starving", "not starving: ready 1 + waiting 0 >= minAvailable 1"),
    "validity": ([*two(), *waiting("a", 1, least=2)], 2, "valid", "1 pod that can run, 2 needed"),
    "candidates": ([*two(annotations={PREEMPTABLE: "false"}), *waiting("a", 1)], 3, "candidates",
                   "no victims: 2 tasks on 1 node; 2 marked not preemptable"),
    "gang": ([*two(least=4), *waiting("a", 1)], 4, "victims", "b: ready 2 <= minAvailable 4"),
    "priority": ([*two(), *waiting("a", 1, cls="low")], 4, "victims", "a job of priority 1 is not below 1"),
    "predicate": ([*two(), *waiting("a", 1, nodeSelector={"no": "where"})], 5, "node",
                  "1 node(s) didn't match Pod's node affinity/selector"),
    "quota": ([*OVERFULL, *waiting("a", 1, queue="q1")], 5, "quota", "allocated 1 + request 1 > deserved 1"),
    "pipelined": ([*two(), *waiting("a", 2)], 6, "pipelined", "1 of 2 that are missing: undone, no pod evicted"),
    "policy": ([*two(), *waiting("a", 1, preemptionPolicy="Never")], 7, "policy", "preemptionPolicy Never"),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_S2_64_the_first_step_that_fails_is_named_with_its_numbers(explained: Explain, broken: str) -> None:
    objects, number, name, text = BROKEN[broken]
    if broken == "admission":
        group = next(each for each in objects if each["kind"] == "PodGroup" and each["metadata"]["name"] == "a")
        group["status"]["phase"] = "Pending"
    found = explained(objects)
    failing = next(step for step in found.steps if step.ok is False)
    assert (found.step, failing.n, failing.name) == (number, number, name)
    said = [failing.text, *failing.lines, *(refusal.message for refusal in failing.refusals)]
    assert text in " ".join(said)


def test_S2_64_where_nothing_fails_victims_and_nodes_are_named(explained: Explain) -> None:
    found = explained([*two(), *waiting("a", 1)])
    steps = {(step.n, step.name): step for step in found.steps}
    assert found.step is None
    assert steps[1, "starving"].text == "ready 0 + waiting 0 < 1"
    assert steps[3, "candidates"].text == "2 of 2 tasks on 1 node"
    assert "  1 spared: b: ready 1 <= minAvailable 1" in steps[4, "victims"].lines
    assert steps[5, "node"].lines == ("default/a-0 -> n1 after evicting default/b-1",)
    assert steps[7, "evicted"].lines == ("default/b-1",)


def test_reclaim_is_explained_too(explained: Explain) -> None:
    queues = [queue("q1"), queue("q2")]
    text = conf(ONE, actions="enqueue, allocate, reclaim")
    held = running("b", 2, queue="q1", least=1)
    found = explained([*queues, *held, *waiting("a", 1, queue="q2", cls="low")], text)
    assert found.steps[-1].name == "evicted"
    found = explained([queue("q1", reclaimable=False), queue("q2"), *held, *waiting("a", 1, queue="q2")], text)
    assert (found.step, found.steps[-1].text) == (3, "no victims: 2 tasks on 1 node; 2 in other queues")


def budget(allowed: int) -> Manifest:
    counts = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2 - allowed, "expectedPods": 2}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": counts}  # fmt: skip


WEB: dict[str, Any] = {"labels": {"app": "web"}}
SHARED = [queue("q1"), queue("q2"), *running("b", 1, queue="q1"), pod("foreign", on="n1", schedulerName="other")]


def lately(objects: list[Manifest]) -> list[Manifest]:
    """The same, pods scheduled a minute ago."""
    since = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T07:59:00Z"}
    for each in objects:
        if each["kind"] == "Pod":
            each["status"]["conditions"] = [since]
    return objects


SPARED: dict[str, tuple[list[Manifest], str, str, int, str]] = {
    "conformance": ([*two(priorityClassName="system-node-critical"), *waiting("a", 1)], ONE, "preempt", 2,
                    "priority class system-node-critical, namespace default"),
    "pdb": ([budget(0), *two(**WEB), *waiting("a", 1)], f"{ONE} pdb", "preempt", 2,
            "budget web allows 0, and no more are left"),
    "pdb, together": ([budget(1), *two(least=0, **WEB), *waiting("a", 1, cpu=2)], f"pdb {ONE}", "preempt", 1,
                      "budget web allows 1, and no more are left"),
    "cdp": ([*lately(two(labels={"volcano.sh/cooldown-time": "10m"})), *waiting("a", 1)], f"{ONE} cdp",
            "preempt", 2, "its cooldown time ends in 540 s"),
    "tdm": ([*two(), *waiting("a", 1)], f"{ONE} tdm", "preempt", 2,
            "the preemptor is preemptable itself, or may use revocable zones"),
    "tdm, budget": ([*two(least=0), *waiting("a", 1, cpu=2, annotations={PREEMPTABLE: "false"})],
                    "conformance priority tdm", "preempt", 1, "its job can do without 1 of 2 running"),
    "proportion": ([*SHARED, *waiting("a", 1, queue="q2")], ONE, "reclaim", 1, "queue q1: allocated <cpu 1000.00"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPARED)
def test_vetoes_on_victims_are_told_with_numbers(explained: Explain, case: str) -> None:
    objects, plugins, action, spared, why = SPARED[case]
    found = explained(objects, conf(plugins, "predicates", actions=f"enqueue, allocate, {action}"))
    step = next(step for step in found.steps if step.name in ("victims", "policy"))
    assert step.name == "victims", step
    (line,) = [line for line in step.lines if why in line]
    assert line.startswith(f"  {spared} spared: ")
    assert why in " ".join(refusal.message for refusal in step.refusals)


@pytest.mark.parametrize(("action", "home"), [("gangpreempt", "q1"), ("gangreclaim", "q2")])
def test_the_gang_actions_are_explained_by_domain(explained: Explain, action: str, home: str) -> None:
    text = conf(ONE, "predicates", actions=f"enqueue, allocate, {action}")
    queues = [queue("q1"), queue("q2")]
    found = explained([*queues, *two(queue="q1"), *waiting("a", 1, queue=home)], text)
    steps = {step.name: step for step in found.steps}
    assert found.step is None
    assert steps["node"].lines == ("default/a -> all nodes after evicting default/b-1",)
    assert steps["evicted"].lines == ("default/b-1",)
    lacking = explained([*queues, *two(queue="q1"), *waiting("a", 1, queue=home, cpu=3)], text)
    failing = next(step for step in lacking.steps if step.ok is False)
    if action == "gangpreempt":
        assert (failing.n, failing.name) == (5, "node")
        assert failing.lines[0].startswith("all nodes: need <cpu 3000.00")
    else:
        assert (failing.n, failing.text) == (7, "queue q2 may not take back so much")


def test_gangs_that_may_not_be_taken_are_counted(explained: Explain) -> None:
    text = conf(ONE, "predicates", actions="enqueue, allocate, gangpreempt")
    groups = [*running("b", 1, group={"annotations": {PREEMPTABLE: "false"}}), *running("c", 1, cls="high")]
    found = explained([*groups, *waiting("a", 1)], text)
    assert found.step == 3
    why = "1 of gangs marked not preemptable, 1 of jobs that are not less important"
    assert found.steps[-1].text == f"no victims: 2 tasks on 1 node; {why}"


def test_jobs_that_no_eviction_concerns_are_explained_as_before(explained: Explain) -> None:
    found = explained([*two(), *waiting("a", 1)], conf(ONE, "predicates"))
    assert {step.name for step in found.steps} == {"admitted", "valid", "quota", "nodes", "gang", "bound"}


def test_the_topology_aware_search_is_explained_as_the_plain_one(explained: Explain) -> None:
    text = conf(ONE, actions="allocate, preempt", more=TOPOLOGY % "")
    found = explained([*two(), *waiting("a", 1)], text)
    steps = {step.name: step for step in found.steps}
    assert (found.step, steps["node"].lines) == (None, ("default/a-0 -> n1 after evicting default/b-1",))
    found = explained([*two(least=4), *waiting("a", 1)], text)
    assert found.step == 4
    assert "  2 spared: b: ready 2 <= minAvailable 4" in found.steps[-1].lines
    found = explained([*two(least=0), *waiting("a", 1, cpu=3)], text)
    assert (found.step, found.steps[-1].name) == (5, "node")
    assert found.steps[-1].lines[0].startswith("n1: not enough resources: requested <cpu 3000.00")
