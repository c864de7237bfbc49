"""The recorder by itself: what ends a record, and what bounds the entries that wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event

import pytest

from stromboli.cluster.objects import from_value
from stromboli.cluster.rim import Applied, Cut, Learned, Rim
from stromboli.cluster.state import ClusterState
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.journal.entries import Configured
from stromboli.journal.segments import ENTRIES, FRAME, Segment, segments
from stromboli.live.process.events import Telling
from stromboli.live.scheduler import recording
from stromboli.live.scheduler.recording import AGAIN, WAITING, Recorder
from stromboli.narration.observe import Silent
from stromboli.study.replay import Entry, entries
from stromboli.testing.builders import queue

TOO_LARGE: dict[str, dict[str, float]] = {"p": {"a": 2**70}}
"""What a plugin remembers, which no entry can hold."""


class Heard(Silent):
    """What the log says."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def wants(self, key: str) -> bool:
        """All of it."""
        return True

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        self.lines.append((key, dict(fields)))


class Recording:
    """A state that is recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rim, self.now, self.heard = folder, Rim(ClusterState()), 1.8e9, Heard()
        configured = Configured(DEFAULT_CONFIG, False, False, [], None)
        self.recorder = Recorder(folder, self.rim, lambda: configured, Telling(self.heard), lambda: self.now)

    def cut(self) -> None:
        self.now += 1.0
        self.rim.do(Cut(self.now, 0, 0))

    def comes(self, name: str, text: str = "") -> None:
        self.rim.do(Applied("Queue", True, from_value("Queue", queue(name, annotations={"volcano.sh/x": text}))))

    def frames(self) -> list[int]:
        """How many bytes the frames of entries hold, in order."""
        self.recorder.close()
        found = (frame for segment in segments(self.folder) for frame in segment.frames())
        return [len(frame.content) for frame in found if frame.kind == ENTRIES]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recording]:
    found = Recording(tmp_path)
    yield found
    found.recorder.close()


def applied(segment: Segment) -> list[str]:
    """The objects of a segment, in order."""
    changes = (one.change for one in entries(segment) if isinstance(one, Entry))
    return [change.object.metadata.name for change in changes if isinstance(change, Applied)]


def test_an_entry_that_cannot_be_encoded_ends_the_record_and_not_the_change(recorded: Recording) -> None:
    recorded.cut()
    recorded.comes("before")
    recorded.rim.do(Learned(TOO_LARGE))
    assert recorded.rim.state.memory == TOO_LARGE
    recorded.comes("unseen")
    assert (recorded.recorder.failures, [key for key, _ in recorded.heard.lines]) == (1, ["record_stopped"])
    recorded.rim.do(Learned({"p": {"a": 1.0}}))
    recorded.now += AGAIN
    while recorded.recorder.waiting:
        time.sleep(0.001)
    recorded.cut()
    recorded.comes("again")
    recorded.recorder.close()
    first, second = segments(recorded.folder)
    assert applied(first) == []  # the whole piece is of no use
    assert applied(second) == ["again"]
    assert {"before", "unseen"} <= set(recorded.rim.state.queues)


@pytest.mark.parametrize(("count", "text"), [(FRAME, ""), (10, "x" * (recording.PIECE // 8))])
def test_entries_are_handed_over_before_a_cycle_begins_when_they_are_many(
    recorded: Recording, count: int, text: str
) -> None:
    recorded.cut()
    for number in range(count):
        recorded.comes(f"q{number}", text)
    assert recorded.recorder._waiting.count < count
    sizes = recorded.frames()
    assert len(sizes) == 2
    assert max(sizes) < 2 * recording.PIECE


def test_a_disk_that_is_too_slow_ends_the_record(recorded: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what waits for the writer is bounded."""
    taken, goes_on = Event(), Event()

    def begin(*_given: object) -> None:
        taken.set()
        goes_on.wait()

    monkeypatch.setattr(recording._Writer, "begin", begin)
    try:
        recorded.cut()
        taken.wait()  # else it is one of those that wait, or not, as the threads have their turns
        for _ in range(WAITING + 2):
            recorded.cut()
        waiting = recorded.recorder.waiting
    finally:
        goes_on.set()
    assert waiting == WAITING
    assert recorded.heard.lines == [("record_stopped", {"error": "the disk is too slow", "seconds": AGAIN})]
