"""Statuses of PodGroups while their pods are bound and start."""

from __future__ import annotations

import asyncio
import json

import pytest

from stromboli.live.writing.updater import MEANWHILE
from tests.support.live_world import LiveWorld, gang
from tests.support.virtual import run

SIZE = 4


class Starting(LiveWorld):
    """A cluster whose pods start when the test says so."""

    def __init__(self) -> None:
        super().__init__(kubelet=False)

    def runs(self, name: str) -> None:
        found = self.server.get("pods", name, "ns")
        self.server.put("pods", {**found, "status": {**found["status"], "phase": "Running"}})

    def statuses(self) -> list[tuple[str, int]]:
        """Phase and number of running pods, of each status of a PodGroup that was written."""
        bodies = [json.loads(one.body) for one in self.server.requests if "/podgroups/" in one.path and one.body]
        return [(body["status"]["phase"], body["status"]["running"]) for body in bodies]


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
        assert [one for one in world.statuses() if one[0] == "Running"] == told
        await world.end()

    run(story())
