"""What metrics and the log cost: the same cycle without either, with both at level 0, and with both at level 3.

All run in one process and take turns, so a machine that grows slower meanwhile slows all of them; factors are medians
over the rounds, each round compared within itself.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TextIO

from benchmarks.cases import Case
from benchmarks.measure import in_turns, last_cycle, text_of
from benchmarks.tables import figure, head, row
from stromboli.metrics.logs import LogObserver
from stromboli.metrics.prometheus import MetricsObserver, new_registry
from stromboli.narration.observe import SILENT, Observer, Several
from stromboli.sim.runner import run_scenario

LEVEL_3_LIMIT: Final = 1.15
"""How many times longer a cycle may take with the log at level 3 than at level 0."""

CASES: Final = ("gangs-5k", "hetero-1k", "full-5k")
"""The cases that are looked at, by name."""

_ROUNDS, _QUICK_ROUNDS = 5, 2


def _watched(level: int) -> Callable[[TextIO], Observer]:
    return lambda log: Several([MetricsObserver(new_registry()), LogObserver(log, level)])


SETTINGS: Final[tuple[tuple[str, Callable[[TextIO], Observer]], ...]] = (
    ("none", lambda log: SILENT),
    ("level 0", _watched(0)),
    ("level 3", _watched(3)),
)
"""The observers, by the name of the column."""


def show(cases: Sequence[Case], quick: bool) -> bool:
    """Print the table; answers whether level 3 is within its limit everywhere (always, when quick)."""
    print("\n" + head(["workload", "none CPU s", "level 0 CPU s", "level 3 CPU s", "0 : none", "3 : 0", "verdict"]))
    fine = True
    for case in cases:
        ways = [partial(_seconds, text_of(case.workload), setting) for setting in range(len(SETTINGS))]
        rounds = list(in_turns(ways, _QUICK_ROUNDS if quick else _ROUNDS))
        metrics, log = (statistics.median(r[k + 1] / r[k] for r in rounds) for k in (0, 1))
        over = log > LEVEL_3_LIMIT and not quick
        seconds = [figure(statistics.median(column)) for column in zip(*rounds, strict=True)]
        verdict = "-" if quick else "over" if over else "ok"
        print(row([case.name, *seconds, figure(metrics), figure(log), verdict]), flush=True)
        fine &= not over
    return fine


def _seconds(text: bytes, setting: int) -> float:
    with _log() as log:
        return last_cycle(run_scenario(text, observer=SETTINGS[setting][1](log)))


@contextmanager
def _log() -> Iterator[TextIO]:
    with tempfile.TemporaryFile("w", encoding="utf-8") as log:
        yield log
