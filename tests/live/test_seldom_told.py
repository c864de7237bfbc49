"""Log lines of a live process for rare events: written where they happen."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable
from pathlib import Path

import pytest

from stromboli.errors import Unreachable
from stromboli.kube.client import Client
from stromboli.kube.lease import Terms
from stromboli.kube.recorder import Recorder
from stromboli.kube.transport import Request, Response
from stromboli.live.process.events import Telling
from stromboli.live.process.flags import parse
from stromboli.live.process.leading import Leadership
from stromboli.live.process.process import Process
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.dump import summary
from stromboli.narration.observe import Counting
from tests.support.live_world import LiveWorld, node, pod
from tests.support.memory_server import MemoryServer
from tests.support.virtual import run

ONE = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def test_a_configuration_that_cannot_be_read_leaves_the_one_before(tmp_path: Path) -> None:
    path, told = tmp_path / "conf", Counting()
    path.write_text(ONE)
    found = Configuration(Source(str(path)), Telling(told))
    path.unlink()
    path.mkdir()
    assert not found.refresh()
    assert found.current.actions == ("allocate",)
    (said,) = told.of("config_unreadable")
    assert said["path"] == str(path)
    assert told.counts["config_file_event"] == 1
    assert found.is_refused
    path.rmdir()
    path.write_text(ONE)
    assert found.refresh()
    assert not found.is_refused


def test_gaining_and_losing_the_lead_is_told() -> None:
    async def main() -> None:
        server, told, leadership = MemoryServer(), Counting(), Leadership()

        def fault(_request: Request, _when: str) -> Response | None:
            raise Unreachable("cut")

        client = Client(server, dice=random.Random(1))
        leadership.stand(client, Terms("home", "volcano", "me"), Telling(told), Recorder(client, "volcano"))
        leading = asyncio.create_task(leadership.lead())
        await asyncio.sleep(5)
        lease = {"lease": "home/volcano", "identity": "me"}
        assert told.of("waiting_for_lease") == told.of("leading") == [lease]
        assert leadership.leads()
        server.faults.append(fault)
        await leading
        assert told.counts["lease_lost"] == 1
        assert {fields["lease"] for fields in told.of("lease_trouble")} == {"volcano"}

    run(main())


def test_what_is_read_late_is_told_and_scheduling_starts_without_it() -> None:
    async def main() -> None:
        world = LiveWorld()
        answering = asyncio.Event()

        def fault(request: Request, _when: str) -> Response | None:
            if not answering.is_set() and "/priorityclasses" in request.path:
                raise Unreachable("cut")
            return None

        world.server.faults.append(fault)
        scheduler = world.scheduler(resource_sync_timeout=3.0)
        world.tasks.append(asyncio.create_task(scheduler.run()))
        await asyncio.sleep(10)
        assert world.told.of("handler_not_synced") == [{"name": "PriorityClass"}]
        assert scheduler.cycles
        answering.set()
        await world.end()

    run(main())


def test_an_overfull_node_is_told_of_once_for_each_amount() -> None:
    async def main() -> None:
        for compat in (False, True):
            world = LiveWorld(nodes=1, cpu=2)
            world.server.put("pods", {**pod("big", cpu=3, nodeName="n0"), "status": {"phase": "Running"}})
            scheduler = world.scheduler(compat=compat)
            world.tasks.append(asyncio.create_task(scheduler.run()))
            await asyncio.sleep(10)
            keys = ("node_out_of_sync", "idle_negative")
            before, cycles = [world.told.counts[key] for key in keys], scheduler.cycles
            assert cycles > 1
            assert before == ([cycles, cycles] if compat else [1, 1])
            world.server.put("nodes", node("n0", 1))
            await asyncio.sleep(10)
            if not compat:
                assert [str(fields["idle"]).split(",")[0] for fields in world.told.of("idle_negative")] == [
                    "cpu -1000.00", "cpu -2000.00",
                ]  # fmt: skip
            await world.end()

    run(main())


FLAGS = ["--master=http://127.0.0.1:1", "--leader-elect=false", "--enable-metrics=false", "--enable-healthz=false"]


def test_signals_write_the_state_to_a_file_and_to_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once, however seldom the log is written otherwise."""

    async def said(work: Awaitable[None]) -> list[str]:
        await work
        return [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]

    async def main() -> None:
        process = Process(parse([*FLAGS, f"--cache-dump-dir={tmp_path}"]))
        dump, log_state = process.asked[signal.SIGUSR1], process.asked[signal.SIGUSR2]
        lines = await said(dump())
        (written,) = tmp_path.glob("snapshot-*.json")
        assert lines == [f"Snapshot written to {written}"]
        assert await said(log_state()) == list(summary(process.scheduler.state))
        process.flags = {**process.flags, "cache_dump_dir": str(tmp_path / "nowhere")}
        (line,) = await said(dump())
        assert line.startswith("Snapshot could not be written: ")

    asyncio.run(main())
