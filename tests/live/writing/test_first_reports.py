"""What is reported first of a pod that waits: held back for a moment, in which the pod may yet be bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stromboli.framework.books.plan import Bind, Event, Plan, PodConditionUpdate
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.first_reports import DELAY
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


@pytest.mark.parametrize(("pause", "reported"), [(DELAY / 2, ["2 tasks"]), (DELAY * 1.5, ["1 tasks", "2 tasks"])])
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
        await asyncio.sleep(2 * DELAY)
        assert [text for text in world.written() if "event" not in text] == reported
        await world.end()

    run(told())


def test_what_is_said_of_a_gang_waits_as_long_as_its_pods_arrive(tmp_path: Path) -> None:
    async def told() -> None:
        world = World()
        world.server.put("podgroups", group("job", 5))
        scheduler = await world.directed(tmp_path)
        world.server.put("pods", pod("job-0", "job"))
        await asyncio.sleep(0.01)
        world.report(scheduler, "1 of 5")
        await asyncio.sleep(0.8 * DELAY)
        world.server.put("pods", pod("job-1", "job"))
        await asyncio.sleep(0.7 * DELAY)
        assert world.written() == []
        await asyncio.sleep(DELAY)
        assert world.written()[0] == "1 of 5"
        await world.end()

    run(told())


def test_a_gang_that_never_stops_arriving_is_reported_all_the_same(tmp_path: Path) -> None:
    async def told() -> None:
        world = World()
        world.server.put("podgroups", group("job", 100))
        scheduler = await world.directed(tmp_path)
        for number in range(25):
            world.server.put("pods", pod(f"job-{number}", "job"))
            await asyncio.sleep(0.01)
            world.report(scheduler, "too few")
            await asyncio.sleep(DELAY / 2)
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
