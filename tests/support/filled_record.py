"""A record of ten minutes of two nodes that are full: jobs wait, one is evicted, a node comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from stromboli.live.scheduler.recording import record
from tests.support.live_world import PREEMPTING, LiveWorld, gang, group, node, pod
from tests.support.virtual import run

PERIOD = 5.0


def filled(folder: Path) -> Path:
    """Ten minutes of two nodes of four cores: gangs of four for two minutes each, one is evicted by a higher one."""

    async def story() -> None:
        (folder / "conf").write_text(PREEMPTING)
        world = LiveWorld(nodes=2)
        world.server.put("priorityclasses", {"metadata": {"name": "pressing"}, "value": 1000})
        scheduler = world.scheduler(str(folder / "conf"), schedule_period=PERIOD)
        recorder = record(scheduler, folder / "rec")
        world.start(scheduler)
        gang(world.server, "early", 4)
        for number in range(4):
            await asyncio.sleep(31)
            gang(world.server, f"later-{number}", 4)
        world.server.put("podgroups", group("urgent", 4, priorityClassName="pressing"))
        for number in range(4):
            found = pod(f"urgent-{number}", "urgent", priority=1000, priorityClassName="pressing")
            world.server.put("pods", found)
        world.server.put("nodes", node("more"))
        for name in ("early", "later-0", "urgent", "later-1", "later-2"):
            for _ in range(12):
                await asyncio.sleep(10)
                evict(world)
            for number in range(4):
                if ("ns", f"{name}-{number}") in world.server.objects["pods"]:
                    world.server.drop("pods", f"{name}-{number}", "ns")
        await world.end()
        recorder.close()

    run(story())
    return folder / "rec"


def evict(world: LiveWorld) -> None:
    """Evicted pods are gone, and come again."""
    for found in world.server.all("pods"):
        if "deletionTimestamp" in found["metadata"]:
            name, job = found["metadata"]["name"], found["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
            world.server.drop("pods", name, "ns")
            world.server.put("pods", pod(name, job))


@pytest.fixture(scope="module")
def filled_record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stromboli.live.scheduler.scheduler.LOOK_EVERY", PERIOD)
        yield filled(tmp_path_factory.mktemp("filled"))
