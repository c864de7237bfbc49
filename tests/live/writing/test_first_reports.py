"""What is reported first of a pod that waits: held back for a moment, in which the pod may yet be bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stromboli.framework.books.plan import Bind, Event, Plan, PodConditionUpdate, PodGroupUpdate
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.first_reports import DELAY, LONGEST, LULL
from tests.support.live_world import Directed, group, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run


class World(Directed):
    """One pod, of which nothing has been reported."""

    async def new_pod(self, tmp_path: Path) -> LiveScheduler:
        self.server.put("podgroups", group("job", 1))
        scheduler = await self.directed(tmp_path)
        self.server.put("pods", pod("job-0", "job"))
        await asyncio.sleep(0.01)
        return scheduler

    def report(self, scheduler: LiveScheduler, message: str, nominated: str = "") -> None:
        condition = PodConditionUpdate(uid(self, "job-0"), "ns/job-0", "Unschedulable", message, nominated)
        event = Event("Pod", "ns/job-0", "Warning", "FailedScheduling", message)
        scheduler.executor.finish(Plan(session="s", pod_conditions=[condition], events=[event]))

    def written(self) -> list[str]:
        """Messages of conditions and events, in order."""
        found = []
        for request in self.server.requests:
            body = json.loads(request.body or b"{}")
            conditions = body.get("status", {}).get("conditions", []) if request.method == "PATCH" else []
            found += [one["message"] for one in conditions]
            if "/events" in request.path and body.get("reason") == "FailedScheduling":
                found.append(f"event: {body['message']}")
        return found


Story = Callable[[World, LiveScheduler], Awaitable[None]]


async def bound_in_time(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    scheduler.executor.bind([Bind(uid(world, "job-0"), "ns/job-0", "ns/job", "n1")])


async def gone_in_time(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    world.server.drop("pods", "job-0", "ns")


async def still_waiting(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    await asyncio.sleep(DELAY / 2)
    assert world.written() == []
    await asyncio.wait_for(scheduler.executor.quiet(), 0.01)  # no stop waits for them


async def reported_anew(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    world.report(scheduler, "no room")


async def nominated(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    world.report(scheduler, "waits for n1", "n1")
    await asyncio.sleep(DELAY / 2)
    assert world.written() == ["waits for n1"]


async def refused(world: World, scheduler: LiveScheduler) -> None:
    world.server.faults.append(lambda request, _: status(403, "Forbidden", "no") if "binding" in request.path else None)
    world.report(scheduler, "0/1 tasks")
    scheduler.executor.bind([Bind(uid(world, "job-0"), "ns/job-0", "ns/job", "n1")])


async def outdated(world: World, scheduler: LiveScheduler) -> None:
    """A pod arrives, and with it the gang is complete: what is said then is said alone."""
    world.server.put("podgroups", group("job", 2))
    await asyncio.sleep(2 * DELAY)
    world.server.requests.clear()
    world.report(scheduler, "1 of 2 pods there")
    await asyncio.sleep(0.4 * DELAY)
    world.server.put("pods", pod("job-1", "job"))
    await asyncio.sleep(0.01)
    world.report(scheduler, "no room", "n1")
    await asyncio.sleep(DELAY)


async def stopped(world: World, scheduler: LiveScheduler) -> None:
    world.report(scheduler, "0/1 tasks")
    scheduler.executor.hand_back()


REFUSED = "failed to bind to node n1: no"


@pytest.mark.parametrize(
    ("story", "written"),
    [
        (bound_in_time, []),
        (gone_in_time, []),
        (still_waiting, ["0/1 tasks", "event: 0/1 tasks"]),
        (reported_anew, ["no room", "event: no room"]),
        (nominated, ["waits for n1", "event: waits for n1"]),
        (refused, [REFUSED, f"event: {REFUSED}"]),
        (stopped, []),
        (outdated, ["no room", "event: no room"]),
    ],
)
def test_the_first_report_of_a_pod(tmp_path: Path, story: Story, written: list[str]) -> None:
    async def told() -> None:
        world = World()
        scheduler = await world.new_pod(tmp_path)
        await story(world, scheduler)
        await asyncio.sleep(2 * DELAY)
        assert sorted(dict.fromkeys(world.written())) == sorted(written)
        assert scheduler.executor.in_flight == 0
        await world.end()

    run(told())


@pytest.mark.parametrize(
    ("pause", "reported"),
    [(DELAY / 2, ["2 tasks"]), (LULL - DELAY / 2, ["2 tasks"]), (LULL + DELAY, ["1 tasks", "2 tasks"])],
)
def test_a_gang_whose_pods_still_arrive_is_waited_for(tmp_path: Path, pause: float, reported: list[str]) -> None:
    async def told() -> None:
        world = World()
        world.server.put("podgroups", group("job", 5))
        scheduler = await world.directed(tmp_path)
        for number in range(1, 3):
            world.server.put("pods", pod(f"job-{number - 1}", "job"))
            await asyncio.sleep(0.01)
            world.report(scheduler, f"{number} tasks")
            await asyncio.sleep(pause)
        await asyncio.sleep(LULL + 2 * DELAY)
        assert [text for text in world.written() if "event" not in text] == reported
        await world.end()

    run(told())


def test_a_gang_that_never_stops_arriving_is_reported_all_the_same(tmp_path: Path) -> None:
    async def told() -> None:
        world = World()
        world.server.put("podgroups", group("job", 100))
        scheduler = await world.directed(tmp_path)
        for number in range(int(LONGEST / DELAY) + 3):
            world.server.put("pods", pod(f"job-{number}", "job"))
            await asyncio.sleep(0.01)
            world.report(scheduler, "too few")
            await asyncio.sleep(DELAY)
        assert "too few" in world.written()
        await world.end()

    run(told())


def test_what_changes_later_is_reported_at_once(tmp_path: Path) -> None:
    async def told() -> None:
        world = World()
        scheduler = await world.new_pod(tmp_path)
        world.report(scheduler, "0/1 tasks")
        await asyncio.sleep(2 * DELAY)
        world.report(scheduler, "no room")
        await asyncio.sleep(DELAY / 2)
        assert world.written()[2:] == ["no room", "event: no room"]
        await world.end()

    run(told())


class GangWorld(Directed):
    """A gang of three, and what is said of its PodGroup."""

    async def gang(self, tmp_path: Path, *nodes: str) -> LiveScheduler:
        """Pods of it that are there, each with a node or without."""
        self.server.put("podgroups", group("job", 3))
        for number, node in enumerate(nodes):
            self.server.put("pods", pod(f"job-{number}", "job", nodeName=node))
        return await self.directed(tmp_path)

    def runs(self, number: int) -> None:
        body = self.server.get("pods", f"job-{number}", "ns")
        self.server.put("pods", {**body, "status": {"phase": "Running"}})

    def counts(self, scheduler: LiveScheduler, running: int, phase: str = "Running") -> None:
        scheduler.executor.finish(Plan(session="s", pod_groups=[PodGroupUpdate("ns/job", phase, (), running)]))

    def happens(self, scheduler: LiveScheduler, reason: str, message: str) -> None:
        event = Event("PodGroup", "ns/job", "Warning", reason, message)
        scheduler.executor.finish(Plan(session="s", events=[event]))

    def said(self) -> list[tuple[str, int]]:
        """Phases and counts of running pods that were written."""
        bodies = [json.loads(r.body or b"{}") for r in self.server.requests if r.path.endswith("podgroups/job")]
        return [(body["status"]["phase"], body["status"]["running"]) for body in bodies]

    def events(self) -> list[str]:
        bodies = [json.loads(r.body or b"{}") for r in self.server.requests if "/events" in r.path]
        return [body["message"] for body in bodies if body["involvedObject"]["kind"] == "PodGroup"]


def test_pods_that_begin_to_run_are_counted_once(tmp_path: Path) -> None:
    """How many run is written when all do; a new phase at once, with the count of the moment."""

    async def told() -> None:
        world = GangWorld()
        scheduler = await world.gang(tmp_path, "n1", "n1", "n1")
        for number in range(3):
            world.runs(number)
            await asyncio.sleep(0.01)
            world.counts(scheduler, number + 1)
            await asyncio.sleep(DELAY / 2)
        await asyncio.sleep(2 * DELAY)
        assert world.said() == [("Running", 3)]
        world.counts(scheduler, 2, "Unknown")
        await asyncio.sleep(0.01)
        assert world.said() == [("Running", 3), ("Unknown", 2)]
        await world.end()

    run(told())


def test_pods_that_take_long_to_run_do_not_keep_the_others_from_being_counted(tmp_path: Path) -> None:
    async def told() -> None:
        world = GangWorld()
        scheduler = await world.gang(tmp_path, "n1", "n1", "n1")
        world.runs(0)
        await asyncio.sleep(0.01)
        world.counts(scheduler, 1)
        await asyncio.sleep(LULL - DELAY)
        assert world.said() == []
        await asyncio.sleep(2 * DELAY)
        assert world.said() == [("Running", 1)]
        await world.end()

    run(told())


@pytest.mark.parametrize(("there", "phase", "reported"), [
    pytest.param(2, "Inqueue", ["2/2 tasks"], id="pods are missing"),
    pytest.param(3, "Inqueue", ["1/1 tasks", "2/2 tasks"], id="all are there"),
    pytest.param(0, "Pending", ["1/1 tasks", "2/2 tasks"], id="the gang is not let in"),
])  # fmt: skip
def test_a_gang_that_arrives_is_said_once_to_wait(tmp_path: Path, there: int, phase: str, reported: list[str]) -> None:
    """Other warnings on its PodGroup are told whatever it awaits."""

    async def told() -> None:
        world = GangWorld()
        scheduler = await world.gang(tmp_path, *[""] * there)
        world.counts(scheduler, 0, phase)
        world.happens(scheduler, "Unschedulable", "1/1 tasks")
        world.happens(scheduler, "GateTimeout", "a gate")
        world.happens(scheduler, "Unschedulable", "2/2 tasks")
        await asyncio.sleep(DELAY / 2)
        assert "a gate" in world.events()
        await asyncio.sleep(LULL + DELAY)
        assert sorted(world.events()) == [*reported, "a gate"]
        await world.end()

    run(told())


def test_what_a_cycle_says_that_did_not_know_of_the_last_pod_waits_for_the_next_one(tmp_path: Path) -> None:
    async def told() -> None:
        world = GangWorld()
        scheduler = await world.gang(tmp_path, "", "")
        world.happens(scheduler, "Unschedulable", "1/1 tasks")
        world.server.put("pods", pod("job-2", "job"))
        await asyncio.sleep(0.01)
        world.happens(scheduler, "Unschedulable", "2/2 tasks")
        await asyncio.sleep(1.5 * DELAY)
        assert world.events() == []
        world.happens(scheduler, "Unschedulable", "3/3 tasks")
        await asyncio.sleep(DELAY)
        assert world.events() == ["3/3 tasks"]
        await world.end()

    run(told())


def test_a_gang_that_is_placed_in_time_is_not_said_to_wait(tmp_path: Path) -> None:
    async def told() -> None:
        world = GangWorld()
        scheduler = await world.gang(tmp_path, "", "")
        world.happens(scheduler, "Unschedulable", "2/2 tasks")
        world.server.put("pods", pod("job-2", "job"))
        await asyncio.sleep(0.01)
        binds = [Bind(uid(world, f"job-{number}"), f"ns/job-{number}", "ns/job", "n1") for number in range(3)]
        scheduler.executor.bind(binds)
        await asyncio.sleep(LULL + 2 * DELAY)
        assert world.events() == []
        await world.end()

    run(told())
