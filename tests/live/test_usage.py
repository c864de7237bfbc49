"""Loads of nodes reach the cycles of a live scheduler."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.support.live_world import LiveWorld, gang
from tests.support.virtual import run

CONF = """\
actions: allocate
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: usage}}]
metrics: {{type: file, address: {file}, interval: 10s}}
"""


def test_a_live_scheduler_keeps_pods_off_loaded_nodes_as_the_measurements_change(tmp_path: Path) -> None:
    loads, conf = tmp_path / "usage.json", tmp_path / "scheduler.conf"
    conf.write_text(CONF.format(file=loads))

    def measured(idle: str) -> None:
        loads.write_text(json.dumps({f"n{i}": {"cpu": 10 if f"n{i}" == idle else 95, "memory": 5} for i in range(4)}))

    def places(world: LiveWorld, job: str) -> set[str]:
        pods = [pod for pod in world.server.all("pods") if pod["metadata"]["name"].startswith(job)]
        return {pod["spec"].get("nodeName", "") for pod in pods}

    async def main() -> None:
        world = LiveWorld()
        measured("n2")
        scheduler = world.scheduler(str(conf))
        world.start(scheduler)
        await asyncio.sleep(5)
        gang(world.server, "first", 2)
        await asyncio.sleep(5)
        assert places(world, "first") == {"n2"}
        measured("n1")
        await asyncio.sleep(12)
        gang(world.server, "second", 2)
        await asyncio.sleep(5)
        assert places(world, "second") == {"n1"}
        loads.unlink()
        await asyncio.sleep(30)
        assert "usage.json" in str(world.told.of("node_metrics_failed")[-1]["error"])
        gang(world.server, "third", 2)
        await asyncio.sleep(5)
        assert places(world, "third") == {"n1"}  # the last samples still count
        await world.end()

    run(main())
