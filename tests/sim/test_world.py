"""A cluster in virtual time: what is due when, how objects are written, how pods live, and that the scheduler runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stromboli.cluster.body import meta, part
from stromboli.cluster.events import Added, Deleted, Modified
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, START_AFTER, STOP_AFTER
from stromboli.errors import ApiError
from stromboli.sim.kubelets import Kubelets
from stromboli.sim.owners import Owners
from stromboli.sim.scheduling import Scheduling
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import Hear, SimChange, SimWorld
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.laws.scenes import REGISTRY, config_of

START = 1_760_000_000.0


def world_of(*objects: Manifest) -> SimWorld:
    world = SimWorld(Timeline(START))
    for each in objects:
        world.create(each)
    return world


def after(world: SimWorld, seconds: float) -> None:
    world.timeline.run(START + seconds)


def names(world: SimWorld, kind: str = "Pod") -> list[str]:
    return [str(meta(each)["name"]) for each in world.all(kind)]


def phase(world: SimWorld, name: str) -> str:
    return str(part(world.get("Pod", f"default/{name}") or {}, "status", "phase"))


# ---------------------------------------------------------------------- time


def test_what_is_due_happens_in_order_and_first_come_first_at_one_time() -> None:
    timeline = Timeline(START)
    seen: list[tuple[float, str]] = []

    def see(name: str) -> None:
        seen.append((timeline.now - START, name))

    for when, name in ((30, "late"), (10, "a"), (10, "b"), (-5, "past")):
        timeline.at(START + when, partial(see, name))
    timeline.at(START + 10, lambda: timeline.after(5, partial(see, "made later")))
    timeline.run(START + 20)
    assert seen == [(0, "past"), (10, "a"), (10, "b"), (15, "made later")]
    assert timeline.now == START + 20
    timeline.run(START + 30)
    assert seen[-1] == (30, "late")


# ---------------------------------------------------------------------- objects


def test_every_change_is_heard_with_a_version_of_its_own() -> None:
    world = world_of()
    heard: list[SimChange] = []
    world.follow(heard.append)
    made = world.create(pod("a"))
    world.patch("Pod", "default/a", {"metadata": {"annotations": {"k": "v"}}})
    world.patch("Pod", "default/a", {"metadata": {"annotations": {"k": None}}})
    world.remove("Pod", "default/a")
    assert [change.how for change in heard] == [Added, Modified, Modified, Deleted]
    assert [int(meta(change.body)["resourceVersion"]) for change in heard] == [1, 2, 3, 4]
    assert [meta(change.body)["annotations"] for change in heard] == [{}, {"k": "v"}, {}, {}]
    assert meta(made)["creationTimestamp"] == "2025-10-09T08:53:20Z"
    assert heard[0].event.object.metadata.name == "a"


REFUSED: list[tuple[str, Any, int]] = [
    ("a second one of that name", lambda world: world.create(pod("a")), 409),
    ("one that is not there", lambda world: world.patch("Pod", "default/b", {}), 404),
    ("another one of that name", lambda world: world.patch("Pod", "default/a", {}, "another uid"), 409),
    ("a pod that has a node", lambda world: world.bind("default/on-n1", "", "n2"), 409),
    ("a deletion of another", lambda world: world.delete("default/a", "another uid"), 409),
]


@pytest.mark.parametrize(("what", "write", "code"), REFUSED)
def test_writes_are_refused_as_a_server_refuses_them(what: str, write: Any, code: int) -> None:
    world = world_of(node("n1"), pod("a"), pod("on-n1", on="n1"))
    heard: list[SimChange] = []
    world.follow(heard.append)
    with pytest.raises(ApiError) as caught:
        write(world)
    assert caught.value.code == code, what
    assert heard == []


def test_a_bound_pod_keeps_its_grace_and_others_are_gone_at_once() -> None:
    world = world_of(node("n1"), pod("bound", on="n1", terminationGracePeriodSeconds=90), pod("waits"))
    for name in names(world):
        world.delete(f"default/{name}")
    assert names(world) == ["bound"]
    left = meta(world.get("Pod", "default/bound") or {})
    assert (left["deletionTimestamp"], left["deletionGracePeriodSeconds"]) == ("2025-10-09T08:54:50Z", 90)
    after(world, 60)
    world.delete("default/bound")  # says nothing new
    assert meta(world.get("Pod", "default/bound") or {}) == left


# ---------------------------------------------------------------------- lives


def test_a_pod_starts_runs_and_ends_as_it_says() -> None:
    world = world_of(node("n1"), pod("a", annotations={START_AFTER: "3s", RUN_FOR: "20s"}))
    Kubelets(world)
    after(world, 10)
    world.bind("default/a", "", "n1")
    seen = []
    for seconds in (12, 13, 32, 33):
        after(world, seconds)
        seen.append(phase(world, "a"))
    assert seen == ["Pending", "Running", "Running", "Succeeded"]


@pytest.mark.parametrize(
    ("lives", "gone"),
    [({}, 0), ({STOP_AFTER: "20s"}, 20), ({STOP_AFTER: "1h"}, 60), ({STOP_AFTER: "1h", OVERSTAY: "100s"}, 160)],
)
def test_a_pod_that_is_told_to_go_goes(lives: dict[str, str], gone: int) -> None:
    told = pod("a", on="n1", annotations={RUN_FOR: "30s", **lives}, terminationGracePeriodSeconds=60)
    world = world_of(node("n1"), told)
    Kubelets(world)
    world.timeline.at(START + 10, lambda: world.delete("default/a"))
    after(world, 10 + gone - 1)
    assert names(world) == ["a"]
    after(world, 10 + gone)
    assert names(world) == []


def test_pods_go_with_their_node() -> None:
    world = world_of(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n2"), pod("c"))
    Kubelets(world)
    world.remove("Node", "n1")
    assert names(world) == ["b", "c"]


def owned(name: str, kind: str, **more: Any) -> Manifest:
    made = pod(name, group="g", on="n1", annotations={STOP_AFTER: "1h"}, terminationGracePeriodSeconds=20, **more)
    made["metadata"]["ownerReferences"] = [{"kind": kind, "name": "o", "controller": True}]
    return made


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("ReplicaSet", [["a", "a-r1"], ["a-r1"], ["a-r1"]]),
        ("Job", [["a"], [], ["a"]]),
    ],
)
def test_owners_make_evicted_pods_again(kind: str, seen: list[list[str]]) -> None:
    world = world_of(node("n1"), pod_group("g"), owned("a", kind))
    Kubelets(world)
    Owners(world, delay=2)
    uid = meta(next(world.all("Pod")))["uid"]
    world.delete("default/a")
    found = []
    for seconds in (5, 21, 22):
        after(world, seconds)
        found.append(names(world))
    assert found == seen
    anew = list(world.all("Pod"))[-1]
    assert meta(anew)["uid"] != uid
    assert (part(anew, "spec", "nodeName"), phase(world, str(meta(anew)["name"]))) == (None, "Pending")


def test_owners_clear_away_what_has_succeeded_as_a_whole() -> None:
    world = world_of(node("n1"), pod_group("g", min_member=2), owned("a", "Job"), owned("b", "Job"))
    Owners(world)
    world.patch("Pod", "default/a", {"status": {"phase": "Succeeded"}})
    after(world, 5)
    assert (names(world), names(world, "PodGroup")) == (["a", "b"], ["g"])
    world.patch("Pod", "default/b", {"status": {"phase": "Succeeded"}})
    after(world, 10)
    assert (names(world), names(world, "PodGroup")) == ([], [])


# ---------------------------------------------------------------------- scheduling

CONF = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}]
"""


PLACING = """\
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


def crowd() -> list[Manifest]:
    """A full node of unimportant pods, and an important one that needs the room of two."""
    told = {STOP_AFTER: "1h"}
    low = [pod(f"low-{i}", group="low", cpu=2, on="n1", priority=1, schedulerName="volcano", annotations=told,
               terminationGracePeriodSeconds=40) for i in range(2)]  # fmt: skip
    classes = [{"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}]
    return [
        *classes, node("n1", cpu=4), queue("default"), pod_group("low", min_member=0, phase="Running"), *low,
        pod_group("high", phase="Pending", priorityClassName="high"),
        pod("high-0", group="high", cpu=4, priority=100, schedulerName="volcano", annotations={RUN_FOR: "30s"}),
    ]  # fmt: skip


def scheduler(world: SimWorld, **more: Any) -> Scheduling:
    return Scheduling(world, config_of(CONF), REGISTRY, period=5, **more)


def test_the_scheduler_evicts_waits_and_binds() -> None:
    world = world_of(*crowd())
    Kubelets(world)
    plans: list[Any] = []
    found = scheduler(world, when_planned=plans.append)
    found.start()
    after(world, 38)
    assert sorted(eviction.key for plan in plans for eviction in plan.evictions) == ["default/low-0", "default/low-1"]
    assert phase(world, "high-0") == "Pending"
    after(world, 50)
    assert phase(world, "high-0") == "Running"
    assert found.problems == []
    found.end()
    number = len(plans)
    after(world, 100)
    assert len(plans) == number
    assert phase(world, "high-0") == "Succeeded"


def test_noting_phases_leaves_what_pods_that_wait_were_told() -> None:
    """A pass without actions does not know why they wait: it tells only in which phase the job is that was placed."""
    world = world_of(
        node("n1", cpu=4), queue("default"),
        *(each for name in ("first", "second") for each in (
            pod_group(name, phase="Inqueue"), pod(f"{name}-0", group=name, cpu=3, schedulerName="volcano"),
        )),
    )  # fmt: skip
    Kubelets(world)
    found = Scheduling(world, config_of(PLACING), REGISTRY)

    def told() -> tuple[object, object]:
        waiting, group = world.get("Pod", "default/second-0"), world.get("PodGroup", "default/second")
        return part(waiting or {}, "status", "conditions"), part(group or {}, "status")

    found.cycle()
    after(world, 10)
    before, group = told(), world.get("PodGroup", "default/first")
    found.note()
    assert "Insufficient cpu" in str(before)
    assert told() == before
    assert part(group or {}, "status", "phase") != "Running"
    assert part(world.get("PodGroup", "default/first") or {}, "status", "phase") == "Running"


def test_noting_phases_tells_of_a_job_that_runs_in_part_and_of_pods_that_start() -> None:
    """Queues count by phases, so a job that has enough pods runs although another of its pods waits."""
    world = world_of(
        node("n1", cpu=4), queue("default"),
        pod_group("part", phase="Inqueue"), pod("part-0", group="part", cpu=2, schedulerName="volcano"),
        pod("part-1", group="part", cpu=4, schedulerName="volcano"),
        pod_group("whole", min_member=1, phase="Inqueue"),
        *(pod(f"whole-{i}", group="whole", cpu=1, schedulerName="volcano") for i in range(2)),
    )  # fmt: skip
    Kubelets(world)
    found = Scheduling(world, config_of(PLACING), REGISTRY)
    found.cycle()
    found.note()
    after(world, 10)
    found.note()
    statuses = {name: part(world.get("PodGroup", f"default/{name}") or {}, "status") for name in ("part", "whole")}
    assert statuses["part"]["phase"] == "Running"
    assert (statuses["whole"]["phase"], statuses["whole"]["running"]) == ("Running", 2)


def test_a_write_that_is_refused_is_decided_again() -> None:
    world = world_of(*crowd())
    Kubelets(world)
    found = scheduler(world)
    refusals = [ApiError(409, "Conflict", "not now")] * 3

    def refuse(verb: str, _key: str) -> None:
        if verb in ("bind", "evict") and refusals:
            raise refusals.pop()

    found.carrier.refuse = refuse
    found.start()
    after(world, 90)
    assert phase(world, "high-0") == "Running"
    assert (found.carrier.refused["evict"], found.carrier.written["bind"]) == (3, 1)


def test_news_that_never_came_is_asked_for() -> None:
    world = world_of(*crowd())
    Kubelets(world)
    heard: list[SimChange] = []

    def deaf(hear: Hear) -> Hear:
        return heard.append

    found = scheduler(world, through=deaf)
    found.start()
    after(world, 31)
    assert {task.status.name for task in found.state.tasks.values() if task.name.startswith("low")} == {"Releasing"}
    after(world, 120)
    found.freshen()
    assert sorted(found.state.tasks) == ["default/high-0"]
