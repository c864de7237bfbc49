"""What recording costs a scheduler: ``python -m benchmarks.records.cost [--nodes 1000] [--rate 150] [--seconds 120]``.

A scheduler process on a large cluster in the measuring process records while pods come and go; the CPU of the
recorder, in the loop's thread and in its own, is counted beside that of the whole process.  Checkpoints count as often
as entries and time make them due, however many fall into the seconds that are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import gc
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.live import watched
from benchmarks.live.served import Served, served
from stromboli.journal.scrubbing import Scrub
from stromboli.journal.segments import ENTRIES, segments
from stromboli.live.scheduler import recording
from stromboli.live.scheduler.recording import USUAL
from stromboli.study.replay import Entry, entries

GANG = 10
SHARE, SIZE = 0.03, 100.0
"""The recorder's part of the process's CPU, and bytes an event, that are allowed."""
BRACKETS = 20_000
"""How many empty calls tell what counting a call costs, which is taken off what is measured call by call."""


def metered(file: Path) -> None:
    """Count the recorder's CPU seconds, and write them into ``file`` every second and in the end."""
    spent = {"loop": 0.0, "thread": 0.0, "longest": 0.0, "checkpoint": 0.0, "checkpoints": 0.0}
    reading = 0.0
    since = time.monotonic()

    collected, collections = defaultdict[int, float](float), dict[int, float]()

    def collecting(phase: str, _about: object) -> None:
        """Garbage is collected whenever its time has come, in whichever thread runs then."""
        if phase == "start":
            collections[threading.get_ident()] = time.thread_time()
        else:
            collected[threading.get_ident()] += time.thread_time() - collections[threading.get_ident()]

    def counted(method: Callable[..., Any], where: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            thread = threading.get_ident()
            began, before = time.thread_time(), collected[thread]
            try:
                return method(*given)
            finally:
                lasted = time.thread_time() - began - (collected[thread] - before) - reading
                spent[where] += lasted
                if where == "loop":
                    spent["longest"] = max(spent["longest"], lasted)
                spent["checkpoints"] += where == "checkpoint"

        return call

    def write() -> None:
        told = {**spent, "process": time.process_time(), "seconds": time.monotonic() - since}
        file.write_text(json.dumps(told), encoding="utf-8")

    reading = empty_bracket(lambda work: counted(work, "loop"), spent)
    gc.callbacks.append(collecting)
    for name in ("_begin_cycle", "planned", "_noted"):
        setattr(recording.Recorder, name, counted(getattr(recording.Recorder, name), "loop"))
    for name, where in (("begin", "checkpoint"), ("entries", "thread"), ("end", "thread")):
        setattr(recording._Writer, name, counted(getattr(recording._Writer, name), where))
    setattr(Scrub, "__call__", counted(Scrub.__call__, "loop"))  # noqa: B010
    entries_of = recording._Writer.entries

    def noted(*given: Any) -> None:
        entries_of(*given)
        write()

    setattr(recording._Writer, "entries", noted)  # noqa: B010  # what is measured is no part of the class
    atexit.register(write)


def empty_bracket(counted: Callable[[Callable[[], None]], Callable[[], None]], spent: dict[str, float]) -> float:
    """CPU seconds that a call takes more because it is counted; ``spent`` is as it was afterwards."""

    def nothing() -> None:
        return None

    def lasts(work: Callable[[], None]) -> float:
        began = time.thread_time()
        for _ in range(BRACKETS):
            work()
        return (time.thread_time() - began) / BRACKETS

    measure, before = counted(nothing), dict(spent)
    lasts(measure)
    inside = (spent["loop"] - before["loop"]) / BRACKETS
    spent.update(before)
    return inside - lasts(nothing)


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
    return {name: after[name] - before[name] for name in after} | whole


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
        f"of {checkpoint:.3f} due: {share:.2%}; longest in the loop {found['longest'] * 1000:.1f} ms"
    )
    size = stored / max(news, 1)
    print(f"{stored} bytes, {count} entries, {news} of news: {size:.0f} B an event")
    return 0 if share <= SHARE and size <= SIZE else 1


if __name__ == "__main__":
    raise SystemExit(main())
