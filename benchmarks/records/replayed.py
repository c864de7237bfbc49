"""Replays records, segment by segment: ``python -m benchmarks.records.replayed DIR...``; how many plans are equal.

Segments are verified one by one, as each begins with a whole state, so a part of a record can be verified while the
rest is still being written.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.journal.segments import Segment, segments
from stromboli.study.replay import Replay, SeenMoment


class Timed(Replay):
    """A replay that notes the cycles' times."""

    def __init__(self) -> None:
        super().__init__(full_registry(""))
        self.times: list[float] = []

    def _run(self, moment: SeenMoment) -> None:
        self.times.append(moment.cut.now)
        super()._run(moment)


def whole(folders: Sequence[Path]) -> Iterator[Segment]:
    """The segments of all folders, those of each of their folders included, in order."""
    for folder in folders:
        for one in [folder, *sorted(path for path in folder.glob("*") if path.is_dir())]:
            if one.is_file() or any(one.glob("rec-*")):
                yield from segments(one)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, and print a line for each segment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.replayed", description=__doc__)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--first", type=int, default=0, help="begin with this segment")
    parser.add_argument("--step", type=int, default=1, help="take each so manieth segment only")
    options = parser.parse_args(arguments)
    equal, cycles, cpu, span = 0, 0, 0.0, 0.0
    about = f"Python {platform.python_version()}, PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')}"
    for segment in list(whole(options.records))[options.first :: options.step]:
        replay, began = Timed(), time.process_time()
        replay.read(segment)
        cpu += time.process_time() - began
        equal, cycles = equal + replay.equal, cycles + len(replay.times)
        span += replay.times[-1] - replay.times[0] if replay.times else 0.0
        print(
            f"{segment.path.parent.name}/{segment.path.name}: {equal} of {cycles} equal; {span / 3600:.2f} h in "
            f"{cpu:.0f} CPU s, {span / max(cpu, 1e-9):.0f} x real time; {about}",
            flush=True,
        )
        if replay.difference is not None:
            print("\n".join(replay.difference.lines))
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
