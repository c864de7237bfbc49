"""Stories of jobs: what users make, change and remove of them, and what becomes of them."""

from __future__ import annotations

import asyncio

from tests.recorded.live_cluster import Cluster, command, job, queue, task


async def lives_of_jobs(c: Cluster) -> None:
    """Jobs run, fail, are restarted, suspended, resumed, scaled and removed when they are over."""
    await c.begin()
    await c.make(queue("team", weight=3, capability={"cpu": "8"}))
    await asyncio.sleep(1)
    retry = [{"event": "PodFailed", "action": "RestartJob"}]
    await c.make(
        job("plain", task("a", 2, "sleep 8"), queue="team", minAvailable=2, ttlSecondsAfterFinished=20),
        job("fails", task("a", 2, "sleep 3; exit 3"), maxRetry=2, policies=retry),
        job("stays", task("a", 2), task("b", 1, "sleep 5"), queue="team", minAvailable=3),
    )
    await asyncio.sleep(12)
    await c.make(command("AbortJob", "Job", "stays", "c1"))
    await asyncio.sleep(6)
    await c.make(command("ResumeJob", "Job", "stays", "c2"))
    await asyncio.sleep(8)
    scaled = [task("a", 4), task("b", 1, "sleep 5")]
    await c.change("jobs", "stays", {"spec": {"tasks": scaled}})
    await asyncio.sleep(8)
    await c.remove("pods", "stays-a-0")
    await asyncio.sleep(10)
    await c.make(command("CloseQueue", "Queue", "team", "c3"))
    await asyncio.sleep(3)
    await c.make(job("late", task("a", 1, "sleep 3"), queue="team"))
    await asyncio.sleep(5)
    await c.remove("jobs", "stays")
    await asyncio.sleep(5)
    await c.make(command("OpenQueue", "Queue", "team", "c4"))
    await asyncio.sleep(10)
    await c.make(command("TerminateJob", "Job", "fails", "c5"), command("AbortJob", "Job", "nobody", "c6"))
    await asyncio.sleep(20)
