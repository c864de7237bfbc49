"""What changes in a simulated cluster: nodes that change, fail and go, evictions that are put off, parts of a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.cluster.body import Body, meta
from stromboli.sim.simulation.lives import PLAIN, Lives
from stromboli.sim.simulation.outages import Outages
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, TimedChange, Workload, nodes_of
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import SimWorld
from stromboli.study.conf import Conf
from stromboli.study.simulating import simulate
from stromboli.testing.builders import queue

REGISTRY = full_registry("")
TWO = (Pods(1, {"cpu": "2"}),)
EVICTING = Conf(
    "evicting",
    """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: predicates}]
""",
)


def node(name: str = "node-0-00000", **labels: str) -> dict[str, Any]:
    (found,) = nodes_of("1x2cpu")
    given: dict[str, Any] = {**found}
    return {**given, "metadata": {**given["metadata"], "name": name, "labels": labels}}


def run(workload: Workload, until: float, lives: Lives = PLAIN, seed: int = 0) -> Simulation:
    simulation = Simulation(workload, REGISTRY.configured(""), REGISTRY, lives=lives, seed=seed)
    simulation.run(until)
    return simulation


def there(simulation: Simulation) -> dict[str, Body]:
    return {str(meta(found)["name"]): found for found in simulation.world.all("Node")}


def test_what_a_changed_node_has_no_longer_is_gone() -> None:
    """Labels and resources that the newer object leaves out go; uid and time of creation stay."""
    old = node(zone="a", gpus="yes")
    old["status"] = {"allocatable": {**old["status"]["allocatable"], "nvidia.com/gpu": "4"}}
    simulation = Simulation(
        Workload("w", (SimJob("a", 20, 1, TWO),), (old,), (TimedChange(10, node(zone="b")),)),
        REGISTRY.configured(""), REGISTRY,
    )  # fmt: skip
    (before,) = there(simulation).values()
    simulation.run()
    (after,) = there(simulation).values()
    assert meta(after)["labels"] == {"zone": "b"}
    assert "nvidia.com/gpu" not in after["status"]["allocatable"]
    assert [meta(after)[key] for key in ("uid", "creationTimestamp")] == [
        meta(before)[key] for key in ("uid", "creationTimestamp")
    ]
    spec = simulation.scheduling.state.nodes.entries()["node-0-00000"].spec
    assert spec is not None
    assert spec.labels == {"zone": "b"}


@pytest.mark.parametrize(
    ("change", "zones"),
    [
        (None, [{"zone": "a"}]),
        (TimedChange(0, node(zone="b")), [{"zone": "b"}]),  # it comes back as it is then
        (TimedChange(0, node(), stays=False), []),  # it has gone for good meanwhile
    ],
)
def test_a_node_that_changes_while_it_is_down(change: TimedChange | None, zones: list[dict[str, str]]) -> None:
    lives, seed = Lives(node_mtbf=100, node_mttr=50), 3
    job, nodes = SimJob("a", 0, 1e6, TWO), (node(zone="a"),)
    lost = next(at for at in range(1000) if not there(run(Workload("w", (job,), nodes), at, lives, seed)))
    changes = () if change is None else (TimedChange(lost + 5, change.object, change.stays),)
    changed = Workload("w", (job,), nodes, changes)
    assert not there(run(changed, lost + 20, lives, seed)), "no news brings back a node that is down"
    back = next((at for at in range(lost + 40, lost + 60) if there(run(changed, at, lives, seed))), lost + 60)
    assert [meta(found)["labels"] for found in there(run(changed, back, lives, seed)).values()] == zones


def test_the_end_of_an_outage_is_not_that_of_a_later_one() -> None:
    """The node has gone for good while it was down, came again, and failed again before the first would have ended."""
    world = SimWorld(Timeline())
    world.create(node())
    outages = Outages(world, 100.0, 500.0, 3, lambda: False)
    step(world, lambda: not list(world.all("Node")))
    first = world.timeline.now
    assert outages.changed(node(), stays=False)
    world.create(node())
    step(world, lambda: not list(world.all("Node")))
    second = world.timeline.now
    assert first < second < first + 500, "the seed makes it so"
    step(world, lambda: bool(list(world.all("Node"))))
    assert world.timeline.now == pytest.approx(second + 500)


def step(world: SimWorld, until: Callable[[], bool]) -> None:
    while not until():
        assert world.timeline.step()


def test_an_eviction_that_is_put_off_comes_when_it_is_due() -> None:
    """Its pod may take 100 seconds longer than the usual 30: half of that is waited for room that does not come."""
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 1), ("high", 9))
    ]
    slow = (Pods(1, {"cpu": "2"}, {"terminationGracePeriodSeconds": 130}),)
    jobs = SimJob("low", 0, 5000, slow, priority_class="low"), SimJob("high", 40, 50, TWO, priority_class="high")
    low, high = simulate(Workload("w", jobs).on([*nodes_of("1x2cpu"), *classes]), EVICTING).runs
    assert low.evictions == 1
    assert high.start == pytest.approx(40 + 50, abs=3)


def cluster(*jobs: SimJob) -> Workload:
    """A cluster in which a node comes at 10, changes at 30, and goes at 50; another is there from the beginning."""
    changes = (
        TimedChange(10, node("b", zone="old")), TimedChange(30, node("b", zone="new")),
        TimedChange(50, node("b"), stays=False),
    )  # fmt: skip
    return Workload("w", jobs, (node("a"),), changes)


def named(workload: Workload) -> list[tuple[str, object]]:
    objects: list[Any] = list(workload.objects)
    return [(found["metadata"]["name"], found["metadata"]["labels"].get("zone")) for found in objects]


def test_a_part_of_a_trace_begins_with_the_cluster_of_its_time() -> None:
    jobs = [SimJob("first", 5, 9, TWO), SimJob("second", 40, 9, TWO, cancelled=45), SimJob("third", 60, 9, TWO)]
    for found in (cluster(*jobs).window(15, 40), cluster(*jobs).part(1, 1)):
        (job,) = found.jobs
        assert (job.name, job.submit, job.cancelled) == ("second", 0, 5)
        assert named(found) == [("a", None), ("b", "new")]
        assert [(change.at, change.stays) for change in found.changes] == [(10, False)]
    assert named(cluster(*jobs).window(10)) == [("a", None)]
    assert [change.at for change in cluster(*jobs).window(10).changes] == [10, 30, 50]
    assert named(cluster(*jobs).window(10, 55)) == [("a", None)]


def test_what_is_replaced_changes_no_more() -> None:
    """Other nodes take the places of all, those that were to come later too; other objects those of their own name."""
    quota: dict[str, Any] = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "one"}}
    other = {**quota, "metadata": {"name": "q", "namespace": "two"}}
    workload = Workload("w", (), (node("a"), quota, queue("x")), (TimedChange(10, node("b")), TimedChange(20, quota)))
    found = workload.on([node("c"), other])
    objects: list[Any] = list(found.objects)
    assert [one["metadata"] for one in objects if one["kind"] == "ResourceQuota"] == [
        quota["metadata"], other["metadata"],
    ]  # fmt: skip
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "Node"] == ["c"]
    assert [change.object["kind"] for change in found.changes] == ["ResourceQuota"]
    assert not workload.on([quota]).on([node("c")]).changes
