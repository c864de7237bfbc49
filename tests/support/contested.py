"""A cluster full of pods that end slowly, whose room other pods take, and schedulers of it that can be killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stromboli.errors import Unreachable
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.names import PIPELINED_NODE
from stromboli.model.reservation import written
from tests.support.live_world import PREEMPTING, LiveWorld, gang, group, pod
from tests.support.memory_server import CREATED, MemoryServer, status

GRACE = 6.0
"""Seconds that a victim takes to end."""
SLOW = 32
"""Seconds that it says it may take: enough to be waited for a second before it is evicted."""
VICTIMS = 4
HIGH = ("high-0", "high-1")


class Contested(LiveWorld):
    """Two nodes full of pods of low priority, which take :data:`GRACE` seconds to end."""

    def __init__(self, conf: Path) -> None:
        super().__init__(nodes=2)
        conf.write_text(PREEMPTING)
        self.conf = str(conf)
        self.names: tuple[str, ...] = HIGH
        self.victims: set[str] = set()
        self.look_every = 0.25
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
            await asyncio.sleep(self.look_every)
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
        said = {name: written(notes) for name, notes in found.items()}
        return {name: notes for name, notes in said.items() if notes}

    def held(self) -> dict[str, str]:
        """By pod, the node on which it says that it holds room."""
        return {name: notes[PIPELINED_NODE] for name, notes in self.stated().items()}

    def high(self) -> set[str]:
        """Nodes of the pods of high priority, empty for those that wait."""
        return {self.pods()[name] for name in self.names}

    def standing(self) -> frozenset[tuple[str, str, bool, frozenset[tuple[str, str]]]]:
        """What the server says of each pod that matters: its node, whether it is going, and what it states."""
        return frozenset(
            (one["metadata"]["name"], one["spec"].get("nodeName", ""), "deletionTimestamp" in one["metadata"],
             frozenset(written(one["metadata"]["annotations"]).items()))
            for one in self.server.all("pods")
        )  # fmt: skip

    def torn(self) -> bool:
        """Whether some of the victims have been evicted, and some have not."""
        staying = [one for one in self.server.all("pods") if "deletionTimestamp" not in one["metadata"]]
        return 8 - VICTIMS < len([one for one in staying if one["metadata"]["name"].startswith("low")]) < 8

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
    """A connection of a scheduler that is killed before it hears of its nth write: nothing more is sent then.

    What is under way at that moment is lost, or, with ``arrives``, carried out although no answer arrives.
    """

    def __init__(self, server: MemoryServer, number: int = 0, *, arrives: bool = False) -> None:
        self.server, self.number, self.arrives = server, number, arrives
        self.process: asyncio.Task[None] | None = None
        self.writes = 0
        self.dead = False
        self.under_way: dict[asyncio.Future[Response], tuple[object, ...]] = {}

    def kill(self) -> None:
        """As kill -9 does."""
        self.dead = True
        assert self.process is not None
        self.process.cancel()

    def left(self) -> object:
        """All that is left where it is killed now: objects at the server, writes that it carries out yet, the time.

        Two that are killed where this is equal leave the same to the next one.
        """
        kept = {
            (collection, *key): json.dumps(found, default=str)
            for collection, objects in self.server.objects.items() if collection != "events"
            for key, found in objects.items()
        }  # fmt: skip
        now = asyncio.get_running_loop().time()
        return now, frozenset(kept.items()), tuple(sorted(map(str, self.under_way.values())))

    async def send(self, request: Request, login: Any) -> Response:
        if self.dead:
            raise Unreachable("killed")
        self.writes += counts(request)
        fatal = counts(request) and self.writes == self.number
        sent = asyncio.ensure_future(self.server.send(request, login))
        if counts(request):
            now = asyncio.get_running_loop().time()
            self.under_way[sent] = (request.method, request.path, request.body, now)
            sent.add_done_callback(self.under_way.pop)
        found = await (asyncio.shield(sent) if self.arrives else sent)
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


def whole(world: Contested, scheduler: LiveScheduler, *, may_wait: bool = False) -> None:
    """Either all pods hold room that their annotations name, or all have it; no node promises what it has not.

    Where they ``may_wait`` all may also hold nothing, and say so.
    """
    tasks = {name: scheduler.state.tasks[f"ns/{name}"] for name in world.names}
    assert len({task.status.name for task in tasks.values()}) == 1, tasks
    holding = {name: task.node_name for name, task in tasks.items() if task.status.name == "Pipelined"}
    assert world.held() == holding, "what pods say is what counts"
    assert holding or may_wait or "" not in world.high(), "neither reserved nor bound"
    assert scheduler.mirror.unwritten == {}
    table = scheduler.state.nodes.snapshot()
    assert (table.used - table.releasing + table.pipelined <= table.alloc).all(), "promised more than there is"


async def cycles(scheduler: LiveScheduler, number: int) -> None:
    """Wait until so many more cycles are over and what they decided is written."""
    upto = scheduler.cycles + number
    while scheduler.cycles < upto or scheduler.executor.in_flight:
        await asyncio.sleep(0.05)


async def finished(world: Contested, scheduler: LiveScheduler, victims: int = VICTIMS) -> None:
    """The rest of a story after a restart: whole within two cycles, bound when the room is free, nothing left over.

    Where only some of the victims were told to go, the others are not before those have left.
    """
    await scheduler.ready.wait()
    torn = world.torn()
    await cycles(scheduler, 2)
    whole(world, scheduler, may_wait=torn)
    await asyncio.sleep((GRACE + 2) * (1 + torn))
    assert world.high() <= {"n0", "n1"}
    assert world.stated() == {}
    world.check(scheduler)
    assert len(world.victims) <= victims, world.victims


async def quiet_for_minutes(world: Contested, scheduler: LiveScheduler) -> None:
    """Five minutes later no running pod has an annotation of a reservation, and nothing was written meanwhile."""
    before, world.look_every, world.server.bookmarks = world.patches(), 20.0, False
    scheduler.options = replace(scheduler.options, schedule_period=20.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stromboli.live.scheduler.scheduler.LOOK_EVERY", 20.0)
        await asyncio.sleep(300)
    assert (world.stated(), world.patches()) == ({}, before)


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
