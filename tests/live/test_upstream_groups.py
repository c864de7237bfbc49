"""PodGroups of scheduling.k8s.io, Kubernetes' own: gangs as ours, with statuses in their own words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.kube.transport import Request, Response
from tests.support.live_world import Json, LiveWorld, pod, queue
from tests.support.memory_server import merged, status
from tests.support.virtual import run


def upstream(name: str = "g", least: int | None = 2, **spec: Any) -> Json:
    policy = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"schedulingPolicy": policy, **spec}}


def member(name: str, group: str = "g", cpu: int = 1) -> Json:
    return pod(name, cpu=cpu, schedulingGroup={"podGroupName": group})


def condition(world: LiveWorld, name: str = "g") -> Json:
    (found,) = world.server.get(GROUPS, name, "ns")["status"]["conditions"]
    return {key: text for key, text in found.items() if key != "lastTransitionTime"}


GROUPS = "podgroups.scheduling.k8s.io"
PLACED = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "all pods that must be placed together have been placed",
}


def test_pods_wait_for_their_group_then_for_each_other_and_are_placed_together() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=4)
        world.server.objects[GROUPS] = {}
        world.server.put("pods", member("a"))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        assert world.pods() == {"a": ""}
        (told,) = [one["message"] for one in world.server.all("events")]
        assert told.startswith("there is no PodGroup ns/g@scheduling.k8s.io, which spec.schedulingGroup names")
        world.server.put(GROUPS, upstream())
        await asyncio.sleep(20)
        assert world.pods() == {"a": ""}
        told_so = condition(world)
        assert (told_so["status"], told_so["reason"]) == ("False", "Unschedulable")
        world.server.put("pods", member("b"))
        await asyncio.sleep(20)
        assert world.pods() == {"a": "n0", "b": "n0"}
        assert condition(world) == PLACED
        world.server.put("pods", member("late", cpu=2))
        world.server.put("pods", member("too-large", cpu=2))
        await asyncio.sleep(20)
        assert sorted(node for node in world.pods().values()) == ["", "n0", "n0", "n0"]
        assert condition(world) == PLACED, "once it has been placed it stays so"
        await world.end()

    run(main())


def test_a_gang_that_finds_no_room_is_not_placed_and_told_so() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(least=3))
        for name in ("a", "b", "c"):
            world.server.put("pods", member(name))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        assert set(world.pods().values()) == {""}
        found = condition(world)
        assert (found["type"], found["status"], found["reason"]) == (
            "PodGroupInitiallyScheduled", "False", "Unschedulable",
        )  # fmt: skip
        assert found["message"].startswith("1/3 tasks in gang unschedulable: pod group is not ready")
        version = world.server.get(GROUPS, "g", "ns")["metadata"]["resourceVersion"]
        await asyncio.sleep(20)
        assert world.server.get(GROUPS, "g", "ns")["metadata"]["resourceVersion"] == version, (
            "a condition that stands is not written again"
        )
        events = [one for one in world.server.all("events") if one["involvedObject"]["name"] == "g"]
        assert {one["involvedObject"]["apiVersion"] for one in events} == {"scheduling.k8s.io/v1beta1"}
        await world.end()

    run(main())


@pytest.mark.parametrize("least", [None, 1])
def test_pods_of_a_basic_group_go_one_by_one(least: int | None) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(least=least))
        for name in ("a", "b", "c"):
            world.server.put("pods", member(name))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        assert sorted(world.pods().values()) == ["", "n0", "n0"]
        await world.end()

    run(main())


def test_queue_and_priority_are_the_groups_and_a_group_of_ours_may_bear_the_same_name() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.objects[GROUPS] = {}
        world.server.put("queues", queue("team"))
        world.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        world.server.put(GROUPS, upstream("low", 1))
        high = upstream("g", 1, priorityClassName="high")
        high["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "team"}
        world.server.put(GROUPS, high)
        ours = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 5, "queue": "default"}}
        world.server.put("podgroups", ours)
        world.server.put("pods", member("a", "low", 2))
        world.server.put("pods", member("b", "g", 2))
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(20)
        jobs = scheduler.state.jobs
        assert {uid: (job.queue, job.priority, job.min_available) for uid, job in jobs.items()} == {
            "ns/low@scheduling.k8s.io": ("default", 0, 1),
            "ns/g@scheduling.k8s.io": ("team", 1000, 1),
            "ns/g": ("default", 0, 5),
        }
        await world.end()

    run(main())


WORKLOADS = "workloads"


def naming(queue_name: str, **metadata: str) -> Json:
    return {"metadata": {**metadata, "annotations": {"scheduling.volcano.sh/queue-name": queue_name}}}


@pytest.mark.parametrize(
    "reference",
    [{"workloadRef": {"workloadName": "w"}}, {"podGroupTemplateRef": {"workload": {"workloadName": "w"}}}],
)
def test_the_queue_is_the_groups_own_or_its_workloads_or_its_namespaces(reference: Json) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1)
        world.server.objects[GROUPS], world.server.objects[WORKLOADS] = {}, {}
        for name in ("own", "work", "space", "moved"):
            world.server.put("queues", queue(name))
        world.server.put("namespaces", naming("space", name="ns"))
        world.server.put(WORKLOADS, naming("work", name="w", namespace="ns"))
        for name, parts in (("a", {}), ("b", reference), ("c", reference)):
            world.server.put(GROUPS, upstream(name, **parts))
        named = upstream("c", **reference)
        named["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "own"}
        world.server.put(GROUPS, named)
        scheduler = world.scheduler()
        world.start(scheduler)

        async def queues() -> list[str]:
            await asyncio.sleep(5)
            return [scheduler.state.jobs[f"ns/{name}@scheduling.k8s.io"].queue for name in "abc"]

        assert await queues() == ["space", "work", "own"]
        world.server.put(WORKLOADS, naming("moved", name="w", namespace="ns"))
        assert await queues() == ["space", "moved", "own"]
        assert restored(Checkpoint(scheduler.state).encode())._upstream == scheduler.state._upstream
        world.server.drop(WORKLOADS, "w", "ns")
        world.server.put("namespaces", {"metadata": {"name": "ns"}})
        assert await queues() == ["default", "default", "own"]
        world.server.drop(GROUPS, "a", "ns")
        world.server.put("namespaces", naming("space", name="ns"))
        await asyncio.sleep(5)
        assert {uid: job.queue for uid, job in scheduler.state.jobs.items()} == {
            "ns/b@scheduling.k8s.io": "space", "ns/c@scheduling.k8s.io": "own",
        }  # fmt: skip
        await world.end()

    run(main())


def test_a_topology_key_is_a_hard_bound_on_the_tier_of_that_name() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1)
        world.server.objects[GROUPS] = {}
        constraint = {"topology": [{"key": "rack"}]}
        world.server.put(GROUPS, upstream(schedulingConstraints=constraint))
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        found = scheduler.state.jobs["ns/g@scheduling.k8s.io"].facts.network_topology
        assert found is not None
        assert (found.mode, found.highest_tier_name) == ("hard", "rack")
        await world.end()

    run(main())


def racked(world: LiveWorld, *racks: str) -> None:
    for number, rack in enumerate(racks):
        found = world.server.get("nodes", f"n{number}")
        found["metadata"] = {**found["metadata"], "labels": {"rack": rack} if rack else {}}
        world.server.put("nodes", found)


@pytest.mark.parametrize(
    ("racks", "nodes"),
    [
        (("a", "b", "b"), {"n1", "n2"}),
        (("a", "", "a"), {"n0", "n2"}),
        (("a", "b", "c"), {""}),
        (("", "", ""), {""}),
    ],
)
def test_the_nodes_labels_are_the_domains_where_there_are_no_hypernodes(
    racks: tuple[str, ...], nodes: set[str]
) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=3, cpu=1)
        racked(world, *racks)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(schedulingConstraints={"topology": [{"key": "rack"}]}))
        for name in ("a", "b"):
            world.server.put("pods", member(name))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        assert set(world.pods().values()) == nodes
        if nodes == {""}:
            assert "rack" in condition(world)["message"] or "HyperNode" in condition(world)["message"]
        await world.end()

    run(main())


def test_a_later_pod_goes_into_the_domain_of_the_others_or_waits() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=3, cpu=2)
        racked(world, "a", "b", "b")
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(schedulingConstraints={"topology": [{"key": "rack"}]}))
        world.server.put("pods", member("a", cpu=2))
        world.server.put("pods", member("b"))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        world.server.put("pods", member("small"))
        world.server.put("pods", member("large", cpu=2))
        await asyncio.sleep(20)
        pods = world.pods()
        assert pods.pop("large") == ""
        assert set(pods.values()) == {"n1", "n2"}
        await world.end()

    run(main())


def test_the_groups_own_priority_counts_before_its_class() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.objects[GROUPS] = {}
        world.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        world.server.put(GROUPS, upstream("g", 1, priorityClassName="high", priority=7))
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        assert scheduler.state.jobs["ns/g@scheduling.k8s.io"].priority == 7
        await world.end()

    run(main())


CONF = """
actions: "allocate, {action}"
tiers:
- plugins: [{{name: priority}}, {{name: gang, enablePreemptable: false}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}]
"""


def filled(world: LiveWorld, tmp_path: Path, mode: Any = None, action: str = "gangpreempt") -> None:
    """Both nodes are full of a group with a disruption mode, by default one that goes only as a whole."""
    (tmp_path / "conf").write_text(CONF.format(action=action))
    world.server.objects[GROUPS] = {}
    world.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    world.server.put(GROUPS, upstream("low", 1, disruptionMode=mode or {"all": {}}))
    for name in ("a", "b"):
        world.server.put("pods", member(name, "low", 2))


async def contested(world: LiveWorld, pods: tuple[str, ...] = ("a", "b"), by: str = "high") -> None:
    """Pods that run are in the way of a group of a higher priority."""
    for name in pods:
        world.server.put("pods", {**world.server.get("pods", name, "ns"), "status": {"phase": "Running"}})
    world.server.put(GROUPS, upstream(by, 1, priorityClassName="high"))
    world.server.put("pods", member(f"urgent-{by}", by, 2))
    await asyncio.sleep(20)


@pytest.mark.parametrize(
    ("mode", "action", "left"),
    [
        ({"single": {}}, "preempt", 1),
        ({"all": {}}, "preempt", 2),
        ("PodGroup", "preempt", 2),
        ("Pod", "preempt", 1),
        ({"all": {}}, "gangpreempt", 0),
        ({"single": {}}, "gangpreempt", 1),
    ],
)
def test_what_is_disrupted_only_as_a_whole_goes_whole_or_not_at_all(
    mode: Any, action: str, left: int, tmp_path: Path
) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=2, cpu=2)
        filled(world, tmp_path, mode, action)
        world.start(world.scheduler(str(tmp_path / "conf")))
        await asyncio.sleep(20)
        await contested(world)
        pods = [name for name, node in world.pods().items() if node and name in "ab"]
        ending = [one for one in world.server.all("pods") if "deletionTimestamp" in one["metadata"]]
        assert len(pods) - len(ending) == left
        told = {one["type"]: one for one in world.server.get(GROUPS, "low", "ns")["status"]["conditions"]}
        assert told["PodGroupInitiallyScheduled"]["status"] == "True"
        assert ("DisruptionTarget" in told) is (left == 0)
        assert left or told["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
        await world.end()

    run(main())


def conditions(world: LiveWorld) -> dict[str, tuple[str, str]]:
    found = world.server.get(GROUPS, "low", "ns")["status"]["conditions"]
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in found}


def test_a_disruption_is_over_when_the_group_is_placed_again_and_the_next_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=2, cpu=2)
        filled(world, tmp_path)
        world.start(world.scheduler(str(tmp_path / "conf")))
        times = []
        for number, pods in enumerate((("a", "b"), ("c", "d"))):
            for name in pods if number else ():
                world.server.put("pods", member(name, "low", 2))
            await asyncio.sleep(20)
            if number:
                assert conditions(world)["DisruptionTarget"][0] == "False"
            await contested(world, pods, f"high-{number}")
            status, when = conditions(world)["DisruptionTarget"]
            assert status == "True"
            times.append(when)
            for name in (*pods, f"urgent-high-{number}"):
                world.server.drop("pods", name, "ns")
            await asyncio.sleep(5)
        assert times[0] < times[1]
        await world.end()

    run(main())


@pytest.mark.parametrize("refused", [("a",), ("a", "b")])
def test_a_group_of_which_a_pod_stays_is_not_told_that_it_is_disrupted(
    refused: tuple[str, ...], tmp_path: Path
) -> None:
    def refuse(request: Request, _when: str) -> Response | None:
        gone = request.method == "DELETE" and request.path.endswith(tuple(f"/pods/{name}" for name in refused))
        return status(403, "Forbidden") if gone else None

    async def main() -> None:
        world = LiveWorld(nodes=2, cpu=2)
        filled(world, tmp_path)
        world.start(world.scheduler(str(tmp_path / "conf")))
        await asyncio.sleep(20)
        world.server.faults.append(refuse)
        await contested(world)
        ending = {one["metadata"]["name"] for one in world.server.all("pods") if "deletionTimestamp" in one["metadata"]}
        assert ending == {"a", "b"} - set(refused)
        assert "DisruptionTarget" not in conditions(world)
        await world.end()

    run(main())


def test_a_new_scheduler_knows_that_a_gang_was_placed() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, {**upstream(), "status": {"conditions": [PLACED]}})
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        assert condition(world) == PLACED
        await world.end()

    run(main())


def test_conditions_are_written_in_the_version_that_the_server_has() -> None:
    def old(request: Request, _when: str) -> Response | None:
        newer = ("/apis/scheduling.k8s.io/v1beta1/", "/apis/scheduling.k8s.io/v1alpha3/")
        return status(404, "NotFound") if request.path.startswith(newer) else None

    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.faults.append(old)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(least=3))
        for name in ("a", "b"):
            world.server.put("pods", member(name))
        world.start(world.scheduler())
        await asyncio.sleep(60)
        assert (condition(world)["type"], condition(world)["status"]) == ("PodGroupScheduled", "False")
        events = [one for one in world.server.all("events") if one["involvedObject"]["name"] == "g"]
        assert {one["involvedObject"]["apiVersion"] for one in events} == {"scheduling.k8s.io/v1alpha2"}
        world.server.put(GROUPS, merged(world.server.get(GROUPS, "g", "ns"), upstream(least=2)))
        await asyncio.sleep(20)
        assert set(world.pods().values()) == {"n0"}
        assert condition(world) == {**PLACED, "type": "PodGroupScheduled"}
        await world.end()

    run(main())


def test_a_group_of_groups_is_not_looked_at_and_that_is_told() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream(least=1, parentCompositePodGroupName="all"))
        world.server.put("pods", member("a"))
        world.start(world.scheduler())
        await asyncio.sleep(20)
        assert world.pods() == {"a": "n0"}
        told = [one for one in world.server.all("events") if one["reason"] == "CompositePodGroupIgnored"]
        assert [one["involvedObject"]["name"] for one in told] == ["g"]
        assert told[0]["message"].startswith("belongs to CompositePodGroup all, which is not looked at")
        await world.end()

    run(main())


def test_a_group_whose_priority_is_no_whole_number_of_32_bits_is_refused_by_name() -> None:
    async def main() -> None:
        world = LiveWorld(nodes=1, cpu=4)
        world.server.objects[GROUPS] = {}
        world.server.put(GROUPS, upstream("high", least=1, priority=2**31 - 1))
        world.server.put(GROUPS, upstream("higher", least=1, priority=2**31))
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        assert [name for name in scheduler.state.jobs if "high" in name] == ["ns/high@scheduling.k8s.io"]
        (told,) = world.told.of("object_refused")
        assert "spec.priority" in str(told["error"])
        assert "ns/higher" in str(told["error"])
        await world.end()

    run(main())
