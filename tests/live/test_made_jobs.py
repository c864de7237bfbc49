"""CronJobs and JobFlows on a server: controllers are killed at each of their writes, and the next ones go on."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from stromboli.controllers.changes import Target
from stromboli.controllers.work import About
from stromboli.kube.client import Client
from stromboli.live.controllers import prober
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options
from stromboli.live.controllers.prober import Prober
from stromboli.model.values.times import stamp
from tests.support.contested import Mortal
from tests.support.controller_world import ControllerWorld, job
from tests.support.memory_server import status
from tests.support.virtual import run

LOOKS = frozenset({About.cron_job, About.job_flow, About.job_template})
EVERY = 60
HERE = "127.0.0.1"


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


def play(number: int, arrives: bool) -> int:
    """The story, the controllers killed at their ``number``-th write; how many writes they came to."""

    async def main() -> int:
        world = ControllerWorld()
        fill(world)
        wire = Mortal(world.server, number, arrives=arrives)
        wire.process = asyncio.create_task(controllers(world, wire).run())
        world.tasks.append(wire.process)
        for _ in range(30):
            await asyncio.sleep(5)
            complete(world, "f-a", "f-b")
            if wire.dead and len(world.tasks) == 1:
                world.tasks.append(asyncio.create_task(controllers(world, world.server).run()))
        made = [one["metadata"]["name"] for one in world.server.all("jobs")]
        assert len(made) == 1, "two slots, the second of which replaced the first; the flow's jobs are gone"
        cron = world.server.get("cronjobs", "c", "ns")["status"]
        assert [one["name"] for one in cron["active"]] == made
        flow = world.server.get("jobflows", "f", "ns")["status"]
        assert (flow["state"]["phase"], flow["completedJobs"]) == ("Succeed", ["f-a", "f-b"])
        posted = [request.path for request in world.server.requests
                  if request.method == "POST" and request.path.endswith("/jobs")]  # fmt: skip
        assert len(posted) <= 4 + (number > 0), "what was made is not made again, but for the one request that was lost"
        await world.end()
        return wire.writes

    return run(main())


def test_the_story_of_controllers_that_live() -> None:
    assert play(0, arrives=True) >= 10


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("number", range(1, 15))
def test_the_next_controllers_go_on(number: int, arrives: bool) -> None:
    play(number, arrives)


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
