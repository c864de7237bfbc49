"""Protections are absolute: whatever evicts, conformance and disruption budgets hold in every cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from stromboli.framework.books.plan import Plan
from stromboli.model.job import RUNNING
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf, task_of

APPS = ("web", "db", "")
CRITICAL = ("system-cluster-critical", "system-node-critical")
VALUES = (1, 10)
EVICTING = ("preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
ORDERS = (*permutations(EVICTING, 2), ("reclaim",), ("gangreclaim",), ("preempt", "reclaim", "shuffle"))


@st.composite
def crowded(draw: st.DrawFn) -> list[Manifest]:
    """Full nodes with pods of few applications, some of them critical, budgets, and gangs that want in."""
    nodes = [node(f"n{i}", cpu=4, memory="64Gi") for i in range(draw(st.integers(1, 3)))]
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"c{v}"}, "value": v}
        for v in VALUES
    ]
    half = {"cpu": 2 * len(nodes)}
    queues = [queue(name, weight=draw(st.integers(1, 3)), deserved=half) for name in ("default", "other")]
    budgets = [_budget(i, draw(st.integers(0, 3)), draw(st.sampled_from(APPS))) for i in range(draw(st.integers(0, 2)))]
    old = [each for i in range(len(nodes)) for each in _residents(draw, f"n{i}")]
    new = [each for i in range(draw(st.integers(1, 3))) for each in _gang(draw, f"new{i}")]
    return [*nodes, *classes, *queues, *budgets, *old, *new]


def _residents(draw: st.DrawFn, home: str) -> list[Manifest]:
    """A job or two that fill a node, mostly less important than what comes, and mostly in a queue of their own."""
    sizes = draw(st.sampled_from(((1, 1, 1, 1), (1, 1, 2), (2, 2), (2, 1, 1))))
    cut = draw(st.integers(1, len(sizes)))
    found: list[Manifest] = []
    for job, part in ((f"old-{home}-{n}", part) for n, part in enumerate((sizes[:cut], sizes[cut:])) if part):
        value, queue_ = (
            draw(st.sampled_from((1, 1, 1, 10))),
            draw(st.sampled_from(("default", "default", "default", "other"))),
        )
        least = draw(st.sampled_from((0, 0, 0, 1, len(part))))
        found.append(pod_group(job, min_member=least, queue=queue_, priorityClassName=f"c{value}", phase="Running"))
        for number, cpu in enumerate(part):
            critical = draw(st.integers(0, 4)) == 0
            more = {"priorityClassName": draw(st.sampled_from(CRITICAL))} if critical else {}
            found.append(_pod(draw, f"{job}-{number}", group=job, cpu=cpu, on=home, **more))
    return found


def _gang(draw: st.DrawFn, name: str) -> list[Manifest]:
    """A job that waits, whole or not at all."""
    size, queue_ = draw(st.sampled_from((1, 1, 2))), draw(st.sampled_from(("other", "other", "default")))
    group = pod_group(name, min_member=size, queue=queue_, priorityClassName=f"c{max(VALUES)}", phase="Inqueue")
    return [group, *(_pod(draw, f"{name}-{i}", group=name, cpu=draw(st.integers(1, 2))) for i in range(size))]


def _pod(draw: st.DrawFn, name: str, **fields: Any) -> Manifest:
    app = draw(st.sampled_from(APPS))
    return pod(name, memory=0, labels={"app": app} if app else {"plain": "yes"}, **fields)


def _budget(number: int, allowed: int, app: str) -> Manifest:
    wanted = {"matchLabels": {"app": app}} if app else {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"b{number}", "namespace": "default"},
        "spec": {"selector": wanted},
        "status": {"disruptionsAllowed": allowed},
    }


PLUGINS = {
    "protections last": ("namer priority gang drf", "predicates proportion conformance pdb"),
    "protections first": ("conformance pdb", "namer drf priority gang", "predicates proportion"),
    "among others": ("gang conformance", "pdb drf namer", "predicates capacity"),
}
NAMER = answering(
    "namer",
    victim_tasks=lambda tasks: tasks,
    preemptable=lambda _preemptor, tasks: tasks,
    reclaimable=lambda _reclaimer, tasks: tasks,
    unified_evictable=lambda _context, tasks: tasks,
)
"""A plugin that would always evict every candidate."""


@pytest.mark.law("no action evicts a critical pod or overdraws a disruption budget")
@pytest.mark.parametrize("plugins", PLUGINS)
@settings(max_examples=25)
@given(objects=crowded(), actions=st.sampled_from(ORDERS))
def test_no_critical_pod_is_evicted_and_no_budget_is_overdrawn(
    plugins: str, objects: list[Manifest], actions: Sequence[str]
) -> None:
    plan = Bench(objects, conf(*PLUGINS[plugins], actions=", ".join(actions)), NAMER).cycle()
    assert plan.inconsistencies == []
    event(f"evictions: {min(len(plan.evictions), 3)}")
    check(plan, objects)


def check(plan: Plan, objects: list[Manifest]) -> None:
    """No critical pod is evicted, and no more of a budget's pods than it allows."""
    pods = {f"default/{each['metadata']['name']}": each for each in objects if each["kind"] == "Pod"}
    evicted = [pods[eviction.key] for eviction in plan.evictions]
    assert not [each for each in evicted if each["spec"].get("priorityClassName") in CRITICAL]
    gone = Counter(each["metadata"]["labels"].get("app", "") for each in evicted)
    for each in objects:
        if each["kind"] == "PodDisruptionBudget":
            wanted = each["spec"]["selector"].get("matchLabels")
            covered = gone[wanted["app"]] if wanted else gone["web"] + gone["db"]
            assert covered <= each["status"]["disruptionsAllowed"]


@pytest.mark.law("every candidate that could be evicted besides the victims is a victim")
@pytest.mark.parametrize("plugins", ["pdb gang priority conformance", "conformance priority gang pdb"])
@settings(max_examples=40)
@given(objects=crowded())
def test_every_candidate_that_could_be_evicted_is_a_victim(plugins: str, objects: list[Manifest]) -> None:
    """No budget is kept for pods that gang or priority spare: no other candidate could be added to the victims.

    Budgets over several applications are left out: with them the first of a list may cost two later ones their place.
    """
    objects = [each for each in objects if "matchExpressions" not in each.get("spec", {}).get("selector", {})]
    with Bench(objects, conf(plugins)).open() as session:
        voters = [answer.function for answer in session.hooks.answers.of("preemptable")]
        actor = task_of(session, "new0-0")
        candidates = [task for job in session.jobs.peek() if job.name.startswith("old") for task in job.of(RUNNING)]
        victims = session.ask.preemptable(actor, candidates)
        assert all(list(voter(actor, victims)) == victims for voter in voters)
        spared = [task for task in candidates if task not in victims]
        event(f"victims: {min(len(victims), 3)}, spared: {min(len(spared), 3)}")
        for other in spared:
            more = [task for task in candidates if task in victims or task is other]
            assert not all(list(voter(actor, more)) == more for voter in voters), f"{other.name} could go, too"


def test_a_budget_is_not_spent_on_a_pod_that_its_gang_keeps() -> None:
    objects = [node("n0", cpu=4, memory="64Gi"), _budget(0, 2, "web"),
               pod_group("kept", min_member=2), pod_group("free", min_member=0, priorityClassName="c1"),
               *(pod(f"kept-{i}", group="kept", on="n0", memory=0, labels={"app": "web"}) for i in range(3)),
               pod("free-0", group="free", on="n0", memory=0, labels={"app": "web"}),
               pod_group("new", priorityClassName="c10"), pod("new-0", group="new", cpu=2, memory=0),
               *({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"c{v}"},
                  "value": v} for v in VALUES)]  # fmt: skip
    plan = Bench(objects, conf("gang priority conformance pdb", "predicates", actions="preempt")).cycle()
    assert [eviction.key for eviction in plan.evictions] == ["default/kept-2", "default/free-0"]


def test_the_generator_makes_the_reference_break_the_law() -> None:
    """What the law forbids does happen where protections are as weak as the reference's."""
    objects = [node("n0", cpu=4, memory="64Gi"), _budget(0, 1, "web"), pod_group("old", min_member=0),
               *(pod(f"old-{i}", group="old", on="n0", memory=0, labels={"app": "web"}) for i in range(4))]  # fmt: skip
    text = conf("pdb", "namer", actions="shuffle")
    check(Bench(objects, text, NAMER).cycle(), objects)
    plan = Bench(objects, conf("namer pdb", actions="shuffle"), NAMER, compat=True).cycle()
    with pytest.raises(AssertionError):
        check(plan, objects)
