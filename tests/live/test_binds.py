"""Binding on a server with other clients: once, however often it is asked for, and never a later pod of the name."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from stromboli.cluster.mirror import CONFIRMED_WITHIN
from stromboli.errors import Unreachable
from stromboli.framework.books.plan import Bind, Eviction, Plan, PodConditionUpdate, PodGroupUpdate
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.context import ATTEMPTS
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.volumes import PAUSE
from stromboli.model.claims import Allocation, DeviceResult, DeviceResults
from stromboli.model.objects.storage import BIND_COMPLETED, NODE, SELECTED_NODE
from tests.support.claiming import LOCK
from tests.support.live_world import Directed, LiveWorld, group, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run


async def one_pod(tmp_path: Path) -> tuple[Directed, LiveScheduler, Bind]:
    """A world with one pod that waits, and its binding to n1."""
    world = Directed()
    world.server.put("podgroups", group("job", 1))
    world.server.put("pods", pod("job-0", "job"))
    scheduler = await world.directed(tmp_path)
    return world, scheduler, Bind(uid(world, "job-0"), "ns/job-0", "ns/job", "n1")


def unseen(world: LiveWorld, collection: str, found: Any) -> None:
    """Change an object without any watch telling of it."""
    watches, world.server.watches = world.server.watches, []
    world.server.put(collection, found)
    world.server.watches = watches


def bound_by_another(world: LiveWorld, node: str) -> None:
    found = world.server.get("pods", "job-0", "ns")
    unseen(world, "pods", {**found, "spec": {**found["spec"], "nodeName": node}})


def asked(world: LiveWorld, method: str, end: str) -> list[Request]:
    return [r for r in world.server.requests if r.method == method and r.path.endswith(end)]


class Answering:
    """Answers the first ``times`` requests of a method and path with ``answer`` and counts all of them."""

    def __init__(self, method: str, end: str, answer: Response, times: int = 1) -> None:
        self.method, self.end, self.answer, self.times = method, end, answer, times
        self.at: list[float] = []

    def __call__(self, request: Request, when: str) -> Response | None:
        if when != "before" or request.method != self.method or not request.path.endswith(self.end):
            return None
        self.at.append(asyncio.get_running_loop().time())
        return self.answer if len(self.at) <= self.times else None


CONFLICT = status(409, "Conflict")


# ---------------------------------------------------------------------- which pod has a node


def test_S4_25_a_pod_that_stands_on_its_target_is_bound(tmp_path: Path) -> None:  # S4-37: bind twice
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        bound_by_another(world, "n1")
        scheduler.executor.bind([bind])
        await asyncio.sleep(1)
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (1, 0)
        assert world.told.of("metric.bind_already_bound") == [{"result": "same_node"}]
        assert scheduler.state.tasks["ns/job-0"].node_name == "n1"
        assert "SchedulerError" not in str(world.server.get("pods", "job-0", "ns")["status"])
        scheduler.executor.bind([bind])  # and once more
        await asyncio.sleep(1)
        assert (len(asked(world, "POST", "/binding")), world.told.of("bind_failed")) == (1, [])
        await world.end()

    run(story())


def test_S4_26_a_pod_that_was_bound_elsewhere_is_said_to_be(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        bound_by_another(world, "n2")
        scheduler.executor.bind([bind])
        assert scheduler.state.tasks["ns/job-0"].node_name == "n1"
        await asyncio.sleep(1)
        (failed,) = world.told.of("bind_failed")
        error, binder = failed["error"], scheduler.executor.binder
        assert (getattr(error, "code", 0), binder.bound, binder.failed) == (409, 0, 1)
        assert str(error) == "pod ns/job-0 is already bound to node n2, expected n1"
        assert world.told.of("metric.bind_already_bound") == [{"result": "other_node"}]
        assert scheduler.state.tasks["ns/job-0"].node_name == "n2"
        assert scheduler.mirror.assumed == {}
        await world.end()

    run(story())


@pytest.mark.parametrize(
    ("answer", "failed"), [(status(403, "Forbidden", "not allowed"), 1), (status(404, "NotFound"), 0)]
)
def test_S4_26_a_bind_that_is_refused_gives_its_room_back(tmp_path: Path, answer: Response, failed: int) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        world.server.faults.append(lambda request, _when: answer if "/binding" in request.path else None)
        scheduler.executor.bind([bind])
        assert scheduler.state.tasks["ns/job-0"].node_name == "n1"
        await asyncio.sleep(30)
        assert scheduler.state.tasks["ns/job-0"].node_name == ""
        assert scheduler.executor.binder.failed >= failed
        if failed:
            told = world.server.get("pods", "job-0", "ns")["status"]["conditions"][0]
            assert (told["reason"], told["message"]) == ("SchedulerError", "failed to bind to node n1: not allowed")
        await world.end()

    run(story())


def test_a_conflict_over_a_pod_that_still_waits_is_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("POST", "/binding", CONFLICT)
        world.server.faults.append(fault)
        scheduler.executor.bind([bind])
        await asyncio.sleep(1)
        assert (len(fault.at), scheduler.executor.binder.bound, world.pods()["job-0"]) == (2, 1, "n1")
        assert len(asked(world, "GET", "/job-0")) == 1
        await world.end()

    run(story())


@pytest.mark.parametrize("answer", [CONFLICT, status(500, "InternalError")], ids=["conflict", "error"])
def test_attempts_in_an_outage_count_neither_as_conflicts_nor_as_errors(tmp_path: Path, answer: Response) -> None:
    """An outage of more attempts than either is given; what the server says when it is back is tried again."""

    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        tried = Answering("POST", "/binding", answer, times=0)

        def down(request: Request, when: str) -> Response | None:
            if when == "before" and len(tried.at) < ATTEMPTS and "/job-0" in request.path:
                tried(request, when)
                raise Unreachable("no route", request=str(request))
            return None

        later = Answering("POST", "/binding", answer)
        world.server.faults += [down, later]
        scheduler.executor.bind([bind])
        await asyncio.sleep(120)
        assert (len(tried.at), len(later.at)) == (ATTEMPTS, 2)
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (1, 0)
        await world.end()

    run(story())


@pytest.mark.parametrize(
    ("selected", "told"),
    [(None, "no volume could be made for claim ns/data"), ("n2", "claim ns/data gets its volume for node n2 instead")],
)
def test_a_volume_that_is_not_made_for_the_node_lets_the_pod_wait_again(
    tmp_path: Path, selected: str | None, told: str
) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        meta = {"name": "data", "namespace": "ns"}
        world.server.put("persistentvolumeclaims", {"metadata": meta, "spec": {}, "status": {"phase": "Pending"}})
        await asyncio.sleep(1)
        scheduler.executor.bind([structs.replace(bind, volumes={"ns/data": f"{NODE}n1"}, volume_seconds=60)])
        await asyncio.sleep(1)
        found = world.server.get("persistentvolumeclaims", "data", "ns")
        assert found["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
        notes = {} if selected is None else {SELECTED_NODE: selected}
        changed = {**found, "metadata": {**found["metadata"], "annotations": notes}}
        world.server.put("persistentvolumeclaims", changed)
        await asyncio.sleep(2)
        (failed,) = world.told.of("bind_failed")
        assert told in str(failed["error"])
        assert scheduler.state.tasks["ns/job-0"].node_name == ""
        after = world.server.get("persistentvolumeclaims", "data", "ns")
        assert after["metadata"]["annotations"] == notes, "what others have written stays"
        await world.end()

    run(story())


def test_a_binding_whose_answer_is_lost_and_that_the_watch_tells_of_is_one_like_all_others(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        ends: list[float] = []

        def lost(request: Request, when: str) -> Response | None:
            """The binding gets through; neither its answer nor one to a question does for a while."""
            binding = when == "after" and request.path.endswith("/binding")
            if binding:
                ends.append(asyncio.get_running_loop().time() + 5)
            if binding or (
                request.method == "GET"
                and request.path.endswith("/job-0")
                and asyncio.get_running_loop().time() < ends[0]
            ):
                raise Unreachable("no answer", request=str(request))
            return None

        world.server.faults.append(lost)
        scheduler.executor.bind([bind])
        await asyncio.sleep(30)
        assert world.server.bindings == [("ns/job-0", "n1")]
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (1, 0)
        events = [one["reason"] for one in world.server.all("events")]
        assert (events.count("Scheduled"), len(world.told.of("bind_ok"))) == (1, 1)
        (took,) = [row["seconds"] for row in world.told.of("metric.stage_duration") if row["stage"] == "Bind"]
        assert took == pytest.approx(1.5, abs=1.0)
        await world.end()

    run(story())


def test_a_pod_that_is_to_be_evicted_meanwhile_is_not_bound(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("POST", "/binding", CONFLICT)
        world.server.faults.append(fault)
        scheduler.executor.bind([bind])
        eviction = Eviction(bind.uid, bind.key, bind.job, "n1", "preempt")
        assert scheduler.mirror.assume_evicted(eviction)
        await asyncio.sleep(30)
        assert (fault.at, world.pods()["job-0"]) == ([], "")
        assert scheduler.mirror.assumed["ns/job-0"].node == "", "the eviction still stands"
        await world.end()

    run(story())


def test_what_kept_a_pod_waiting_is_not_said_over_its_binding(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("PATCH", "/status", status(429, "TooManyRequests", retry_after="5"))
        world.server.faults.append(fault)
        condition = PodConditionUpdate(bind.uid, bind.key, "Unschedulable", "no room")
        scheduler.executor.finish(Plan(pod_conditions=[condition]))
        await asyncio.sleep(1)
        scheduler.executor.bind([bind])
        await asyncio.sleep(30)
        assert (len(fault.at), world.pods()["job-0"]) == (1, "n1")
        assert "no room" not in str(world.server.get("pods", "job-0", "ns")["status"])
        assert world.told.of("write_failed") == []
        await world.end()

    run(story())


def test_a_pod_that_is_being_deleted_is_not_bound(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        found = world.server.get("pods", "job-0", "ns")
        gone = {**found["metadata"], "deletionTimestamp": "2027-01-01T00:00:00Z"}
        unseen(world, "pods", {**found, "metadata": gone})
        fault = Answering("POST", "/binding", CONFLICT, times=99)
        world.server.faults.append(fault)
        scheduler.executor.bind([bind])
        await asyncio.sleep(30)
        assert (len(fault.at), scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (1, 0, 1)
        assert scheduler.state.tasks["ns/job-0"].status.name == "Releasing"
        await world.end()

    run(story())


# ---------------------------------------------------------------------- what is reported and kept of a binding


def claiming(world: LiveWorld, bind: Bind) -> Bind:
    """The binding with a claim whose volume is to be made, and one that is to get a device."""
    meta = {"name": "data", "namespace": "ns"}
    world.server.put("persistentvolumeclaims", {"metadata": meta, "spec": {}, "status": {"phase": "Pending"}})
    world.server.put("resourceclaims", {"metadata": {"name": "gpu", "namespace": "ns"}, "spec": {}})
    device = Allocation(DeviceResults((DeviceResult("r", "driver", "pool", "d0"),)))
    given = {"ns/data": f"{NODE}n1"}
    return structs.replace(bind, volumes=given, volume_seconds=60, claims={"ns/gpu": device}, claim_seconds=60)


def made_for(world: LiveWorld) -> None:
    """The claim gets its volume."""
    found = world.server.get("persistentvolumeclaims", "data", "ns")
    meta = {**found["metadata"], "annotations": {**found["metadata"]["annotations"], BIND_COMPLETED: "yes"}}
    bound = {"metadata": meta, "spec": {"volumeName": "made"}, "status": {"phase": "Bound"}}
    world.server.put("persistentvolumeclaims", bound)


def test_what_claims_are_about_to_get_is_known_until_the_binding_has_ended(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        bind = claiming(world, bind)
        await asyncio.sleep(1)
        world.server.faults.append(Answering("POST", "/binding", status(403, "Forbidden"), times=1))
        scheduler.executor.bind([bind])
        storage = scheduler.state.storage
        assert storage.given == {bind.uid: bind.volumes}
        assert storage.devices.given == {bind.uid: ("ns/job-0", bind.claims)}
        await asyncio.sleep(0.3)
        made_for(world)
        await asyncio.sleep(0.5)
        assert len(world.told.of("bind_failed")) == 1
        assert (storage.given, storage.devices.given) == ({}, {})
        await world.end()

    run(story())


def test_a_binding_is_told_with_the_time_that_it_took(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        scheduler.executor.bind([bind])
        await asyncio.sleep(1)
        (took,) = [row["seconds"] for row in world.told.of("metric.stage_duration") if row["stage"] == "Bind"]
        assert isinstance(took, float)
        assert took == pytest.approx(0.01)
        assert world.told.of("bind_ok") == [{"latency": f"{took * 1000:.3f}ms"}]
        made = scheduler.state.tasks["ns/job-0"].created
        latency = [row for row in world.told.of("metric.task_latency") if row["stage"] == "Bound"]
        assert latency == [{"stage": "Bound", "created": [float(made)]}]
        await world.end()

    run(story())


def test_a_binding_that_no_watch_tells_of_is_overdue_after_a_while(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        world.server.watches = []
        scheduler.executor.bind([bind])
        await asyncio.sleep(1)
        assert scheduler.executor.binder.bound == 1
        assert scheduler.mirror.overdue(world.clock()) == []
        assert scheduler.mirror.overdue(world.clock() + CONFIRMED_WITHIN) == [("ns/job-0", bind.uid)]
        await world.end()

    run(story())


@pytest.mark.parametrize(
    ("answer", "when", "binder", "reads"),
    [
        (CONFLICT, "before", (1, 0), 1),
        (status(500, "InternalError"), "after", (1, 0), 1),  # carried out: nothing is to be sent again
        (status(403, "Forbidden"), "before", (0, 1), 1),  # for its condition
    ],
    ids=["conflict", "carried out", "refused"],
)
def test_the_pod_is_read_where_the_answer_leaves_open_what_became_of_it(
    tmp_path: Path, answer: Response, when: str, binder: tuple[int, int], reads: int
) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        left = [answer]

        def fault(request: Request, at: str) -> Response | None:
            return left.pop() if at == when and request.path.endswith("/binding") and left else None

        world.server.faults.append(fault)
        watches, world.server.watches = world.server.watches, []
        scheduler.executor.bind([bind])
        await asyncio.sleep(1)
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == binder
        assert len(asked(world, "GET", "/job-0")) == reads
        assert len(asked(world, "POST", "/binding")) == (2 if answer is CONFLICT else 1)
        told = [(row["task"], row["node"]) for row in world.told.of("bind_retried")]
        assert told == ([("ns/job-0", "n1")] if answer is CONFLICT else [])
        world.server.watches = watches
        await world.end()

    run(story())


def test_what_is_handed_back_is_under_way_no_more(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        scheduler.executor.bind([bind])
        assert (scheduler.executor.binder.hand_back(), scheduler.executor.in_flight) == (1, 0)
        await asyncio.sleep(1)
        assert (world.pods(), scheduler.state.tasks["ns/job-0"].node_name) == ({"job-0": ""}, "")
        await world.end()

    run(story())


def test_a_claim_that_waits_is_looked_at_again_in_a_moment(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        bind = claiming(world, bind)
        await asyncio.sleep(1)
        scheduler.executor.bind([bind])
        await asyncio.sleep(0.1)
        made_for(world)
        await asyncio.sleep(PAUSE / 3)
        assert world.pods() == {"job-0": ""}
        await asyncio.sleep(PAUSE)
        assert world.pods() == {"job-0": "n1"}
        binder = scheduler.executor.binder
        kept = binder._volumes._written, binder._volumes._until, binder._claims._written, binder._taken
        assert kept == ({}, {}, {}, {})
        await world.end()

    run(story())


def test_each_binding_waits_for_its_devices_as_long_as_it_may(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        claiming(world, bind)
        device = DeviceResult("r", "driver", "pool", "d0", binding_conditions=("Attached",))
        given = {"ns/gpu": Allocation(DeviceResults((device,)))}
        bind = structs.replace(bind, claims=given, claim_seconds=10)
        await asyncio.sleep(1)
        for number in range(2):
            scheduler.executor.bind([bind])
            await asyncio.sleep(9)
            assert len(world.told.of("bind_failed")) == number
            await asyncio.sleep(9)
        assert len(world.told.of("bind_failed")) == 2
        await world.end()

    run(story())


def gone(world: LiveWorld, _: LiveScheduler) -> None:
    world.server.drop("pods", "job-0", "ns")


def another_elsewhere(world: LiveWorld, _: LiveScheduler) -> None:
    """Another pod of the name stands on another node."""
    body = pod("job-0", "job", nodeName="n2")
    body["metadata"]["uid"] = "another"
    world.server.drop("pods", "job-0", "ns")
    world.server.put("pods", body)


def node_gone(world: LiveWorld, _: LiveScheduler) -> None:
    world.server.drop("nodes", "n1", "")


def evicted(world: LiveWorld, scheduler: LiveScheduler) -> None:
    assert scheduler.mirror.assume_evicted(Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt"))


@pytest.mark.parametrize("code", [429, 503], ids=["waits", "reads"])
@pytest.mark.parametrize(
    ("happens", "stays"), [(gone, False), (another_elsewhere, False), (node_gone, False), (evicted, True)]
)
def test_a_binding_that_is_no_longer_wanted_counts_as_neither_and_gives_back_what_claims_got(
    tmp_path: Path, happens: Any, stays: bool, code: int
) -> None:
    """The binding is answered with an error, and meanwhile there is nothing to bind, or nowhere."""

    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        bind = structs.replace(claiming(world, bind), volumes={}, locks=(LOCK,))
        await asyncio.sleep(1)

        def fault(request: Request, when: str) -> Response | None:
            if when == "before" and request.path.endswith("/binding"):
                happens(world, scheduler)
                return status(code, "Trouble")
            return None

        world.server.faults.append(fault)
        scheduler.executor.bind([bind])
        await asyncio.sleep(5)
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (0, 0)
        assert world.told.of("bind_failed") == []
        status_of = world.server.get("resourceclaims", "gpu", "ns")["status"]
        assert bool(status_of.get("allocation")) is stays, "a pod that has a node may use it"
        assert scheduler.state.storage.devices.given == {}
        await world.end()

    run(story())


# ---------------------------------------------------------------------- another object of the same name


def replaced(world: LiveWorld, collection: str, made: Any) -> None:
    """Another object under the name of one that is gone, unseen."""
    made["metadata"]["uid"] = "another"
    unseen(world, collection, made)


def test_another_pod_of_that_name_is_left_alone(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        replaced(world, "pods", pod("job-0", "job"))
        scheduler.executor.bind([bind])
        await asyncio.sleep(60)
        assert (len(asked(world, "POST", "/binding")), len(asked(world, "GET", "/job-0"))) == (1, 1)
        assert world.told.of("bind_failed") == world.told.of("bind_retried") == []
        assert (scheduler.state.tasks["ns/job-0"].uid, scheduler.mirror.assumed) == ("another", {})
        await world.end()

    run(story())


def test_what_is_said_of_a_pod_is_not_said_of_another_of_that_name(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        replaced(world, "pods", pod("job-0", "job"))
        condition = PodConditionUpdate(bind.uid, bind.key, "Unschedulable", "no room")
        scheduler.executor.finish(Plan(pod_conditions=[condition]))
        await asyncio.sleep(60)
        assert (len(asked(world, "PATCH", "/status")), len(asked(world, "GET", "/job-0"))) == (1, 1)
        assert "conditions" not in world.server.get("pods", "job-0", "ns")["status"]
        await world.end()

    run(story())


def test_a_status_is_not_written_to_another_group_of_that_name(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, _ = await one_pod(tmp_path)
        replaced(world, "podgroups", group("job", 7))
        scheduler.executor.finish(Plan(pod_groups=[PodGroupUpdate("ns/job", "Running", running=1)]))
        await asyncio.sleep(60)
        (sent,) = asked(world, "PATCH", "/podgroups/job")
        assert json.loads(sent.body or b"")["metadata"]["uid"] != "another"
        assert world.server.get("podgroups", "job", "ns")["status"] == {"phase": "Inqueue"}
        job = scheduler.state.jobs["ns/job"]
        assert (job.group.uid, job.phase, job.min_available) == ("another", "Inqueue", 7)
        await world.end()

    run(story())


# ---------------------------------------------------------------------- writes that meet others


def test_S4_30_a_conflict_is_tried_again_and_other_fields_stay(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("PATCH", "/status", CONFLICT)
        world.server.faults.append(fault)
        mark = {"type": "Others", "status": "True"}
        found = world.server.get("pods", "job-0", "ns")
        unseen(world, "pods", {**found, "status": {"phase": "Pending", "conditions": [mark], "message": "others'"}})
        condition = PodConditionUpdate(bind.uid, bind.key, "Unschedulable", "no room", "n2")
        scheduler.executor.finish(Plan(pod_conditions=[condition]))
        await asyncio.sleep(1)
        first, second = fault.at
        assert 0.01 <= second - first < 0.1
        now = world.server.get("pods", "job-0", "ns")["status"]
        assert (now["message"], now["nominatedNodeName"], now["conditions"][0]) == ("others'", "n2", mark)
        assert (now["conditions"][1]["reason"], now["conditions"][1]["message"]) == ("Unschedulable", "no room")
        await world.end()

    run(story())


@pytest.mark.parametrize(("bound", "tries"), [(False, 5), (True, 1)])
def test_S4_30_up_to_five_times_and_only_while_the_pod_waits(tmp_path: Path, bound: bool, tries: int) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("PATCH", "/status", CONFLICT, times=99)
        world.server.faults.append(fault)
        if bound:
            bound_by_another(world, "n2")
        condition = PodConditionUpdate(bind.uid, bind.key, "Unschedulable", "no room")
        scheduler.executor.finish(Plan(pod_conditions=[condition]))
        await asyncio.sleep(60)
        assert len(fault.at) == tries
        assert len(world.told.of("write_failed")) == (0 if bound else 1)
        await world.end()

    run(story())


def test_a_busy_server_is_given_the_time_it_asks_for(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        fault = Answering("POST", "/binding", status(429, "TooManyRequests", retry_after="11"))
        world.server.faults.append(fault)
        scheduler.executor.bind([bind])
        await asyncio.sleep(30)
        first, second = fault.at
        assert 11 <= second - first < 12
        assert world.pods()["job-0"] == "n1"
        await world.end()

    run(story())
