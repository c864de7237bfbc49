"""How soon a record answers: ``python -m benchmarks.records.reading seek --into DIR``, or ``explain``.

``seek`` records a quarter of an hour of 1,000 nodes and reads up to the last cycle of each segment; ``explain`` records
four hours of 200 nodes and explains the job that waited longest.  Both print the longest time, in seconds.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.records.day import recorded
from benchmarks.records.replayed import whole
from stromboli.builtin import full_registry
from stromboli.journal.segments import Segment
from stromboli.study.history import History
from stromboli.study.past import Past
from stromboli.study.replay import Moment, Reading

SEEK, EXPLAIN = "seek", "explain"
SPANS: Final = {SEEK: (0.25, 1000, 2.0), EXPLAIN: (4.0, 200, 10.0)}
"""Hours that are recorded, nodes, and seconds that an answer may take."""
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and measure; 1 if the answer takes too long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.reading", description=__doc__)
    parser.add_argument("what", choices=list(SPANS))
    parser.add_argument("--into", type=Path, required=True, help="a folder for the record, which stays")
    parser.add_argument("--hours", type=float, help="that are recorded")
    options = parser.parse_args(arguments)
    hours, nodes, limit = SPANS[options.what]
    options.into.mkdir(parents=True, exist_ok=True)
    recorded(options.into, options.hours or hours, SEED, lambda *_given, **_named: None, nodes, reign=float("inf"))
    found = list(whole([options.into]))
    longest = max(seeks(found)) if options.what == SEEK else explained(found[0].path.parent)
    print(f"{longest:.2f} CPU s in {len(found)} segments")
    return 0 if longest <= limit else 1


if __name__ == "__main__":
    raise SystemExit(main())
