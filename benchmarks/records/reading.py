"""How soon a record answers: ``python -m benchmarks.records.reading seek --into DIR``, ``explain`` or ``diff``.

``seek`` records a quarter of an hour of 1,000 nodes and reads up to the last cycle of each segment; ``explain`` records
four hours of 200 nodes and explains the job that waited longest; ``diff`` records a tenth of a day of 50,000 jobs on
2,000 nodes and asks what another configuration would have made of it.  Each prints the longest time, in CPU seconds;
``diff``, which simulates in two processes where there are two CPUs, the time that passed.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.records.day import CONF, EVERY, recorded
from benchmarks.records.replayed import whole
from stromboli.builtin import full_registry
from stromboli.journal.segments import Segment
from stromboli.study.closed_loop import ClosedLoop
from stromboli.study.past import Past
from stromboli.study.recorded.history import History
from stromboli.study.replay import Moment, Reading
from stromboli.study.sweeps.engines import usable_cpus

SEEK, EXPLAIN, DIFF = "seek", "explain", "diff"
SPANS: Final = {SEEK: (0.25, 1000, EVERY, 2.0), EXPLAIN: (4.0, 200, EVERY, 10.0), DIFF: (2.5, 2000, 1.7, 60.0)}
"""Hours that are recorded, nodes, seconds between jobs, and seconds that an answer may take."""
OTHER: Final = CONF.replace("preempt, ", "")
"""Without evictions."""
SEED: Final = 7


def seeks(found: Sequence[Segment]) -> Iterator[float]:
    """How long it takes to read up to the last cycle of each segment."""
    for segment in found:
        last = deque[Moment](maxlen=1)
        began = time.process_time()
        Reading().read(segment, last.append)
        yield time.process_time() - began


def explained(folder: Path) -> float:
    """How long the explanation of the job takes that waited longest."""
    registry = full_registry("")
    history = History(folder, registry).read()
    waits = {key: (job.started or history.last) - job.came for key, job in history.jobs.items()}
    began = time.process_time()
    past = Past(folder, max(waits, key=waits.__getitem__), registry, 0.0, float("inf"))
    past.spans()
    list(past.explained())
    return time.process_time() - began


def diffed(folder: Path) -> float:
    """How long it takes to say what another configuration would have made of all jobs."""
    registry = full_registry("")
    began = time.perf_counter()
    history = History(folder, registry).read()
    other = registry.configured_by(OTHER, "other")
    found = ClosedLoop(history, other, registry, workers=usable_cpus())
    print(f"{found.model_error.jobs} jobs, of which {len(found.losers(10**6))} would have started later")
    return time.perf_counter() - began


def _unheard(*_given: object, **_named: object) -> None:
    """Progress that is not shown."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and measure; 1 if the answer takes too long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.reading", description=__doc__)
    parser.add_argument("what", choices=list(SPANS))
    parser.add_argument("--into", type=Path, required=True, help="a folder for the record, which stays")
    parser.add_argument("--hours", type=float, help="that are recorded")
    options = parser.parse_args(arguments)
    hours, nodes, every, limit = SPANS[options.what]
    options.into.mkdir(parents=True, exist_ok=True)
    recorded(options.into, options.hours or hours, SEED, _unheard, nodes, float("inf"), every)
    found = list(whole([options.into]))
    folder = found[0].path.parent
    answers = {SEEK: lambda: max(seeks(found)), EXPLAIN: lambda: explained(folder), DIFF: lambda: diffed(folder)}
    longest = answers[options.what]()
    print(f"{longest:.2f} {'s' if options.what == DIFF else 'CPU s'} in {len(found)} segments")
    return 0 if longest <= limit else 1


if __name__ == "__main__":
    raise SystemExit(main())
