"""Events are sent behind what is more urgent, with pauses while pods are bound; what happens again is counted up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stromboli.kube import recorder as module
from stromboli.kube.client import Client
from stromboli.kube.recorder import LONGEST_PAUSE, RECOUNT, REPEAT, SENDERS, URGENT_PAUSE, Recorder, Regarding
from stromboli.model.values.times import stamp
from tests.support.memory_server import MemoryServer
from tests.support.virtual import run

SECOND = 1.0
"""How long the server takes for an event."""


class SlowServer:
    """A client of a server that takes its time; ``most`` counts the requests that were under way at once.

    ``begun`` are the times at which requests came, in seconds since the server was made.
    """

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.begun: list[float] = []
        self.running = self.most = 0

    async def create(self, _: object, body: dict[str, Any], *__: object, **___: object) -> None:
        self.begun.append(asyncio.get_running_loop().time() - 1000.0)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(SECOND)
        self.running -= 1
        self.reasons.append(body["reason"])


def recorded(server: SlowServer, *events: tuple[str, str], urgent: float = 0.0) -> Recorder:
    """A recorder with events, by type and reason, each on a pod of its own; a binding takes ``urgent`` seconds."""
    recorder = Recorder(server, "volcano", lambda: 1000.0)  # type: ignore[arg-type]  # all that it asks of a client
    recorder.gives_way_to = lambda: urgent
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
    recorder = recorded(server, *scheduled, ("Warning", "w0"), ("Warning", "w1"), urgent=SECOND)
    run(sent(recorder, 10 * SECOND))
    assert server.reasons == ["w0", "w1", "n0", "n1", "n2"]


@pytest.mark.parametrize(("urgent", "count", "at_once"), [
    pytest.param(0.0, 40, SENDERS, id="nothing is more urgent"),
    pytest.param(SECOND, 12, 1, id="pods are being bound"),
    pytest.param(SECOND, 40, 3, id="events pile up"),
    pytest.param(SECOND, 55, 5, id="the queue is more than half full"),
    pytest.param(SECOND, 100, SENDERS, id="the queue is full"),
])  # fmt: skip
def test_so_many_are_sent_at_once(monkeypatch: pytest.MonkeyPatch, urgent: float, count: int, at_once: int) -> None:
    monkeypatch.setattr(module, "WAITING", 100)
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(count)], urgent=urgent)
    run(sent(recorder, 0.5 * SECOND))
    assert server.most == at_once


@pytest.mark.parametrize(("urgent", "count", "begun"), [
    pytest.param(0.001, 4, [0.0, 1.0, 2.0, 3.0], id="bindings are answered at once"),
    pytest.param(0.5, 4, [0.0, 1.5, 3.0, 4.5], id="a binding takes half a second"),
    pytest.param(60.0, 4, [0.0, 1.0 + LONGEST_PAUSE, 2.0 * (1.0 + LONGEST_PAUSE)], id="the server hardly answers"),
    pytest.param(0.5, 20, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.5], id="events pile up"),
])  # fmt: skip
def test_between_two_normal_events_one_sender_waits_as_long_as_a_binding_takes(
    monkeypatch: pytest.MonkeyPatch, urgent: float, count: int, begun: list[float]
) -> None:
    monkeypatch.setattr(module, "WAITING", 100)
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(count)], urgent=urgent)
    run(sent(recorder, 5.75 * SECOND))
    assert server.begun[: len(begun)] == pytest.approx(begun, abs=URGENT_PAUSE / 2)


def test_a_warning_does_not_wait_for_the_pause_after_a_normal_event() -> None:
    server = SlowServer()
    recorder = recorded(server, ("Normal", "n0"), ("Normal", "n1"), urgent=SECOND)

    async def story() -> None:
        task = asyncio.create_task(recorder.run())
        await asyncio.sleep(1.25 * SECOND)
        recorder.record(Regarding("v1", "Pod", "ns", "w"), "Warning", "w", "text")
        await asyncio.sleep(5.0 * SECOND)
        task.cancel()

    run(story())
    assert server.reasons == ["n0", "w", "n1"]
    assert server.begun == pytest.approx([0.0, 1.25, 3.25], abs=URGENT_PAUSE)


def test_all_are_sent_once_nothing_is_more_urgent_any_more() -> None:
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(4 * SENDERS)])
    urgent = [0.5 * SECOND]
    recorder.gives_way_to = lambda: urgent[0]

    async def story() -> int:
        task = asyncio.create_task(recorder.run())
        await asyncio.sleep(3.5 * SECOND)
        before = recorder.written
        urgent.clear()
        urgent.append(0.0)
        await recorder.drain()
        task.cancel()
        return before

    assert (run(story()), recorder.written, server.most) == (2, 4 * SENDERS, SENDERS)


def test_a_warning_finds_room_where_normal_events_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    server = SlowServer()
    recorder = recorded(server, *[("Normal", f"n{number}") for number in range(5)], ("Warning", "w"))
    assert recorder.dropped == 2
    run(sent(recorder, 10 * SECOND))
    assert sorted(server.reasons) == ["n0", "n1", "n2", "w"]


# ---------------------------------------------------------------------- what happens again


class Restarts:
    """A recorder that notes at some moments that a job was restarted; ``events`` are what the server then has."""

    def __init__(self) -> None:
        self.server = MemoryServer()
        self.recorder = Recorder(Client(self.server), "volcano", lambda: asyncio.get_running_loop().time())

    async def note(self, *moments: float, happened: bool = True) -> None:
        begun = asyncio.get_running_loop().time()
        for moment in moments:
            await asyncio.sleep(begun + moment - asyncio.get_running_loop().time())
            about = Regarding("batch.volcano.sh/v1alpha1", "Job", "ns", "j", "u")
            self.recorder.record(about, "Normal", "ExecuteAction", "RestartJob", happened=happened)

    def counts(self) -> list[tuple[int, str]]:
        return [(event["count"], event["lastTimestamp"][14:19]) for event in self.server.all("events")]


def told_again(story: Callable[[Restarts], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        restarts = Restarts()
        sending = asyncio.create_task(restarts.recorder.run())
        await story(restarts)
        sending.cancel()

    run(main())


def test_what_happens_again_is_counted_within_seconds() -> None:
    async def story(restarts: Restarts) -> None:
        await restarts.note(0.0, 4.0, 8.0, 12.0)
        assert [count for count, _ in restarts.counts()] == [2]
        await asyncio.sleep(2 * RECOUNT)
        assert restarts.counts() == [(4, stamp(1012.0)[14:19])]
        assert restarts.recorder.written == 3

    told_again(story)


def test_what_happens_all_the_time_costs_few_writes_and_is_counted_to_the_end() -> None:
    async def story(restarts: Restarts) -> None:
        await restarts.note(*(0.5 * number for number in range(1200)))
        assert restarts.recorder.written <= 16
        await asyncio.sleep(REPEAT)
        assert restarts.counts() == [(1200, stamp(1599.5)[14:19])]

    told_again(story)


def test_a_state_is_not_counted_up_meanwhile() -> None:
    async def story(restarts: Restarts) -> None:
        await restarts.note(*(1.0 * number for number in range(60)), happened=False)
        await asyncio.sleep(RECOUNT)
        assert (restarts.counts(), restarts.recorder.written) == ([(1, stamp(1000.0)[14:19])], 1)

    told_again(story)


def test_counts_that_are_not_due_yet_are_written_before_the_end() -> None:
    async def story(restarts: Restarts) -> None:
        await restarts.note(0.0, 1.0, 1.5)
        await restarts.recorder.drain()
        assert restarts.counts() == [(3, stamp(1001.5)[14:19])]

    told_again(story)


def test_as_many_counts_wait_as_events_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    recorder = recorded(SlowServer())
    for number in [*range(9), *range(9)]:
        recorder.record(Regarding("v1", "Pod", "ns", f"p{number}"), "Normal", "n", "text", happened=True)
    assert len(recorder._recounts) == 3
