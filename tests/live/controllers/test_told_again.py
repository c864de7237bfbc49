"""Events of what happens again say how often it has, and when last."""

from __future__ import annotations

import asyncio

from tests.support.controller_world import ControllerWorld, job
from tests.support.virtual import run


def told(world: ControllerWorld, reason: str) -> list[tuple[int, bool]]:
    """How often each event of a reason was counted, and whether its last time is later than its first."""
    events = [event for event in world.server.all("events") if event["reason"] == reason]
    return [(event["count"], event["lastTimestamp"] > event["firstTimestamp"]) for event in events]


def test_a_job_that_restarts_again_and_again_says_how_often() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        policies = [{"exitCode": 3, "action": "RestartJob"}]
        world.server.put("jobs", job("j", 2, maxRetry=4, policies=policies))
        for _ in range(4):
            await asyncio.sleep(8)
            world.end_pods("j", "Failed", 3)
        await asyncio.sleep(15)
        assert world.phase("j") == "Failed"
        assert told(world, "ExecuteAction") == [(4, True)]
        await world.end()

    run(main())


def test_each_command_counts() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        world.server.put("jobs", job("j", 1))
        for action in ("AbortJob", "ResumeJob") * 3:
            await asyncio.sleep(4)
            world.command(action, "Job", "j")
        await asyncio.sleep(30)
        assert sorted(told(world, "CommandIssued")) == [(3, True), (3, True)]
        await world.end()

    run(main())
