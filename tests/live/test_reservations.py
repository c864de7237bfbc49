"""What is written of reservations: only the three annotations, only where they change, and nothing waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stromboli.errors import Unreachable
from stromboli.framework.books.plan import Bind, Plan, PodAnnotations, PodGroupUpdate
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.executor import LiveExecutor
from stromboli.live.writing.updater import AGAIN_AFTER
from stromboli.model.names import PIPELINED_PROOF
from stromboli.model.reservation import KEYS, Held, patch, stated
from tests.support.live_world import Directed, Json, LiveWorld, group, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run

N1, N2 = Held("n1"), Held("n2", evicted=True)
CLEARED = dict.fromkeys((*KEYS, PIPELINED_PROOF))
OTHER = {"example.com/other": "stays"}


async def one_pod(tmp_path: Path, held: Held | None = None, **more: Any) -> tuple[Directed, LiveScheduler]:
    """A world with one pod that waits and states ``held``."""
    world = Directed()
    world.server.put("podgroups", group("job", 1))
    made = pod("job-0", "job")
    made["metadata"]["annotations"] |= OTHER
    world.server.put("pods", made)
    if held is not None:
        world.reserve("job-0", held)
    scheduler = await world.directed(tmp_path, **more)
    return world, scheduler


def wish(world: LiveWorld, held: Held | None) -> Plan:
    return Plan(annotations=[PodAnnotations(uid(world, "job-0"), "ns/job-0", held)])


def bind(world: LiveWorld, node: str = "n1") -> Bind:
    return Bind(uid(world, "job-0"), "ns/job-0", "ns/job", node)


def patches(world: LiveWorld) -> list[Json]:
    """Bodies of the patches of pods, statuses left out."""
    sent = [r for r in world.server.requests if r.method == "PATCH" and r.path.endswith("/pods/job-0")]
    return [json.loads(request.body or b"") for request in sent]


def kept(world: LiveWorld) -> dict[str, str]:
    """The pod's annotations on the server, but those that made it ours."""
    found: dict[str, str] = world.server.get("pods", "job-0", "ns")["metadata"]["annotations"]
    return {key: value for key, value in found.items() if key not in ("scheduling.k8s.io/group-name", PIPELINED_PROOF)}


def proof(world: LiveWorld) -> str:
    """That which the pod bears; empty for none."""
    found: str = world.server.get("pods", "job-0", "ns")["metadata"]["annotations"].get(PIPELINED_PROOF, "")
    return found


def results(world: LiveWorld) -> list[object]:
    return [told["result"] for told in world.told.of("metric.pod_annotation_patch")]


def placed(scheduler: LiveScheduler) -> tuple[str, str]:
    task = scheduler.state.tasks["ns/job-0"]
    return task.status.name, task.node_name


@contextmanager
def unseen(world: LiveWorld) -> Iterator[None]:
    """No watch tells of what changes meanwhile."""
    watches, world.server.watches = world.server.watches, []
    yield
    world.server.watches = watches


# ---------------------------------------------------------------------- what is written


def test_S4_27_S4_37_a_patch_names_the_keys_and_the_uid_and_nothing_else(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        scheduler.executor.finish(wish(world, N2))
        found = world.server.get("pods", "job-0", "ns")  # another client writes an annotation meanwhile
        marked = {**found["metadata"], "annotations": {**found["metadata"]["annotations"], "example.com/new": "1"}}
        world.server.put("pods", {**found, "metadata": marked})
        await asyncio.sleep(1)
        (sent,) = patches(world)
        assert sent == {"metadata": {"uid": uid(world, "job-0"), "annotations": patch(N2, proof(world))}}
        assert kept(world) == {**OTHER, "example.com/new": "1", **stated(N2)}
        scheduler.executor.finish(wish(world, N1))
        await asyncio.sleep(1)
        assert patches(world)[-1]["metadata"]["annotations"] == patch(N1, proof(world))
        scheduler.executor.finish(wish(world, None))
        await asyncio.sleep(1)
        assert patches(world)[-1]["metadata"]["annotations"] == CLEARED
        assert kept(world) == {**OTHER, "example.com/new": "1"}
        assert [r.method for r in world.server.requests if "/events" not in r.path] == ["PATCH"] * 3  # nothing is read
        assert results(world) == ["ok"] * 3
        await world.end()

    run(story())


def test_S4_28_what_the_pod_says_already_is_not_written(tmp_path: Path) -> None:  # S4-37: no write
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        for _ in range(10):
            scheduler.executor.finish(wish(world, N1))
            await asyncio.sleep(1)
        assert patches(world) == []
        assert results(world) == ["skipped"] * 10
        await world.end()

    run(story())


def test_S4_29_of_several_wishes_the_last_one_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        for held in (N1, None, N2):
            scheduler.executor.finish(wish(world, held))
        await asyncio.sleep(1)
        assert len(patches(world)) == 1
        assert kept(world) == {**OTHER, **stated(N2)}
        world.server.latency = 1.0
        for held in (N1, N2, None, N1):  # the first is under way while the others come
            scheduler.executor.finish(wish(world, held))
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        assert len(patches(world)) == 2
        assert kept(world) == {**OTHER, **stated(N1)}
        await world.end()

    run(story())


class Counted:
    """Takes the place of the status updater and writes nothing."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, object]] = []

    def update_pod_annotations(self, task: Any, desired: Held | None) -> None:
        self.heard.append(("annotations", task.key, desired))

    def __getattr__(self, name: str) -> Any:
        return lambda update: self.heard.append((name, update.key, None))


def test_S4_31_the_status_updater_is_offered_and_can_be_replaced(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        task = scheduler.state.tasks["ns/job-0"]
        own = scheduler.executor.status_updater()
        own.update_pod_annotations(task, N1)
        await asyncio.sleep(1)
        assert kept(world) == {**OTHER, **stated(N1)}
        world.server.requests.clear()
        fake = Counted()
        executor = LiveExecutor(scheduler.executor._context, updater=fake)
        assert executor.status_updater() is fake
        executor.update_pod_annotations(task, N2)
        executor.finish(wish(world, None))
        await asyncio.sleep(1)
        assert fake.heard == [("annotations", "ns/job-0", N2), ("annotations", "ns/job-0", None)]
        assert world.server.requests == []
        await world.end()

    run(story())


# ---------------------------------------------------------------------- what the next cycle sees


def test_what_is_decided_counts_at_once_and_older_news_does_not_undo_it(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        world.server.latency = 5.0
        scheduler.executor.finish(wish(world, N1))
        assert placed(scheduler) == ("Pipelined", "n1")
        found = world.server.get("pods", "job-0", "ns")
        world.server.put("pods", {**found, "status": {"phase": "Pending", "message": "news"}})
        await asyncio.sleep(1)
        assert placed(scheduler) == ("Pipelined", "n1")
        assert scheduler.state.snapshot().reserved[0].key == "ns/job-0"
        await asyncio.sleep(10)
        assert (placed(scheduler), scheduler.mirror.unwritten) == (("Pipelined", "n1"), {})
        scheduler.executor.finish(wish(world, None))
        assert placed(scheduler) == ("Pending", "")
        await asyncio.sleep(10)
        assert (placed(scheduler), scheduler.mirror.unwritten) == (("Pending", ""), {})
        await world.end()

    run(story())


def answering(answers: list[Response | Exception]) -> Any:
    """Answers patches of the pod, one after the other, and lets them pass when nothing is left."""

    def fault(request: Request, when: str) -> Response | None:
        if when != "before" or request.method != "PATCH" or not request.path.endswith("/pods/job-0") or not answers:
            return None
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return fault


@pytest.mark.parametrize(
    ("answer", "tries", "told"),
    [
        (status(409, "Conflict"), 1, "conflict"),
        (status(404, "NotFound"), 1, "gone"),
        (status(422, "Invalid", 'Pod "job-0" is invalid: metadata.uid: field is immutable'), 1, "conflict"),
    ],
)
def test_a_write_that_meets_another_is_dropped(tmp_path: Path, answer: Response, tries: int, told: str) -> None:
    """Then the pod's annotations count, and the next session decides again."""

    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        world.server.faults.append(answering([answer]))
        scheduler.executor.finish(wish(world, N2))
        assert placed(scheduler) == ("Pipelined", "n2")
        await asyncio.sleep(100)
        assert (len(patches(world)), results(world)) == (tries, [told])
        assert (placed(scheduler), scheduler.mirror.unwritten) == (("Pipelined", "n1"), {})
        await world.end()

    run(story())


def test_after_a_conflict_what_the_pod_says_is_read_again(tmp_path: Path) -> None:
    """Another scheduler has written a reservation, and no watch has told of it."""

    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        with unseen(world):
            world.reserve("job-0", N2)
        world.server.faults.append(answering([status(409, "Conflict")]))
        scheduler.executor.finish(wish(world, N1))
        await asyncio.sleep(2)
        assert (placed(scheduler), kept(world)) == (("Pipelined", "n2"), {**OTHER, **stated(N2)})
        await world.end()

    run(story())


@pytest.mark.parametrize(
    "answer",
    [status(500, "InternalError"), status(429, "TooManyRequests", retry_after="7"), Unreachable("reset")],
)
def test_other_troubles_are_waited_out(tmp_path: Path, answer: Response | Exception) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        world.server.faults.append(answering([answer] * 3))
        scheduler.executor.finish(wish(world, N1))
        await asyncio.sleep(60)
        assert results(world) == ["error"] * 3 + ["ok"]
        assert (placed(scheduler), kept(world)) == (("Pipelined", "n1"), {**OTHER, **stated(N1)})
        await world.end()

    run(story())


def test_what_may_not_be_written_stands_in_the_state_and_is_tried_again_now_and_then(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        world.server.faults.append(answering([status(403, "Forbidden")] * 3))
        scheduler.executor.finish(wish(world, N1))
        await asyncio.sleep(2.5 * AGAIN_AFTER)
        assert (len(patches(world)), placed(scheduler)) == (3, ("Pipelined", "n1"))
        await asyncio.sleep(AGAIN_AFTER)
        assert (len(patches(world)), kept(world)) == (4, {**OTHER, **stated(N1)})
        await world.end()

    run(story())


def test_many_that_cannot_be_written_do_not_keep_statuses_waiting(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        for number in range(1, 100):
            world.server.put("pods", pod(f"job-{number}", "job"))
        await asyncio.sleep(1)
        stuck = status(500, "InternalError")

        def fault(request: Request, _when: str) -> Response | None:
            return stuck if request.method == "PATCH" and "/pods/" in request.path else None

        world.server.faults.append(fault)
        tasks = list(scheduler.state.tasks.values())
        scheduler.executor.finish(Plan(annotations=[PodAnnotations(task.uid, task.key, N1) for task in tasks]))
        await asyncio.sleep(1)
        scheduler.executor.finish(Plan(pod_groups=[PodGroupUpdate("ns/job", "Running", running=1)]))
        await asyncio.sleep(1)
        assert world.server.get("podgroups", "job", "ns")["status"]["phase"] == "Running"
        await world.end()

    run(story())


# ---------------------------------------------------------------------- binding


def test_S4_03_a_bound_pod_says_nothing_of_a_reservation_any_more(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        assert placed(scheduler) == ("Pipelined", "n1")
        scheduler.executor.bind([bind(world)])
        scheduler.executor.finish(wish(world, None))  # as the plan of the cycle says
        assert placed(scheduler) == ("Binding", "n1")
        await asyncio.sleep(2)
        (sent,) = [r for r in world.server.requests if r.path.endswith("/binding")]
        assert "annotations" not in json.loads(sent.body or b"")["metadata"]
        assert (kept(world), len(patches(world))) == (OTHER, 1)
        assert placed(scheduler) == ("Running", "n1")
        await world.end()

    run(story())


def test_a_reservation_lasts_until_the_end_of_its_binding_is_known(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        world.server.latency = 5.0
        scheduler.executor.bind([bind(world)])
        scheduler.executor.finish(wish(world, None))
        await asyncio.sleep(4)
        assert (patches(world), kept(world)) == ([], {**OTHER, **stated(N1)})
        await asyncio.sleep(10)
        assert kept(world) == OTHER
        await world.end()

    run(story())


def bound_by_another(world: LiveWorld, node: str) -> None:
    """Another scheduler binds the pod, and no watch tells of it."""
    found = world.server.get("pods", "job-0", "ns")
    with unseen(world):
        world.server.put("pods", {**found, "spec": {**found["spec"], "nodeName": node}})


def test_S4_25_a_pod_that_stands_on_its_target_says_nothing_of_a_reservation_any_more(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        bound_by_another(world, "n1")
        scheduler.executor.bind([bind(world)])
        await asyncio.sleep(2)
        assert (scheduler.executor.binder.bound, scheduler.executor.binder.failed) == (1, 0)
        assert (kept(world), len(patches(world)), placed(scheduler)) == (OTHER, 1, ("Bound", "n1"))
        await world.end()

    run(story())


def test_what_was_under_way_when_a_pod_was_bound_is_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        world.server.latency = 2.0
        scheduler.executor.finish(wish(world, N1))
        await asyncio.sleep(0.5)
        scheduler.executor.bind([bind(world)])
        await asyncio.sleep(10)
        first, second = (sent["metadata"]["annotations"] for sent in patches(world))
        assert first == patch(N1, first[PIPELINED_PROOF])
        assert second == CLEARED
        assert (kept(world), placed(scheduler)) == (OTHER, ("Running", "n1"))
        await world.end()

    run(story())


def test_what_is_decided_last_is_written_before_a_scheduler_stops(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        world.server.latency = 2.0
        scheduler.executor.finish(wish(world, N1))
        scheduler.stop()
        await world.tasks[0]
        assert kept(world) == {**OTHER, **stated(N1)}

    run(story())


def test_pods_of_other_schedulers_are_theirs(tmp_path: Path) -> None:
    """They count once they have a node, and may say of reservations what they like."""

    async def story() -> None:
        world, scheduler = await one_pod(tmp_path)
        foreign = pod("foreign-0", schedulerName="other", nodeName="n1")
        foreign["metadata"]["annotations"] |= stated(N1)
        world.server.put("pods", foreign)
        await asyncio.sleep(1)
        assert [task.key for task in scheduler.state.snapshot().reserved] == ["ns/foreign-0"]
        scheduler.executor.finish(Plan(annotations=[PodAnnotations(uid(world, "foreign-0"), "ns/foreign-0", None)]))
        await asyncio.sleep(2)
        assert world.server.get("pods", "foreign-0", "ns")["metadata"]["annotations"] == stated(N1)
        await world.end()

    run(story())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_S4_26_a_bind_that_fails_ends_the_reservation(tmp_path: Path, elsewhere: bool) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        if elsewhere:
            bound_by_another(world, "n3")
        else:
            refused = status(403, "Forbidden", "not allowed")
            world.server.faults.append(lambda request, _when: refused if "/binding" in request.path else None)
        scheduler.executor.bind([bind(world)])
        await asyncio.sleep(2)
        assert scheduler.executor.binder.failed == 1
        assert (kept(world), len(patches(world))) == (OTHER, 1)
        assert placed(scheduler) == (("Bound", "n3") if elsewhere else ("Pending", ""))
        table = scheduler.state.nodes.snapshot()
        assert not table.pipelined.any()
        await world.end()

    run(story())


def test_a_bind_that_is_handed_back_leaves_the_reservation(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1)
        scheduler.executor.bind([bind(world)])
        assert scheduler.executor.binder.hand_back() == 1
        await asyncio.sleep(2)
        assert (placed(scheduler), kept(world)) == (("Pipelined", "n1"), {**OTHER, **stated(N1)})
        await world.end()

    run(story())


# ---------------------------------------------------------------------- leading, and the gate


def test_a_scheduler_that_does_not_lead_writes_nothing_and_reads_the_pods_when_it_leads_again(tmp_path: Path) -> None:
    async def story() -> None:
        leads = [True]
        world, scheduler = await one_pod(tmp_path, N1, may_write=lambda: leads[0])
        leads[0] = False
        scheduler.executor.finish(wish(world, N2))
        await asyncio.sleep(2)
        assert (patches(world), placed(scheduler)) == ([], ("Pipelined", "n2"))
        leads[0] = True
        await scheduler._begin_to_lead(fresh=False)
        assert (placed(scheduler), scheduler.mirror.unwritten) == (("Pipelined", "n1"), {})
        await world.end()

    run(story())


def test_with_the_gate_off_nothing_is_read_or_written(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler = await one_pod(tmp_path, N1, gates={"PipelinedStatePersistence": False})
        assert placed(scheduler) == ("Pending", "")
        scheduler.executor.bind([bind(world, "n2")])
        await asyncio.sleep(2)
        assert (world.pods()["job-0"], patches(world), kept(world)) == ("n2", [], {**OTHER, **stated(N1)})
        await world.end()

    run(story())
