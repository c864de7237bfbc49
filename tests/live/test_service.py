"""The frame of both processes: in which order they end, and that nothing fails in them unnoticed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from stromboli.errors import AccessError
from stromboli.kube.credentials import Login
from stromboli.kube.recorder import Regarding
from stromboli.kube.transport import Request, Response
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.control_process import control
from stromboli.live.process.flags import parse
from stromboli.live.process.loops import fastest_loop
from stromboli.live.process.process import AGENT, SHADOW_AGENT, Process, serve
from stromboli.live.process.service import LOST, OK, SWITCH, Service
from stromboli.live.process.stopping import Stop
from stromboli.live.process.web import Pages
from tests.support.controller_world import ControllerWorld, job
from tests.support.virtual import run

FLAGS = ["--master=http://127.0.0.1:1", "--leader-elect=false"]


class Part:
    """Says when it begins and how it ends."""

    def __init__(self, told: list[str], failure: Exception | None = None) -> None:
        self._told, self._failure, self._stop = told, failure, Stop()

    async def run(self) -> None:
        try:
            if self._failure is not None:
                raise self._failure
            await self._stop.unless(asyncio.sleep(60))
            await asyncio.sleep(0.02)
            self._told.append("part is done")
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)
            self._told.append("part is cut off")
            raise

    def stop(self) -> None:
        self._stop.ask()


class Framed(Service):
    """A process that notes how its parts end."""

    def __init__(self, told: list[str], failure: Exception | None = None) -> None:
        super().__init__(parse(FLAGS), "test")
        self.parts = [Part(told, failure), Part(told)]
        self.told = told
        self.leadership.release = self._release  # type: ignore[method-assign]
        self.asked = {signal.SIGUSR1: self._dump}

    async def _release(self) -> None:
        self.told.append("lease is given back")

    async def _dump(self) -> None:
        await asyncio.sleep(0.4)  # longer than parts take, on a busy machine too
        self.told.append("dumped")


async def ended(service: Service, *signals: int) -> int:
    running = asyncio.create_task(service.run())
    await asyncio.sleep(0.05)
    for number in signals:
        os.kill(os.getpid(), number)
    return await running


def test_a_stop_is_a_success_and_a_lost_lease_is_none() -> None:
    assert (OK, LOST) == (0, 1)


def test_a_stop_lets_parts_and_dumps_end_before_the_lease_is_given_back() -> None:
    told: list[str] = []

    async def main() -> int:
        return await ended(Framed(told), signal.SIGUSR1, signal.SIGTERM)

    assert asyncio.run(main()) == OK
    assert told == ["part is done", "part is done", "dumped", "lease is given back"]


def test_what_a_signal_asks_for_may_fail_and_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []

    async def breaks() -> None:
        raise KeyError("an unforeseen error")

    async def main() -> int:
        service = Framed(told)
        service.asked = {signal.SIGUSR1: breaks}
        return await ended(service, signal.SIGUSR1, signal.SIGTERM)

    assert asyncio.run(main()) == OK
    assert told == ["part is done", "part is done", "lease is given back"]
    assert "What SIGUSR1 asks for failed: KeyError: 'an unforeseen error'" in capsys.readouterr().err


BEGINNING = """
import os, signal, sys
from stromboli.cli import main

class Impatient:
    def find_spec(self, name, *_):
        if name in ("stromboli.cli.app", "stromboli.live.process.flags"):
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGUSR2)

sys.meta_path.insert(0, Impatient())
sys.exit(main.main(["serve", "--version"]))
"""


def test_a_dump_signal_to_a_process_that_has_only_begun_does_not_end_it() -> None:
    done = subprocess.run([sys.executable, "-c", BEGINNING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stromboli ")


def test_a_process_that_has_lost_the_lease_cuts_its_parts_off(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def main() -> int:
        service = Framed(told)
        monkeypatch.setattr(service.leadership, "lead", lambda: asyncio.sleep(0.01))
        return await ended(service)

    assert asyncio.run(main()) == LOST == 1
    assert told == ["part is cut off", "part is cut off", "lease is given back"]


def test_what_the_log_could_not_say_is_a_figure_of_the_process() -> None:
    async def main() -> str:
        service = Framed([])
        service.log.lost = 3
        return generate_latest(service.registry).decode()

    assert "stromboli_log_lines_lost_total 3.0" in asyncio.run(main())


@pytest.mark.parametrize("place", ["part", "logs", "beside"])
def test_whatever_fails_ends_the_process_in_order(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    failure = TypeError("an unforeseen error")

    async def fails(*_: object) -> None:
        raise failure

    async def main() -> None:
        service = Framed(told, failure if place == "part" else None)
        if place == "logs":
            monkeypatch.setattr("stromboli.live.process.service.flush", fails)
        if place == "beside":
            service.background = [fails()]
        with pytest.raises(TypeError, match="an unforeseen error"):
            await ended(service)

    asyncio.run(main())
    assert told == ["part is cut off"] * (1 if place == "part" else 2) + ["lease is given back"]


def test_background_work_that_ends_ends_nothing() -> None:
    told: list[str] = []

    async def main() -> int:
        service = Framed(told)
        service.background = [asyncio.sleep(0)]
        return await ended(service, signal.SIGINT)

    assert asyncio.run(main()) == OK


@pytest.mark.parametrize(("begin", "flags"), [(serve, None), (control, CONTROL_FLAGS)])
def test_both_processes_run_in_the_fastest_loop(begin: Any, flags: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def loop(_: Service) -> Any:
        return asyncio.get_running_loop()

    monkeypatch.setattr(Service, "run", loop)
    fastest = fastest_loop()
    assert fastest is not None
    expected = fastest()
    before = sys.getswitchinterval()
    try:
        assert type(begin(parse(FLAGS, flags) if flags else parse(FLAGS))) is type(expected)
        assert sys.getswitchinterval() == pytest.approx(SWITCH), "threads give way to the loop sooner than usual"
    finally:
        sys.setswitchinterval(before)
    expected.close()


def test_a_process_is_ready_once_all_is_read_and_closes_its_record_when_it_ends(tmp_path: Path) -> None:
    closed: list[bool] = []

    async def main() -> int:
        process = Process(parse([*FLAGS, f"--record={tmp_path / 'record'}"]))
        process.parts, process.pages = [], []
        assert process.recorder is not None
        process.recorder.close = lambda: closed.append(True)  # type: ignore[method-assign]
        assert process._unready() == "not all objects have been read"
        process.scheduler.ready.set()
        assert process._unready() == ""
        return await process.run()

    assert asyncio.run(main()) == OK
    assert closed == [True]


@pytest.mark.parametrize(("flags", "agent"), [([], AGENT), (["--shadow"], SHADOW_AGENT)])
def test_the_api_server_knows_a_shadow_by_a_name_of_its_own(flags: list[str], agent: str) -> None:
    asked: list[Request] = []

    async def answer(request: Request, _login: Login) -> Response:
        asked.append(request)
        return Response(200, {}, b"{}")

    async def main() -> None:
        process = Process(parse([*FLAGS, *flags]))
        process.client._transport.send = answer  # type: ignore[assignment]
        await process.client.request("GET", "/version")

    asyncio.run(main())
    assert [one.headers["User-Agent"] for one in asked] == [agent]


@pytest.mark.parametrize(("host", "served"), [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")])
def test_pages_are_served_where_their_address_says(host: str, served: str) -> None:
    async def main() -> None:
        pages = Pages(f"{host}:0")
        await pages.start()
        try:
            assert pages._runner is not None
            assert [address[:2] for address in pages._runner.addresses] == [(served, pages.port)]
            assert pages.port > 0
        finally:
            await pages.stop()

    asyncio.run(main())


@pytest.mark.parametrize("address", ["", "here", "127.0.0.1:", "127.0.0.1:http", ":-1"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(AccessError, match=r"is no address; write host:port or :port"):
        Pages(address)


# ---------------------------------------------------------------------- the controllers' end


def test_controllers_finish_their_looks_and_say_everything() -> None:
    async def main() -> None:
        world = ControllerWorld()
        running = await world.go(scheduling=False)
        world.server.latency = 0.3
        world.server.put("jobs", job("gang", 5))
        async with asyncio.timeout(10):
            while not any(request.method == "POST" for request in world.server.requests):
                await asyncio.sleep(0.01)
        controllers = world.controllers
        controllers.stop()
        await running
        assert len(world.told.of("controlled")) == controllers.looks
        asked = len(world.server.requests)
        await asyncio.sleep(5)
        assert len(world.server.requests) == asked
        await world.end()

    run(main())


def test_events_that_wait_are_sent_before_controllers_end() -> None:
    async def main() -> None:
        world = ControllerWorld()
        running = await world.go(scheduling=False)
        world.server.latency = 0.3
        for number in range(40):
            world.controllers.recorder.record(Regarding("v1", "Pod", "ns", f"p{number}"), "Normal", "Told", "text")
        world.controllers.stop()
        await running
        assert sum(event["reason"] == "Told" for event in world.server.all("events")) == 40
        await world.end()

    run(main())


def test_a_stop_of_controllers_waits_for_no_server_that_is_not_there() -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.server.latency = 1000.0
        running = await world.go(scheduling=False)
        assert not world.controllers.ready.is_set()
        world.controllers.stop()
        async with asyncio.timeout(1):
            await running
        await world.end()

    run(main())


def test_controllers_whose_last_changes_get_no_answer_end_when_their_time_is_over() -> None:
    async def main() -> None:
        world = ControllerWorld()
        running = await world.go(scheduling=False)
        world.server.latency = 1000.0
        world.server.put("jobs", job("gang", 5))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        world.controllers.stop()
        await running
        assert asyncio.get_running_loop().time() - began == pytest.approx(world.controllers.options.stop_timeout)
        assert world.told.of("write_failed") == [{"what": "the last changes", "error": "the time to stop is over"}]
        await world.end()

    run(main())


@pytest.mark.parametrize("asked", [True, False])
def test_nothing_goes_on_after_work_that_is_done_or_given_up(asked: bool) -> None:
    async def main() -> None:
        stop = Stop()
        if asked:
            asyncio.get_running_loop().call_soon(stop.ask)
        await stop.unless(asyncio.sleep(60 if asked else 0))
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
