"""Events are sent behind what is more urgent: warnings first, one at a time while pods are being bound."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.kube import recorder as module
from stromboli.kube.recorder import SENDERS, Recorder, Regarding
from tests.support.virtual import run

SECOND = 1.0
"""How long the server takes for an event."""


class SlowServer:
    """A client of a server that takes its time; ``most`` counts the requests that were under way at once."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.running = self.most = 0

    async def create(self, _: object, body: dict[str, Any], *__: object, **___: object) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(SECOND)
        self.running -= 1
        self.reasons.append(body["reason"])


def recorded(server: SlowServer, *events: tuple[str, str], busy: bool = False) -> Recorder:
    """A recorder with events, by type and reason, each on a pod of its own."""
    recorder = Recorder(server, "volcano", lambda: 1000.0)  # type: ignore[arg-type]  # all that it asks of a client
    recorder.gives_way_to = lambda: busy
    for number, (type_, reason) in enumerate(events):
        recorder.record(Regarding("v1", "Pod", "ns", f"p{number}"), type_, reason, "text")
    return recorder


async def sent(recorder: Recorder, seconds: float) -> None:
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(seconds)
    task.cancel()


def test_warnings_are_sent_before_what_is_normal() -> None:
    server = SlowServer()
    scheduled = [("Normal", f"n{number}") for number in range(3)]
    recorder = recorded(server, *scheduled, ("Warning", "w0"), ("Warning", "w1"), busy=True)
    run(sent(recorder, 10 * SECOND))
    assert server.reasons == ["w0", "w1", "n0", "n1", "n2"]


@pytest.mark.parametrize(("busy", "count", "at_once"), [
    pytest.param(False, 40, SENDERS, id="nothing is more urgent"),
    pytest.param(True, 12, 1, id="pods are being bound"),
    pytest.param(True, 40, 3, id="events pile up"),
    pytest.param(True, 55, 5, id="the queue is more than half full"),
    pytest.param(True, 100, SENDERS, id="the queue is full"),
])  # fmt: skip
def test_so_many_are_sent_at_once(monkeypatch: pytest.MonkeyPatch, busy: bool, count: int, at_once: int) -> None:
    monkeypatch.setattr(module, "WAITING", 100)
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(count)], busy=busy)
    run(sent(recorder, 0.5 * SECOND))
    assert server.most == at_once


def test_all_are_sent_once_nothing_is_more_urgent_any_more() -> None:
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(4 * SENDERS)])
    urgent = [True]
    recorder.gives_way_to = lambda: urgent[0]

    async def story() -> int:
        task = asyncio.create_task(recorder.run())
        await asyncio.sleep(3.5 * SECOND)
        before = recorder.written
        urgent.clear()
        urgent.append(False)
        await recorder.drain()
        task.cancel()
        return before

    assert (run(story()), recorder.written, server.most) == (3, 4 * SENDERS, SENDERS)


def test_a_warning_finds_room_where_normal_events_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(5)], ("Warning", "w"))
    assert recorder.dropped == 2
    run(sent(recorder, 10 * SECOND))
    assert sorted(server.reasons) == ["n0", "n1", "n2", "w"]
