"""A reservation outlives a scheduler killed between keep, patch, redeem and bind, and needs no second eviction.

Two pods of high priority take the room of four of low priority that end slowly.  Writes are counted at the server.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.errors import Unreachable
from stromboli.kube.transport import Request, Response
from stromboli.model.names import PIPELINED_NODE
from stromboli.model.reservation import KEYS
from tests.support.contested import (
    GRACE,
    HIGH,
    TROUBLES,
    VICTIMS,
    Contested,
    Halved,
    Mortal,
    cycles,
    finished,
    quiet_for_minutes,
    whole,
)
from tests.support.memory_server import status
from tests.support.virtual import run

PARTS = 2
"""The writes of a story are shared out to so many tests."""

# ---------------------------------------------------------------------- undisturbed


def test_S4_01_S4_28_one_patch_for_each_change_and_none_in_between(tmp_path: Path) -> None:
    async def story() -> None:
        world = Contested(tmp_path / "conf")
        scheduler = world.mortal(schedule_period=0.25)
        world.start(scheduler)
        await asyncio.sleep(2)
        assert world.patches() == 0
        world.contend()
        await asyncio.sleep(0.75)
        assert (world.patches(), world.victims) == (0, set()), "they are waited for"
        await asyncio.sleep(1.75)
        nodes = world.held()
        assert set(nodes) == set(HIGH)
        said = {name: {**dict.fromkeys(KEYS, "true"), PIPELINED_NODE: node} for name, node in nodes.items()}
        assert world.stated() == said
        assert (world.patches(), len(world.victims)) == (2, VICTIMS)
        before, since = len(world.server.requests), scheduler.cycles
        await asyncio.sleep(GRACE - 3)  # the victims are still there
        assert scheduler.cycles >= since + 10
        assert [r.method for r in world.server.requests[before:] if "/events" not in r.path] == []
        await asyncio.sleep(5)
        assert {name: world.pods()[name] for name in HIGH} == nodes
        assert (world.stated(), world.patches(), len(world.victims)) == ({}, 4, VICTIMS)
        world.check(scheduler)
        await world.end()

    run(story())


@pytest.mark.parametrize("way", [{"gates": {"PipelinedStatePersistence": False}}, {"compat": True}], ids=str)
def test_S4_35_a_scheduler_that_does_not_know_the_annotations_places_such_pods_as_any(
    tmp_path: Path, way: dict[str, Any]
) -> None:

    async def story() -> None:
        world = Contested(tmp_path / "conf")
        world.contend()
        for name in HIGH:
            found = world.server.get("pods", name, "ns")
            notes = {**found["metadata"]["annotations"], **dict.fromkeys(KEYS, "true"), PIPELINED_NODE: "gone"}
            world.server.put("pods", {**found, "metadata": {**found["metadata"], "annotations": notes}})
        world.start(world.mortal(**way))
        await asyncio.sleep(GRACE + 5)
        assert "" not in world.high()
        assert (world.patches(), set(world.held().values())) == (0, {"gone"})
        await world.end()

    run(story())


# ---------------------------------------------------------------------- killed


async def killed(world: Contested, number: int) -> bool:
    """A scheduler that is killed at its nth write since others contend; False when it had not so many."""
    wire = Mortal(world.server, number)
    wire.process = world.start(world.mortal(wire))
    await asyncio.sleep(1.5)
    wire.number += wire.writes
    world.contend()
    for _ in range(int(10 * GRACE) + 30):
        await asyncio.sleep(0.1)
        if wire.dead:
            return True
    wire.kill()
    return False


@pytest.mark.spread(PARTS)
@pytest.mark.parametrize(
    ("kind", "down", "step"),
    [(Contested, 0.3, 1), (Contested, GRACE + 1, 2), (Halved, 0.3, 2)],
    ids=["back at once", "back when the room is free", "half of the room is free"],
)
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_write_between_keep_patch_redeem_and_bind(
    tmp_path: Path, part: int, kind: type[Contested], down: float, step: int
) -> None:
    """What stands at the server just before a write is what stands after the one before it."""

    async def story(number: int) -> bool:
        world = kind(tmp_path / "conf")
        struck = await killed(world, number)
        await asyncio.sleep(down)
        second = world.mortal()
        world.start(second)
        await finished(world, second)
        await world.end()
        return struck

    number = 1 + part * step
    while run(story(number)):
        number += step * PARTS
    assert number > 3 * VICTIMS


def test_nothing_is_left_over_after_five_minutes(tmp_path: Path) -> None:
    """Killed when the binds were done and the annotations were not taken off: they go in the first cycle."""

    async def story() -> None:
        world = Contested(tmp_path / "conf")
        wire = Mortal(world.server, -1)
        wire.process = world.start(world.mortal(wire))
        await asyncio.sleep(1.5)
        world.contend()

        def strike(request: Request, when: str) -> Response | None:
            if world.server.bindings and request.method == "PATCH" and not request.path.endswith("/status"):
                wire.kill()
                raise Unreachable("killed")
            return None

        world.server.faults.append(strike)
        await asyncio.sleep(GRACE + 5)
        assert wire.dead
        assert set(world.held()) == set(HIGH)
        assert "" not in world.high()
        world.server.faults.clear()
        second = world.mortal(schedule_period=10.0)
        world.start(second)
        await second.ready.wait()
        await cycles(second, 1)
        assert world.stated() == {}
        await quiet_for_minutes(world, second)
        world.check(second)
        await world.end()

    run(story())


# ---------------------------------------------------------------------- refused, in doubt, and led by another


@pytest.mark.parametrize("kind", TROUBLES)
def test_every_write_of_a_reservation_and_of_its_end_fails_once(tmp_path: Path, kind: str) -> None:
    trouble, at = TROUBLES[kind]

    async def story(number: int) -> bool:
        world = Contested(tmp_path / "conf")
        seen = 0

        def strike(request: Request, when: str) -> Response | None:
            nonlocal seen
            patch = request.method == "PATCH" and "/pods/" in request.path and not request.path.endswith("/status")
            if when != at or not (patch or request.path.endswith("/binding")):
                return None
            seen += 1
            return trouble() if seen == number else None

        world.server.faults.append(strike)
        scheduler = world.mortal()
        world.start(scheduler)
        await asyncio.sleep(1.5)
        world.contend()
        await asyncio.sleep(4)
        whole(world, scheduler)
        assert set(world.held()) == set(HIGH)
        await asyncio.sleep(GRACE + 3)
        assert "" not in world.high()
        assert (world.stated(), len(world.victims)) == ({}, VICTIMS)
        world.check(scheduler)
        await world.end()
        return seen >= number

    number = 1
    while run(story(number)):
        number += 1
    assert number > 6  # two are set, two are bound, two are cleared


def test_another_leader_redeems_and_the_first_one_believes_what_it_finds(tmp_path: Path) -> None:
    async def story() -> None:
        world = Contested(tmp_path / "conf")
        leader = ["first"]
        first = world.mortal(may_write=lambda: leader[0] == "first")
        second = world.mortal(may_write=lambda: leader[0] == "second")
        stuck = status(500, "InternalError")

        def strike(request: Request, _when: str) -> Response | None:
            patch = request.method == "PATCH" and "/pods/" in request.path and not request.path.endswith("/status")
            return stuck if patch and leader[0] == "first" else None

        world.server.faults.append(strike)
        for scheduler in (first, second):
            world.start(scheduler)
        await asyncio.sleep(1.5)
        world.contend()
        await asyncio.sleep(2)
        assert (world.held(), set(first.mirror.unwritten)) == ({}, {f"ns/{name}" for name in HIGH})
        leader[0] = "second"
        await asyncio.sleep(GRACE + 3)
        assert "" not in world.high()
        world.server.faults.clear()
        leader[0] = "first"
        await asyncio.sleep(5)
        assert (first.mirror.unwritten, world.stated(), len(world.victims)) == ({}, {}, VICTIMS)
        world.check(first)
        await world.end()

    run(story())
