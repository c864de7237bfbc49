"""What recording costs a scheduler: ``python -m benchmarks.records.cost [--nodes 1000] [--rate 150] [--seconds 120]``.

A scheduler process on a large cluster in the measuring process records while pods come and go; the CPU of the
recorder, in the loop's thread and in its own, is counted beside that of the whole process.  Checkpoints count as often
as entries and time make them due, however many fall into the seconds that are measured.  Two functions run
for every event and take about as long as reading the clock.  So about half of their calls, drawn at random, are timed;
in the other calls an empty function is timed in the same place, and its mean is taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import gc
import json
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.live import watched
from benchmarks.live.served import Served, served
from stromboli.cluster.rim import Cut
from stromboli.journal.scrubbing import Scrub
from stromboli.journal.segments import ENTRIES, segments
from stromboli.live.scheduler import recording
from stromboli.live.scheduler.recording import USUAL
from stromboli.study.replay import Entry, entries

Call = Callable[..., Any]

GANG = 10
SHARE, SIZE = 0.03, 100.0
"""The recorder's part of the process's CPU, and bytes an event, that are allowed."""
FREQUENT = ("hear", "scrub")
"""What runs for every event, and lasts about as long as reading the clock."""


class Meter:
    """CPU seconds of the recorder by part, those of garbage collection left out, which begins wherever it is due.

    ``spent`` has them for each part, and of the ``FREQUENT`` ones how many calls there were, how many were timed, and
    what empty calls took in place of the others (:func:`seconds_of`).  An empty call also takes
    off what calling a function costs.
    """

    def __init__(self) -> None:
        self.spent = defaultdict[str, float](float)
        self._collected, self._collections = defaultdict[int, float](float), dict[int, float]()
        self._draw = random.Random(1).random

    def timed(self, method: Call, part: str) -> Call:
        """``method``, of which every call is timed."""
        return lambda *given: self._time(method, given, part)

    def sampled(self, method: Call, part: str) -> Call:
        """``method``, of which a random half of the calls is timed, and each that begins a cycle: it may take long."""
        called, measured, empty = f"{part} called", f"{part} measured", f"{part} empty"

        def call(*given: Any) -> Any:
            if given and isinstance(given[-1], Cut):
                return self._time(method, given, "loop")
            self.spent[called] += 1
            if self._draw() < 0.5:
                self.spent[measured] += 1
                return self._time(method, given, part)
            self._time(nothing, given, empty)
            return method(*given)

        return call

    def _time(self, method: Call, given: tuple[Any, ...], part: str) -> Any:
        thread = threading.get_ident()
        began, before = time.thread_time(), self._collected[thread]
        try:
            return method(*given)
        finally:
            lasted = time.thread_time() - began - (self._collected[thread] - before)
            self.spent[part] += lasted
            if part in ("loop", "hear"):
                self.spent["longest"] = max(self.spent["longest"], lasted)
            if part == "checkpoint":
                self.spent["checkpoints"] += 1

    def collecting(self, phase: str, _about: object) -> None:
        """Called by the garbage collector, which runs in whichever thread its time has come."""
        if phase == "start":
            self._collections[threading.get_ident()] = time.thread_time()
        else:
            self._collected[threading.get_ident()] += time.thread_time() - self._collections[threading.get_ident()]


def nothing(*_given: object) -> None:
    """What an empty call calls."""


def seconds_of(part: str, spent: Mapping[str, float]) -> float:
    """CPU seconds that all calls of a ``FREQUENT`` part have taken, by those that were timed and the empty ones."""
    called, measured = spent.get(f"{part} called", 0.0), spent.get(f"{part} measured", 0.0)
    if not measured:
        return 0.0
    empty = spent.get(f"{part} empty", 0.0) / (called - measured) if called > measured else 0.0
    return called * (spent[part] / measured - empty)


def metered(file: Path) -> None:
    """Count the recorder's CPU seconds, and write them into ``file`` every second and in the end."""
    meter, since = Meter(), time.monotonic()
    gc.callbacks.append(meter.collecting)

    def write() -> None:
        told = {**meter.spent, "process": time.process_time(), "seconds": time.monotonic() - since}
        file.write_text(json.dumps(told), encoding="utf-8")

    # with setattr, as mypy refuses assignments to methods
    setattr(recording.Recorder, "hear", meter.sampled(recording.Recorder.hear, "hear"))  # noqa: B010
    setattr(Scrub, "clean", meter.sampled(Scrub.clean, "scrub"))  # noqa: B010
    setattr(recording.Recorder, "planned", meter.timed(recording.Recorder.planned, "loop"))  # noqa: B010
    for name, part in (("begin", "checkpoint"), ("entries", "thread"), ("end", "thread")):
        setattr(recording._Writer, name, meter.timed(getattr(recording._Writer, name), part))
    entries_of = recording._Writer.entries

    def noted(*given: Any) -> None:
        entries_of(*given)
        write()

    setattr(recording._Writer, "entries", noted)  # noqa: B010
    atexit.register(write)


async def measured(nodes: int, pods: int, rate: float, seconds: float, into: Path) -> dict[str, float]:
    """Seconds of CPU before and while pods come and go."""
    flags = [f"--record={into / 'rec'}", "--schedule-period=1s", "-v=0"]
    async with served(nodes, pods // GANG, GANG, flags, ("benchmarks.records.cost", "serve")) as scheduler:
        await scheduler.until_ready()
        await asyncio.sleep(10)
        before = read(scheduler)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if rate:
                scheduler.standing.arrive(max(round(rate / GANG), 1), GANG)
                scheduler.standing.leave(round(rate))
            await asyncio.sleep(1.0)
        await asyncio.sleep(3)
        after = read(scheduler)
    whole = {name: after[name] for name in ("longest", "checkpoint", "checkpoints")}
    found = {name: after[name] - before.get(name, 0.0) for name in after} | whole
    return {**found, "loop": found["loop"] + sum(seconds_of(part, found) for part in FREQUENT)}


def read(scheduler: Served) -> dict[str, float]:
    """What the process has written last."""
    found: dict[str, float] = json.loads((scheduler.folder / "stalls.cost").read_text())
    return found


def sizes(folder: Path) -> tuple[int, int, int]:
    """Bytes of entries as stored, how many entries, and how many of them are news (cycles and plans left out)."""
    stored = count = news = 0
    for segment in segments(folder):
        places = [(frame.at, frame.kind) for frame in segment.frames()]
        ends = [at for at, _ in places[1:]] + [segment.path.stat().st_size]
        stored += sum(end - at for (at, kind), end in zip(places, ends, strict=True) if kind == ENTRIES)
        for one in entries(segment):
            if isinstance(one, Entry):
                count += 1
                news += type(one.change).__name__ not in ("Cut", "Planned", "Configured")
    return stored, count, news


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, 1 if it costs more than it may; or with ``serve`` be the process that is measured."""
    if arguments is None and sys.argv[1:2] == ["serve"]:
        del sys.argv[1]
        metered(Path(f"{sys.argv[1]}.cost"))
        return watched.main()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.cost", description=__doc__)
    parser.add_argument("into", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=150.0, help="pods that come and go in a second; 0: none")
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args(arguments)
    found = asyncio.run(measured(options.nodes, options.pods, options.rate, options.seconds, options.into))
    stored, count, news = sizes(options.into / "rec")
    checkpoint = found["checkpoint"] / found["checkpoints"]
    due = max(count / USUAL.segment_entries, found["seconds"] / USUAL.segment_seconds)
    share = (found["loop"] + found["thread"] + checkpoint * due) / found["process"]
    print(
        f"recorder {found['loop']:.2f} + {found['thread']:.2f} CPU s of {found['process']:.2f}, {due:.2f} checkpoints "
        f"of {checkpoint:.3f} due: {share:.2%}; longest of those timed {found['longest'] * 1000:.1f} ms"
    )
    size = stored / max(news, 1)
    print(f"{stored} bytes, {count} entries, {news} of news: {size:.0f} B an event")
    return 0 if share <= SHARE and size <= SIZE else 1


if __name__ == "__main__":
    raise SystemExit(main())
