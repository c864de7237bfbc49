"""Statuses of PodGroups while their pods are bound and start."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.api.scheduling import PodGroupCondition
from stromboli.framework.books.plan import Plan, PodGroupUpdate
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.updater import MEANWHILE
from tests.support.live_world import Directed, LiveWorld, gang, pod
from tests.support.virtual import run

SIZE = 4


def statuses(world: LiveWorld) -> list[tuple[str, int]]:
    """Phase and number of running pods, of each status of a PodGroup that was written."""
    bodies = [json.loads(one.body) for one in world.server.requests if "/podgroups/" in one.path and one.body]
    return [(body["status"]["phase"], body["status"]["running"]) for body in bodies]


class Starting(LiveWorld):
    """A cluster whose pods start when the test says so."""

    def __init__(self) -> None:
        super().__init__(kubelet=False)

    def runs(self, name: str) -> None:
        found = self.server.get("pods", name, "ns")
        self.server.put("pods", {**found, "status": {**found["status"], "phase": "Running"}})


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (1.0, [("Running", 0), ("Running", SIZE)]),
        (1.5 * MEANWHILE, [("Running", n) for n in range(SIZE + 1)]),
    ],
    ids=["soon one after the other", "slowly"],
)
def test_pods_that_start_one_after_the_other_are_told_together(seconds: float, told: list[tuple[str, int]]) -> None:
    async def story() -> None:
        world = Starting()
        gang(world.server, "job", SIZE)
        world.start(world.scheduler())
        await asyncio.sleep(3)
        for number in range(SIZE):
            world.runs(f"job-{number}")
            await asyncio.sleep(seconds)
        await asyncio.sleep(2)
        assert [one for one in statuses(world) if one[0] == "Running"] == told
        await world.end()

    run(story())


SAID = PodGroupCondition("Scheduled", "True", "1", "2027-01-01T00:00:00Z", "tasks in gang are ready", "")


class Told(Directed):
    """A job that is told what the test says, and has one pod that is bound and does not run."""

    async def started(self, tmp_path: Path) -> LiveScheduler:
        gang(self.server, "job", 1)
        self.server.put("pods", pod("job-0", "job", nodeName="n0"))
        scheduler = await self.directed(tmp_path)
        await self.tell(scheduler, "Running", 0)
        return scheduler

    async def tell(self, scheduler: LiveScheduler, phase: str, running: int, **more: Any) -> None:
        update = PodGroupUpdate("ns/job", phase, **{"conditions": (SAID,), "running": running, **more})
        scheduler.executor.finish(Plan(pod_groups=[update]))
        await asyncio.sleep(0.1)

    def counted(self) -> list[int]:
        return [running for _, running in statuses(self)]


@pytest.mark.parametrize(
    ("phase", "more", "at_once"),
    [
        ("Running", {}, False),
        ("Inqueue", {}, True),
        ("Running", {"conditions": (SAID, msgspec.structs.replace(SAID, type="Unschedulable"))}, True),
        ("Running", {"annotations": {"a": "b"}}, True),
    ],
    ids=["counts", "a phase", "a condition", "an annotation"],
)
def test_what_is_told_of_pods_that_start_and_when(
    phase: str, more: dict[str, Any], at_once: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        world = Told(kubelet=False)
        scheduler = await world.started(tmp_path)
        await world.tell(scheduler, phase, 7, **more)
        assert world.counted() == [0, 7][: 1 + at_once]
        await asyncio.sleep(MEANWHILE)
        assert world.counted() == [0, 7]
        await world.end()

    run(story())


def test_counts_are_written_before_a_stop(tmp_path: Path) -> None:
    async def story() -> None:
        world = Told(kubelet=False)
        scheduler = await world.started(tmp_path)
        await world.tell(scheduler, "Running", 7)
        scheduler.stop()
        await asyncio.wait_for(world.tasks[-1], MEANWHILE / 2)
        assert world.counted() == [0, 7]
        await world.end()

    run(story())
