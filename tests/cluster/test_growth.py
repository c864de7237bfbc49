"""What the scheduler keeps does not grow with the jobs that have come and gone."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from stromboli.kube.recorder import FORGOTTEN
from stromboli.narration.observe import Counting
from tests.support.live_world import LiveWorld, gang
from tests.support.virtual import run

WARM, ROUNDS = 2, 5
SLACK = 10
"""How many more objects of a class there may be at the end: caches that turn over."""


def counted() -> Counter[str]:
    """Objects of our classes that are alive, by class."""
    gc.collect()
    classes = Counter(type(one) for one in gc.get_objects())
    ours = {one: count for one, count in classes.items() if str(one.__module__).startswith("stromboli")}
    return Counter({f"{one.__module__}.{one.__qualname__}": count for one, count in ours.items()})


async def churn(world: LiveWorld, number: int) -> None:
    """Jobs come, those that fit run, and all go."""
    for each in range(8):
        gang(world.server, f"r{number}-{each}", 2 if each % 5 else 14)
    await asyncio.sleep(5)
    for pod in world.server.all("pods"):
        world.server.drop("pods", pod["metadata"]["name"], "ns")
    for each in world.server.all("podgroups"):
        world.server.drop("podgroups", each["metadata"]["name"], "ns")
    await asyncio.sleep(5)
    world.server.requests.clear()
    world.clock.jump += 2 * FORGOTTEN


def test_what_is_kept_does_not_grow_with_the_jobs_that_have_gone() -> None:
    async def main() -> None:
        world = LiveWorld(cpu=8)
        world.told = Counting(keep=1)
        scheduler = world.scheduler()
        world.start(scheduler)
        await scheduler.ready.wait()
        for number in range(WARM):
            await churn(world, number)
        before = counted()
        for number in range(WARM, ROUNDS):
            await churn(world, number)
        assert len(world.server.bindings) > ROUNDS * 20
        more = counted() - before
        assert {name: count for name, count in more.items() if count > SLACK} == {}
        await world.end()

    run(main())
