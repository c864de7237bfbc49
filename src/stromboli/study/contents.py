"""What the segments of a record hold, and whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stromboli.cluster.rim import Cut
from stromboli.errors import RecordError, in_words
from stromboli.journal.segments import ABOUT, Segment, segments
from stromboli.study.replay import Entry, entries


@dataclass
class Contents:
    """One segment: ``since`` and ``until`` are its first and last cycle, in seconds since 1970, 0 without any.

    ``problem`` says what is damaged, ``cut_off`` that it ends in the middle of a frame.
    """

    file: Path
    bytes: int = 0
    version: str = ""
    since: float = 0.0
    until: float = 0.0
    cycles: int = 0
    entries: int = 0
    cut_off: bool = False
    problem: str = ""


def contents(folder: Path) -> Iterator[Contents]:
    """What each segment holds, up to where it is damaged.  Raises RecordError where there is none, and OSError."""
    for segment in segments(folder):
        found = Contents(segment.path, segment.path.stat().st_size)
        try:
            _read(segment, found)
        except RecordError as error:
            found.problem = in_words(error)
        found.cut_off = segment.cut_off
        yield found


def _read(segment: Segment, found: Contents) -> None:
    found.version = _version(segment)
    for one in entries(segment):
        if isinstance(one, Entry):
            found.entries += 1
            if isinstance(one.change, Cut):
                found.cycles += 1
                found.since, found.until = found.since or one.change.now, one.change.now


def _version(segment: Segment) -> str:
    frame = next(segment.frames(), None)
    if frame is None or frame.kind != ABOUT:
        return ""
    try:
        return str(msgspec.msgpack.decode(frame.content, type=dict[str, str]).get("stromboli", ""))
    except ValueError as error:  # of msgspec, or of a text that is no UTF-8
        raise RecordError(segment.path, frame.at, f"it does not say what wrote it: {error}") from error
