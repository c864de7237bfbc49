"""The bars of records as lines of a table: what was asked for, and what a record that is made here shows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.records import eta
from benchmarks.records.cost import sizes
from benchmarks.records.day import recorded
from benchmarks.records.replayed import Timed, whole
from stromboli.builtin import full_registry
from stromboli.journal.segments import Segment
from stromboli.study.calibration import LEVELS
from stromboli.study.closed_loop import ClosedLoop
from stromboli.study.recorded.history import History

Line = tuple[str, str, str]
SEED: Final = 99
"""Of a day that nothing else looks at."""
P80: Final = LEVELS.index(0.8)


def records(hours: float) -> Iterator[Line]:
    """So many hours of :mod:`benchmarks.records.day`, replayed and simulated."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        folder = Path(name)
        recorded(folder, hours, SEED, lambda *_given, **_named: None)
        found = list(whole([folder]))
        yield from _replayed(found, hours)
        stored, _, news = map(sum, zip(*map(sizes, _folders(found)), strict=True))
        yield "news in a record", "100 B an event", f"{stored / max(news, 1):.0f}"
        yield _closed_loop(_folders(found)[0])


def _folders(found: list[Segment]) -> list[Path]:
    return list(dict.fromkeys(segment.path.parent for segment in found))


def _replayed(found: list[Segment], hours: float) -> Iterator[Line]:
    equal = cycles = 0
    span, began = 0.0, time.process_time()
    for segment in found:
        replay = Timed()
        replay.read(segment)
        equal, cycles = equal + replay.equal, cycles + len(replay.times)
        span += replay.times[-1] - replay.times[0] if replay.times else 0.0
    yield f"{hours:g} h of 200 nodes recorded and replayed, {cycles} cycles", "100 % equal", f"{equal / cycles:.2%}"
    yield "replay", "100 x real time", f"{span / (time.process_time() - began):.0f}"


def _closed_loop(folder: Path) -> Line:
    registry = full_registry("")
    history = History(folder, registry).read()
    error = ClosedLoop(history, history.config, registry).model_error
    return f"closed loop against its own record, {error.jobs} jobs", "95 % within 2 periods", f"{error.within:.1%}"


def forecasts(trace: Path, nodes: str, days: float) -> Iterator[Line]:
    """Predictions on so many days of a trace that were calibrated by what the time before has taught."""
    answers, runs, began = eta.answered(trace, nodes, days, 300.0, SEED)
    averaged = eta.averages(answers, runs, began)
    counted = [(one, said) for one, said in zip(answers, averaged, strict=True) if one.calibrated]
    found = eta.truth([one for one, _ in counted], [said for _, said in counted], P80)
    yield f"ETA, P80 of {found.given} predictions with a number on {nodes}", "covers 75-85 %", f"{found.covers:.1%}"
    ratio = f"{found.loss / found.averaged:.2f}" if found.averaged else "-"
    yield "ETA, pinball loss of P80 over a moving average's", "0.8", ratio
