"""What a scheduler tells follows the level of its log, from the next cycle on."""

from __future__ import annotations

import asyncio
import io
import random

from stromboli.kube.client import Client
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.metrics.logs import LogObserver
from tests.support.live_world import LiveWorld
from tests.support.virtual import run


def test_a_level_that_is_raised_counts_for_what_goes_on_beside_the_cycles() -> None:
    async def story() -> None:
        world, stream = LiveWorld(), io.StringIO()
        log = LogObserver(stream, 0, clock=world.clock)
        client, options = Client(world.server, dice=random.Random(3)), Options(in_thread=False, audit_period=5.0)
        world.start(LiveScheduler(client, options, observer=log, clock=world.clock))
        shown = []
        for level in (0, 3, 0):
            log.level = level
            stream.truncate(0)
            await asyncio.sleep(30)
            log.flush()
            shown.append("Compared state with the cluster" in stream.getvalue())
        assert shown == [False, True, False]
        await world.end()

    run(story())
