"""Devices that pods claim are followed on a live cluster: in the version that its server has, or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import LiveScheduler
from tests.support.faulty import status
from tests.support.live_world import LiveWorld, group, pod, queue
from tests.support.virtual import run

CLASS = "gpu.example.com"
CONF = """\
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""


def claim(name: str, count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": CLASS, "count": count, "allocationMode": "ExactCount"}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def offer(world: LiveWorld) -> None:
    """A class, and ten devices of it that every node reaches."""
    world.server.put("deviceclasses", {"metadata": {"name": CLASS}, "spec": {}})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": CLASS, "pool": pool, "allNodes": True, "devices": [{"name": f"d{n}"} for n in range(10)]}
    world.server.put("resourceslices", {"metadata": {"name": "s"}, "spec": spec})


def claimed(world: LiveWorld, name: str, count: int) -> None:
    """A job of one pod that claims so many devices."""
    world.server.put("podgroups", group(name, 1, queue="limited"))
    world.server.put("resourceclaims", claim(f"{name}-claim", count))
    uses = [{"name": "c", "resourceClaimName": f"{name}-claim"}]
    world.server.put("pods", pod(name, name, resourceClaims=uses))


async def begun(world: LiveWorld, path: Path, **options: Any) -> LiveScheduler:
    """A queue of two devices, and a scheduler that has read everything."""
    path.write_text(CONF)
    offer(world)
    world.server.put("queues", queue("limited", parent="root", capability={f"deviceclass/{CLASS}": "2"}))
    scheduler = world.scheduler(str(path), **options)
    world.start(scheduler)
    await scheduler.ready.wait()
    return scheduler


@pytest.mark.parametrize("on", ["memory", "embedded"])
def test_a_queues_devices_are_counted_as_claims_come_change_and_go(on: str, tmp_path: Path) -> None:
    async def main() -> None:
        world = LiveWorld(on=on)
        scheduler = await begun(world, tmp_path / "conf")
        claimed(world, "one", 2)
        claimed(world, "two", 1)
        await asyncio.sleep(5)
        assert world.waiting() == ["two"]
        world.server.put("resourceclaims", claim("one-claim", 1))
        await asyncio.sleep(5)
        assert world.waiting() == []
        claimed(world, "three", 1)
        await asyncio.sleep(5)
        assert world.waiting() == ["three"]
        world.server.drop("pods", "two", "ns")
        world.server.drop("resourceclaims", "two-claim", "ns")
        await asyncio.sleep(5)
        assert world.waiting() == []
        assert not await scheduler.audit.run()
        await world.end()

    run(main())


@pytest.mark.parametrize(
    ("served", "otherwise", "why"),
    [
        (["v1"], 404, "pod group is not ready"),
        (["v1beta2"], 404, "pod group is not ready"),
        ([], 404, "one-claim"),
        ([], 403, "one-claim"),
    ],
)
def test_the_newest_version_that_the_server_has(served: list[str], otherwise: int, why: str, tmp_path: Path) -> None:
    """Where there are none, or the scheduler may not see them, a pod that claims devices waits for its claim."""

    async def main() -> None:
        world = LiveWorld()

        def fault(request: Request, _when: str) -> Response | None:
            _, _, rest = request.path.partition("/apis/resource.k8s.io/")
            return status(otherwise, "NotFound") if rest and rest.partition("/")[0] not in served else None

        world.server.faults.append(fault)
        scheduler = await begun(world, tmp_path / "conf", audit_period=20.0)
        claimed(world, "one", 3)
        await asyncio.sleep(45)
        assert world.waiting() == ["one"]
        (condition,) = world.server.get("pods", "one", "ns")["status"]["conditions"]
        assert why in condition["message"]
        assert (scheduler.audit.runs, scheduler.audit.found) == (2, 0)
        assert world.told.counts["audit_failed"] == world.told.counts["handler_not_synced"] == 0
        assert world.told.counts["following_trouble"] == 3 * (otherwise == 403)
        assert world.told.counts["not_served"] == 3 * (not served and otherwise == 404)
        await world.end()

    run(main())
