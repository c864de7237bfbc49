"""Locks of nodes: written before a pod with cards is bound, kept for its device plugin, given back where it is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stromboli.framework.books.plan import Bind
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.locks import NodeLocks
from stromboli.model.values.times import seconds, stamp
from stromboli.plugins.deviceshare.locks import LOCKED_FOR
from tests.support.claiming import CONF, LOCK, shared
from tests.support.live_world import Directed, LiveWorld, group, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run


async def one_pod(tmp_path: Path, **notes: str) -> tuple[Directed, LiveScheduler, Bind]:
    """A pod that waits, and its binding to a node with those annotations."""
    world = Directed()
    locked(world, **notes)
    world.server.put("podgroups", group("job", 1))
    world.server.put("pods", pod("job-0", "job"))
    scheduler = await world.directed(tmp_path)
    return world, scheduler, Bind(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", locks=(LOCK,))


def locked(world: LiveWorld, **notes: str) -> None:
    found = world.server.get("nodes", "n1")
    world.server.put("nodes", {**found, "metadata": {**found["metadata"], "annotations": notes}})


def lock(world: LiveWorld, node: str = "n1") -> str | None:
    found: str | None = (world.server.get("nodes", node)["metadata"].get("annotations") or {}).get(LOCK)
    return found


def failing(method: str, part: str, answer: Response, times: int = 1, at: str = "before") -> Any:
    """Answers the first requests of a method to a path with ``answer``."""
    left = [times]

    def fault(request: Request, when: str) -> Response | None:
        if when != at or request.method != method or part not in request.path or not left[0]:
            return None
        left[0] -= 1
        return answer

    return fault


def test_the_lock_is_there_before_the_pod_is_bound_and_stays_for_the_device_plugin(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        began = world.clock()
        scheduler.executor.bind([bind])
        await world.settled(scheduler)
        assert world.pods() == {"job-0": "n1"}
        assert began - 1 <= seconds(lock(world), "") <= world.clock()
        writes = [(one.method, one.path.rpartition("/")[2]) for one in world.server.requests if one.method != "GET"]
        assert writes[:2] == [("PATCH", "n1"), ("POST", "binding")]
        assert scheduler.executor.binder._locks._held == {}, "the lock is the device plugin's from now on"
        await world.end()

    run(story())


@pytest.mark.parametrize(("age", "bound"), [(10.0, False), (LOCKED_FOR - 5, False), (LOCKED_FOR + 5, True)])
def test_another_pods_lock_keeps_pods_out_for_five_minutes(age: float, bound: bool, tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        theirs = stamp(world.clock() - age)
        locked(world, **{LOCK: theirs})
        scheduler.executor.bind([bind])
        await asyncio.sleep(3)
        assert world.pods() == {"job-0": "n1" if bound else ""}
        assert (lock(world) == theirs) is not bound
        told = [row for row in world.told.of("bind_failed") if "locked within 5 minutes" in str(row["error"])]
        assert bool(told) is not bound
        await world.end()

    run(story())


@pytest.mark.parametrize("code", [403, 422])
def test_a_lock_is_given_back_where_the_pod_is_not_bound(code: int, tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path, other="stays")
        world.server.faults.append(failing("POST", "/binding", status(code, "Refused")))
        scheduler.executor.bind([bind])
        await asyncio.sleep(3)
        assert world.pods() == {"job-0": ""}
        assert world.server.get("nodes", "n1")["metadata"]["annotations"] == {"other": "stays"}
        await world.end()

    run(story())


def test_a_lock_that_was_renewed_stays(tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)

        def renewed(request: Request, when: str) -> Response | None:
            if when != "before" or not request.path.endswith("/binding"):
                return None
            locked(world, **{LOCK: "2030-01-01T00:00:00Z"})
            return status(403, "Refused")

        world.server.faults.append(renewed)
        scheduler.executor.bind([bind])
        await asyncio.sleep(3)
        assert lock(world) == "2030-01-01T00:00:00Z"
        await world.end()

    run(story())


@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("code", [409, 500, 503])
def test_a_lock_in_trouble_is_tried_again_and_the_pod_is_bound_once(code: int, at: str, tmp_path: Path) -> None:
    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        world.server.faults.append(failing("PATCH", "/nodes/n1", status(code, "Trouble"), at=at))
        scheduler.executor.bind([bind])
        await world.settled(scheduler)
        assert [name for name, _ in world.server.bindings] == ["ns/job-0"]
        assert lock(world)
        await world.end()

    run(story())


def test_a_lock_is_of_the_node_that_it_was_written_for(tmp_path: Path) -> None:
    """A pod that goes elsewhere in the end gets the lock there, and leaves none behind."""

    async def story() -> None:
        world, scheduler, bind = await one_pod(tmp_path)
        locks = NodeLocks(scheduler.executor._context)
        await locks.take(bind)
        written = lock(world)
        elsewhere = replace(bind, node="n2")
        await locks.take(elsewhere)
        assert (lock(world), lock(world, "n2")) == (None, written)
        await locks.take(elsewhere)
        await locks.give_back(elsewhere)
        assert lock(world, "n2") is None
        await world.end()

    run(story())


def test_pods_with_cards_start_on_a_node_one_after_the_other(tmp_path: Path) -> None:
    """The second pod of a node waits until the device plugin has served the first."""

    async def story() -> None:
        world = LiveWorld(nodes=0)
        world.server.put("nodes", shared("n0"))
        (tmp_path / "conf").write_text(CONF)
        for name in ("a", "b"):
            world.server.put("podgroups", group(name, 1))
            body = pod(name, name)
            limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "300"}
            body["spec"]["containers"][0]["resources"]["requests"].update(limits)
            body["spec"]["containers"][0]["resources"]["limits"] = limits
            world.server.put("pods", body)
        world.start(world.scheduler(str(tmp_path / "conf")))
        await asyncio.sleep(10)
        assert sorted(world.pods().values()) == ["", "n0"]
        found = world.server.get("nodes", "n0")
        kept = {key: note for key, note in found["metadata"]["annotations"].items() if key != LOCK}
        world.server.put("nodes", {**found, "metadata": {**found["metadata"], "annotations": kept}})
        await asyncio.sleep(10)
        assert sorted(world.pods().values()) == ["n0", "n0"]
        assert lock(world, "n0")
        await world.end()

    run(story())
