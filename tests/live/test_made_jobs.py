"""CronJobs and JobFlows on a server: controllers are killed at each of their writes, and the next ones go on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import pytest

from stromboli.controllers.changes import Target
from stromboli.controllers.work import About
from stromboli.kube import turns
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers import prober
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options
from stromboli.live.controllers.prober import Prober
from stromboli.model.values.times import stamp
from tests.support.awaits import Chain, awaits, chains
from tests.support.contested import TROUBLES, Mortal, counts
from tests.support.controller_world import ControllerWorld, job
from tests.support.memory_server import status
from tests.support.virtual import VirtualLoop, run

LOOKS = frozenset({About.cron_job, About.job_flow, About.job_template})
EVERY = 60
HERE = "127.0.0.1"
BeforeTurn = Callable[[int, Mortal, ControllerWorld], None]


def controllers(world: ControllerWorld, wire: Any, ask: Any = None) -> Controllers:
    client = Client(wire, dice=random.Random(5), agent="stromboli-controllers")
    return Controllers(client, Options(looks=LOOKS), observer=world.told, clock=world.clock, ask=ask)


def fill(world: ControllerWorld) -> None:
    """A CronJob that replaces its job each minute, and a flow of two jobs that are deleted when both have completed."""
    spec, created = job("x", 1)["spec"], stamp(world.clock())
    meta = {"name": "c", "namespace": "ns", "creationTimestamp": created}
    cron = {"schedule": f"@every {EVERY}s", "concurrencyPolicy": "Replace", "jobTemplate": {"spec": spec}}
    world.server.put("cronjobs", {"metadata": meta, "spec": cron})
    for name in ("a", "b"):
        world.server.put("jobtemplates", {"metadata": {"name": name, "namespace": "ns"}, "spec": spec})
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    flow = {"flows": flows, "jobRetainPolicy": "delete"}
    world.server.put("jobflows", {"metadata": {"name": "f", "namespace": "ns"}, "spec": flow})


def complete(world: ControllerWorld, *names: str) -> None:
    for one in world.server.all("jobs"):
        if one["metadata"]["name"] in names:
            done = {"state": {"phase": "Completed", "lastTransitionTime": stamp(world.clock())}}
            world.server.put("jobs", {**one, "status": done})


def play(number: int = 0, arrives: bool = True, trouble: str = "", before_turn: BeforeTurn | None = None) -> int:
    """The story, the controllers killed at their ``number``-th write; how many writes they came to.

    ``before_turn`` is called with each turn's number, the connection and the world; ``trouble`` meets the first write
    of each sort.
    """

    async def main() -> int:
        world = ControllerWorld()
        fill(world)
        wire = Mortal(world.server, number, arrives=arrives)
        turn, loop = count(1), asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        if trouble:
            world.server.faults.append(once(*TROUBLES[trouble]))
        if before_turn:
            loop.before_turns.append(lambda: before_turn(next(turn), wire, world))
        wire.process = asyncio.create_task(controllers(world, wire).run())
        world.tasks.append(wire.process)
        for _ in range(30):
            await asyncio.sleep(5)
            complete(world, "f-a", "f-b")
            if wire.dead and len(world.tasks) == 1:
                world.tasks.append(asyncio.create_task(controllers(world, world.server).run()))
        loop.before_turns.clear()
        made = [one["metadata"]["name"] for one in world.server.all("jobs")]
        assert len(made) == 1, "two slots, the second of which replaced the first; the flow's jobs are gone"
        cron = world.server.get("cronjobs", "c", "ns")["status"]
        assert [one["name"] for one in cron["active"]] == made
        flow = world.server.get("jobflows", "f", "ns")["status"]
        assert (flow["state"]["phase"], flow["completedJobs"]) == ("Succeed", ["f-a", "f-b"])
        posted = [request.path for request in world.server.requests
                  if request.method == "POST" and request.path.endswith("/jobs")]  # fmt: skip
        lost = 1 if number or before_turn else 0
        assert trouble or len(posted) <= 4 + lost, "what was made is made again only where a request was lost"
        await world.end()
        return wire.writes

    return run(main())


def once(refuse: Callable[[], Response | None], at: str) -> Callable[[Request, str], Response | None]:
    """Has the first write of each sort in trouble."""
    struck: set[tuple[str, str]] = set()

    def strike(request: Request, when: str) -> Response | None:
        what = request.method, request.path
        if when != at or what in struck or not counts(request) or "/namespaces/ns/" not in request.path:
            return None
        struck.add(what)
        return refuse()

    return strike


def test_the_story_of_controllers_that_live() -> None:
    assert play(0, arrives=True) >= 10


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("number", range(1, 15))
def test_the_next_controllers_go_on(number: int, arrives: bool) -> None:
    play(number, arrives)


class Moment(NamedTuple):
    """Before which turn of the loop, in which story, tasks stand where."""

    trouble: str
    turn: int
    chains: frozenset[Chain]


@cache
def moments() -> tuple[Moment, ...]:
    """Those at which a task stands where none has stood after as many writes; in trouble, where none has stood."""
    found: list[Moment] = []
    known: set[tuple[Chain, int]] = set()

    def look(turn: int, wire: Mortal, world: ControllerWorld) -> None:
        here = chains()
        if new := {(chain, 0 if trouble else wire.writes) for chain in here} - known:
            known.update(new)
            found.append(Moment(trouble, turn, here))

    for trouble in ("", "conflict", "broken"):
        known |= {(chain, 0) for chain, _ in known}
        play(trouble=trouble, before_turn=look)
    return tuple(found)


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines that give way now and then do so each time."""
    monkeypatch.setattr(turns, "SLICE", -1.0)


@pytest.mark.usefixtures("small_slices")
def test_killed_at_every_await() -> None:
    for moment in moments():

        def strike(turn: int, wire: Mortal, world: ControllerWorld, moment: Moment = moment) -> None:
            if turn == moment.turn:
                assert chains() == moment.chains, "the story has gone another way"
                wire.kill()

        play(trouble=moment.trouble, before_turn=strike)


ELSEWHERE = {
    "_delete: self._delete_command(change)",
    "_delete_command: self._client.delete(commands, change.name, change.namespace, uid=change.uid, patient=False)",
    "_failed: self._carry_out(work, last)",
    "_kill: self._client.delete(pods, change.name, change.namespace, uid=change.uid)",
    "_kill: self._client.patch(pods.read_as(nothing), change.name, change.namespace, mark, again=True)",
    "_look: self._carry_out(work, self.manager.carry_out(work.key))",
    "_look: self._failed(work, in_words(error))",
    "_look: self._failed(work, outcome.error)",
    "_look: self._say_hindered(work)",
    "_query: asyncio.gather(*map(self._ask, change.targets))",
    "_read: read_owner(self._client, change)",
    "_say_hindered: self._carry_out(work, self.manager.jobs.hindered(work.key, *refused, self._clock()))",
    "_wind_down: asyncio.timeout(self.options.stop_timeout)",
    "_wind_down: asyncio.wait(self._looking)",
    "_wind_down: self.recorder.drain()",
    "carry_out: self._turn(change)",
    "carry_out: self._query(change)",
    "run: asyncio.TaskGroup() as group",
    "run: self._wind_down()",
}
"""Awaits at another time than while CronJobs and JobFlows are looked after."""


@pytest.mark.usefixtures("small_slices")
def test_no_await_is_left_out() -> None:
    stood = {place for moment in moments() for chain in moment.chains for place in chain}
    modules = ("live/controllers/controller_runner.py", "live/controllers/writer.py")
    missed = {place for module in modules for place in awaits(module).values()} - stood
    assert {f"{place.function}: {place.text}" for place in missed} == ELSEWHERE


def test_a_refused_job_is_told_and_the_next_slot_has_its_chance() -> None:
    async def main() -> None:
        world = ControllerWorld()
        fill(world)
        refusing = True

        def refuse(request: Any, when: str) -> Any:
            made = when == "before" and request.method == "POST" and request.path.endswith("/jobs")
            return status(403, "Forbidden", "namespace ns is being terminated") if made and refusing else None

        world.server.faults.append(refuse)
        world.tasks.append(asyncio.create_task(controllers(world, world.server).run()))
        await asyncio.sleep(EVERY + 20)
        told = {(one["involvedObject"]["kind"], one["reason"]) for one in world.server.all("events")}
        assert {("CronJob", "NamespaceTerminating"), ("JobFlow", "NamespaceTerminating")} <= told
        await asyncio.sleep(2000)
        refusing = False
        await asyncio.sleep(300)
        assert {"f-a"} < {one["metadata"]["name"] for one in world.server.all("jobs")}
        await world.end()

    run(main())


def test_pods_that_never_answer_keep_nothing_else_waiting() -> None:
    """A flow asks pods that are silent for ever; meanwhile another flow goes on."""

    async def silent(target: Target) -> bool:
        await asyncio.sleep(10**6)
        return True

    async def main() -> None:
        world = ControllerWorld()
        fill(world)
        probe = {"tcpSocketList": [{"taskName": "t", "port": 80}]}
        flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}}]
        world.server.put("jobflows", {"metadata": {"name": "asks", "namespace": "ns"}, "spec": {"flows": flows}})
        world.tasks.append(asyncio.create_task(controllers(world, world.server, silent).run()))
        await asyncio.sleep(3)
        made = world.server.get("jobs", "asks-a", "ns")
        owner = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "asks-a", "controller": True,
                 "uid": made["metadata"]["uid"]}  # fmt: skip
        marks = {"volcano.sh/task-spec": "t", "volcano.sh/job-name": "asks-a", "volcano.sh/job-version": "0"}
        world.server.put("pods", {"metadata": {"name": "p", "namespace": "ns", "annotations": marks,
                                               "ownerReferences": [owner]},
                                  "spec": {}, "status": {"phase": "Running", "podIP": "10.0.0.1"}})  # fmt: skip
        await asyncio.sleep(30)
        complete(world, "f-a")
        await asyncio.sleep(5)
        names = {one["metadata"]["name"] for one in world.server.all("jobs")}
        assert "f-b" in names
        assert "asks-b" not in names
        await world.end()

    run(main())


# ---------------------------------------------------------------------- asking addresses


@asynccontextmanager
async def answering(reply: bytes, *, silent: bool = False):
    """A server that answers each request so; its port, and the requests that it has read."""
    heard: list[bytes] = []
    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            if silent:
                await reader.read()
            writer.write(reply)
        writer.close()

    async with await asyncio.start_server(talk, HERE, 0) as server:
        yield server.sockets[0].getsockname()[1], heard
        await asyncio.gather(*filter(None, talks))


def said(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("reply", "well"),
    [
        (said("200 OK"), True),
        (said("302 Found", "Location: http://127.0.0.1:1/"), True),
        (said("404 Not Found"), False),
        (said("503 Unavailable"), False),
        (b"nonsense\r\n\r\n", False),
        (b"", False),
    ],
)
def test_answers(reply: bytes, well: bool) -> None:
    async def main() -> None:
        async with answering(reply) as (port, heard):
            assert await Prober().ask(Target(HERE, port, "//other.example/a?b=c d", ("X-Mark", "yes"))) is well
            request = heard[0]
            assert request.startswith(b"GET //other.example/a?b=c+d HTTP/1.1\r\n")
            assert b"\r\nX-Mark: yes\r\n" in request
            assert await Prober().ask(Target(HERE, port)) is True

    asyncio.run(main())


def test_what_does_not_answer_or_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "PATIENCE", 0.05)

    async def main() -> None:
        async with answering(b"", silent=True) as (port, heard):
            asked = Prober()
            answers = await asyncio.gather(*(asked.ask(Target(HERE, port, "/")) for _ in range(20)))
            assert answers == [False] * 20
            before = len(heard)
            assert await asked.ask(Target(HERE, port, "/", ("X", "a\r\nHost: evil"))) is False
            assert len(heard) == before, "a header with a line break is not sent"
        for target in (
            Target(HERE, 1),
            Target(HERE, port),
            Target(HERE, 0, "/"),
            Target(HERE, 1 << 17),
            Target("no address", 80, "/"),
        ):
            assert await asked.ask(target) is False

    asyncio.run(main())
