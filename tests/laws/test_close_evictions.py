"""Gangs with hard topologies for which pods are evicted, also next to soft ones; queues in trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.cycle import run_actions
from stromboli.framework.books.plan import Plan
from stromboli.framework.session.session import Session
from stromboli.model.job import HELD_STATUS, PIPELINED, Job
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group
from stromboli.testing.strategies import queue_sets
from tests.laws.closeness import assert_close, lies_close, planned
from tests.laws.scenes import NOW, Scene, with_plugins

RACKS, RACK = 3, 2
NODES = [f"r{rack}-n{number}" for rack in range(RACKS) for number in range(RACK)]
CYCLES = 5
CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 1), ("high", 100))
]

EVICTING = """\
actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: QUEUES}, {name: nodeorder}]
"""


def tree() -> list[Manifest]:
    """Three racks of two nodes, two of them in a block."""
    racks = [hyper_node(f"r{rack}", 1, *NODES[RACK * rack : RACK * (rack + 1)]) for rack in range(RACKS)]
    return [*(node(name, cpu=4) for name in NODES), *racks, hyper_node("block", 2, below=["r0", "r1"])]


@st.composite
def full_scenes(draw: DrawFn) -> Scene:
    """A cluster that is mostly full of pods of low priority, and close gangs of high priority that need room."""
    queues, names = draw(queue_sets())
    found = [*tree(), *queues, *CLASSES]
    for place in NODES:
        size = draw(st.sampled_from((4, 2, 4, 0)))
        if size:
            group = pod_group(f"low-{place}", queue=draw(st.sampled_from(names[:2])), priorityClassName="low")
            found += [group, pod(f"low-{place}-0", group=f"low-{place}", cpu=size, on=place, priority=1)]
    for number in range(draw(st.integers(1, 2))):
        found += draw(urgent_gangs(f"g{number}", names))
    plugin = draw(st.sampled_from(("proportion", "capacity")))
    return Scene(found, EVICTING.replace("QUEUES", plugin))


@st.composite
def urgent_gangs(draw: DrawFn, name: str, queues: list[str]) -> list[Manifest]:
    count = draw(st.integers(1, 4))
    topology = {"mode": "hard", "highestTierAllowed": draw(st.sampled_from((1, 1, 2)))}
    spec: dict[str, Any] = {"networkTopology": topology, "queue": draw(st.sampled_from(queues[:2]))}
    group = pod_group(name, min_member=draw(st.integers(1, count)), priorityClassName="high", **spec)
    cpu = draw(st.sampled_from((4, 2)))
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, priority=100) for i in range(count))]


def cycles(scene: Scene, slow: bool = False) -> Iterator[Session]:
    """Cycle after cycle, what each decides coming true before the next; ``slow`` victims end a cycle later."""
    config, registry = with_plugins(scene.config, NetworkTopologyAware)
    state, ending = scene.state(), Plan()
    for _ in range(CYCLES):
        with Session.open(state.snapshot(), config, registry, NOW) as session:
            run_actions(session)
        yield session
        if ending.evictions:
            apply_plan(state, ending)
        apply_plan(state, session.plan, evicted_become="terminating" if slow else "")
        ending = Plan(evictions=session.plan.evictions) if slow else Plan()


def near(session: Session, job: Job, node_name: str) -> bool:
    """Whether a node lies in an allowed domain with all that a job holds."""
    return lies_close(session, [*held(job), node_name], job.facts.network_topology)


def held(job: Job) -> list[str]:
    """Where the tasks of a job are, or wait for room."""
    return [task.node_name for task in job.tasks.values() if task.status in HELD_STATUS and task.node_name]


@pytest.mark.law(
    "a gang that others are evicted for lies, or waits for room, in one domain of its tier at every moment"
)
@given(full_scenes())
def test_close_while_others_go(scene: Scene) -> None:
    for session in cycles(scene):
        assert_close(session)
        for job in session.jobs.peek():
            assert lies_close(session, held(job), job.facts.network_topology)


@pytest.mark.law(
    "pods are evicted for a gang with a hard topology only if it gains a whole domain: the gang keeps that room, and "
    "then its nodes, unless a complete gang of a preceding queue takes them"
)
@given(full_scenes(), st.booleans())
def test_evictions_lead_to_a_whole_domain(scene: Scene, slow: bool) -> None:
    waits: dict[str, list[str]] = {}
    for session in cycles(scene, slow):
        jobs = {job.uid: job for job in session.jobs.peek()}
        served = {
            uid for uid, job in jobs.items() if job.facts.is_close and 0 < job.min_available <= len(held(job))
        }  # fmt: skip
        for uid in waits.keys() - served:
            takers = (jobs[other] for other in served if not set(waits[uid]).isdisjoint(held(jobs[other])))
            assert any(taker.queue != jobs[uid].queue for taker in takers), "room that was made is used, or claimed"
        gain = {uid for uid in served if any(task.status is PIPELINED for task in jobs[uid].tasks.values())}
        for victim in session.plan.evictions:
            assert any(near(session, jobs[uid], victim.node) for uid in gain), "a gang gains in the victim's domain"
        waits = {uid: held(jobs[uid]) for uid in served if uid in gain or uid in waits}


# -- soft and hard ---------------------------------------------------------------------------------------------------


@st.composite
def lone_gangs(draw: DrawFn) -> list[Manifest]:
    """A cluster in part use, and one gang."""
    queues, names = draw(queue_sets())
    used = [pod(f"used-{place}", on=place, cpu=cpu) for place in NODES if (cpu := draw(st.sampled_from((0, 1, 3))))]
    count = draw(st.integers(1, 5))
    group = pod_group("g", min_member=draw(st.integers(1, count)), queue=draw(st.sampled_from(names)))
    cpu = draw(st.sampled_from((1, 2, 3)))
    return [*tree(), *queues, *used, group, *(pod(f"g-{i}", group="g", cpu=cpu) for i in range(count))]


def bound(objects: list[Manifest], conf: str, topology: Manifest | None) -> int:
    """How many pods of the gang are placed with a topology."""
    found = [
        {**each, "spec": {**each["spec"], "networkTopology": topology}} if each["kind"] == "PodGroup" else each
        for each in objects
    ]
    session = planned(Scene(found, conf))
    return sum(bind.job == "default/g" for bind in session.plan.binds)


@pytest.mark.law("a soft topology never refuses what a hard one, or none, would place")
@given(lone_gangs(), st.sampled_from(("proportion", "capacity")), st.sampled_from((1, 2, 3)))
def test_soft_places_what_hard_does(objects: list[Manifest], plugin: str, tier: int) -> None:
    conf = EVICTING.replace("QUEUES", plugin)
    soft = bound(objects, conf, {"mode": "soft"})
    assert (soft > 0) >= (bound(objects, conf, {"mode": "hard", "highestTierAllowed": tier}) > 0)
    assert soft == bound(objects, conf, None)
