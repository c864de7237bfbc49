"""A reservation outlives its scheduler, killed between keep, patch, redeem and bind, and nobody goes twice for it.

Two pods of high priority take the room of four of low priority that end slowly.  Writes are counted at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stromboli.errors import Unreachable
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler import LiveScheduler
from stromboli.model.names import PIPELINED_NODE
from stromboli.model.reservation import KEYS
from tests.support.live_world import PREEMPTING, LiveWorld, gang, group, pod
from tests.support.memory_server import CREATED, MemoryServer, status
from tests.support.virtual import run

GRACE = 6.0
"""Seconds that a victim takes to end."""
SLOW = 32
"""Seconds that it says it may take: enough to be waited for a second before it is told to go."""
VICTIMS = 4
HIGH = ("high-0", "high-1")
STRIDE = 43
"""How many turns of the event loop lie between the moments at which a scheduler is killed."""


class Contested(LiveWorld):
    """Two nodes full of pods of low priority, which take :data:`GRACE` seconds to end."""

    def __init__(self, conf: Path) -> None:
        super().__init__(nodes=2)
        conf.write_text(PREEMPTING)
        self.conf = str(conf)
        self.names: tuple[str, ...] = HIGH
        self.victims: set[str] = set()
        self.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        gang(self.server, "low", 8, least=1)
        for number in range(8):
            found = self.server.get("pods", f"low-{number}", "ns")
            found["spec"]["nodeName"], found["status"]["phase"] = f"n{number % 2}", "Running"
            found["spec"]["terminationGracePeriodSeconds"] = SLOW
        self.tasks.append(asyncio.create_task(self._end_victims()))

    async def _end_victims(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.25)
            for found in self.server.all("pods"):
                name = found["metadata"]["name"]
                if "deletionTimestamp" in found["metadata"] and name not in self.victims:
                    self.victims.add(name)
                    loop.call_later(GRACE, self.server.drop, "pods", name, "ns")

    def contend(self) -> None:
        """Pods of high priority arrive, of two cpus each, and need each other."""
        self.server.put("podgroups", group("high", len(self.names), priorityClassName="high"))
        for name in self.names:
            self.server.put("pods", pod(name, "high", cpu=2, priority=1000, priorityClassName="high"))

    def mortal(self, wire: Mortal | None = None, **more: Any) -> LiveScheduler:
        """A scheduler that reaches the server through ``wire``."""
        return self.scheduler(self.conf, wire, **more)

    def stated(self) -> dict[str, dict[str, str]]:
        """By pod, what it says of a reservation; pods that say nothing are left out."""
        found = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in self.server.all("pods")}
        said = {name: {key: notes[key] for key in KEYS if key in notes} for name, notes in found.items()}
        return {name: notes for name, notes in said.items() if notes}

    def held(self) -> dict[str, str]:
        """By pod, the node on which it says that it holds room."""
        return {name: notes[PIPELINED_NODE] for name, notes in self.stated().items()}

    def high(self) -> set[str]:
        """Nodes of the pods of high priority, empty for those that wait."""
        return {self.pods()[name] for name in self.names}

    def patches(self) -> int:
        """How many patches of pods the server has seen, those of their statuses left out."""
        found = (r for r in self.server.requests if r.method == "PATCH" and "/pods/" in r.path)
        return sum(not request.path.endswith("/status") for request in found)


def counts(request: Request) -> bool:
    """Whether a request writes what matters."""
    return request.method != "GET" and "/events" not in request.path


class Halved(Contested):
    """One of the nodes is free, and the pods on the other one are ending: a gang of four needs the room of both."""

    def __init__(self, conf: Path) -> None:
        super().__init__(conf)
        self.names = tuple(f"high-{number}" for number in range(4))
        for number in range(8):
            if number % 2:
                self.server.drop("pods", f"low-{number}", "ns")
            else:
                self.server.get("pods", f"low-{number}", "ns")["metadata"]["deletionTimestamp"] = CREATED


class Mortal:
    """A connection of a scheduler that is killed before it hears of its nth write: nothing more is sent then."""

    def __init__(self, server: MemoryServer, number: int) -> None:
        self.server, self.number = server, number
        self.process: asyncio.Task[None] | None = None
        self.writes = 0
        self.dead = False

    def kill(self) -> None:
        """As kill -9 does."""
        self.dead = True
        assert self.process is not None
        self.process.cancel()

    async def send(self, request: Request, login: Any) -> Response:
        if self.dead:
            raise Unreachable("killed")
        self.writes += counts(request)
        fatal = counts(request) and self.writes == self.number
        found = await self.server.send(request, login)
        if fatal:
            self.kill()
        if self.dead:
            raise Unreachable("killed")
        return found

    @asynccontextmanager
    async def stream(self, request: Request, login: Any):
        async with self.server.stream(request, login) as stream:
            yield stream

    async def close(self) -> None:
        """The server goes on."""


def whole(world: Contested, scheduler: LiveScheduler) -> None:
    """Either all pods hold room that their annotations name, or all have it; no node promises what it has not."""
    tasks = {name: scheduler.state.tasks[f"ns/{name}"] for name in world.names}
    assert len({task.status.name for task in tasks.values()}) == 1, tasks
    holding = {name: task.node_name for name, task in tasks.items() if task.status.name == "Pipelined"}
    assert world.held() == holding, "what pods say is what counts"
    assert holding or "" not in world.high(), "neither reserved nor bound"
    assert scheduler.mirror.unwritten == {}
    table = scheduler.state.nodes.snapshot()
    assert (table.used - table.releasing + table.pipelined <= table.alloc).all(), "promised more than there is"


async def cycles(scheduler: LiveScheduler, number: int) -> None:
    """Wait until so many more cycles are over and what they decided is written."""
    upto = scheduler.cycles + number
    while scheduler.cycles < upto or scheduler.executor.in_flight:
        await asyncio.sleep(0.05)


async def finished(world: Contested, scheduler: LiveScheduler, victims: int = VICTIMS) -> None:
    """The rest of a story after a restart: whole within two cycles, bound when the room is free, nothing left over."""
    await scheduler.ready.wait()
    await cycles(scheduler, 2)
    whole(world, scheduler)
    await asyncio.sleep(GRACE + 2)
    assert world.high() <= {"n0", "n1"}
    assert world.stated() == {}
    world.check(scheduler)
    assert len(world.victims) <= victims, world.victims


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
def test_S4_35_who_does_not_know_the_annotations_places_such_pods_as_any(tmp_path: Path, way: dict[str, Any]) -> None:

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


@pytest.mark.parametrize(
    ("kind", "down", "step"),
    [(Contested, 0.3, 1), (Contested, GRACE + 1, 2), (Halved, 0.3, 2)],
    ids=["back at once", "back when the room is free", "half of the room is free"],
)
def test_killed_at_every_write_between_keep_patch_redeem_and_bind(
    tmp_path: Path, kind: type[Contested], down: float, step: int
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

    number = 1
    while run(story(number)):
        number += step
    assert number > 3 * VICTIMS


async def killed_at_turn(world: Contested, turn: int) -> bool:
    """A scheduler that is killed at the nth turn of the loop since others contend; False when all was over by then."""
    wire = Mortal(world.server, -1)
    wire.process = world.start(world.mortal(wire))
    await asyncio.sleep(1.5)
    world.contend()
    loop: Any = asyncio.get_running_loop()
    once, turns = loop._run_once, 0

    def counted() -> None:
        nonlocal turns
        turns += 1
        if turns == turn:
            wire.kill()
        once()

    loop._run_once = counted
    until = loop.time() + GRACE + 5
    while not wire.dead and loop.time() < until:
        await asyncio.sleep(0.1)
    loop._run_once = once
    struck = wire.dead
    wire.kill()
    return struck


def test_killed_at_any_await(tmp_path: Path) -> None:
    """Every so many turns of the event loop: between two of them somebody has awaited something."""

    async def story(turn: int) -> bool:
        world = Contested(tmp_path / "conf")
        struck = await killed_at_turn(world, turn)
        second = world.mortal()
        world.start(second)
        await finished(world, second)
        await world.end()
        return struck

    turn = 1
    while run(story(turn)):
        turn += STRIDE
    assert turn > 10 * STRIDE


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
        world.server.requests.clear()
        await asyncio.sleep(300)
        assert (world.stated(), world.patches()) == ({}, 0)
        world.check(second)
        await world.end()

    run(story())


# ---------------------------------------------------------------------- refused, in doubt, and led by another

TROUBLES: dict[str, tuple[Callable[[], Response | None], str]] = {
    "conflict": (lambda: status(409, "Conflict"), "before"),
    "another uid": (lambda: status(422, "Invalid", "metadata.uid: field is immutable"), "before"),
    "busy": (lambda: status(429, "TooManyRequests", retry_after="2"), "before"),
    "broken": (lambda: status(500, "InternalError"), "before"),
    "broken after it was done": (lambda: status(500, "InternalError"), "after"),
    "no answer": (lambda: _raise(Unreachable("no answer")), "before"),
    "no answer after it was done": (lambda: _raise(Unreachable("no answer")), "after"),
}


def _raise(error: Exception) -> Response:
    raise error


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
