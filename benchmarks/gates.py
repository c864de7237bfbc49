"""What it costs every day that reservations can be kept: the same cycle with the feature gate off, and on.

A workload is loaded once; then cycles with the gate off and on take turns on that state, and leave it as it is.  The
factor is the median over the rounds, each round compared within itself; there are as many as it takes to tell on which
side of the limit it lies, within bounds.  How many functions are called does not depend on what else the machine does.
"""

from __future__ import annotations

import cProfile
import gc
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks.cases import Case
from benchmarks.child import everyday
from benchmarks.measure import in_turns, text_of
from benchmarks.tables import figure, head, row
from stromboli.framework.config.gates import PIPELINED_STATE
from stromboli.narration.observe import Several
from stromboli.sim.runner import loaded

LIMIT: Final = 1.03
"""How many times longer a cycle may take with the gate on."""

CASES: Final = ("gangs-5k", "hetero-1k", "full-5k", "running-single-5k", "preempt-1k", "reclaim-1k")
"""The cases that are looked at, by name."""

_COLUMNS: Final = (
    "workload",
    "rounds",
    "reservations not kept, CPU s",
    "kept, CPU s",
    "kept : not kept",
    "with 95 % certainty",
    "calls, kept : not kept",
    "verdict",
)
_SECONDS: Final = 60.0
"""After so many CPU seconds of cycles a workload has no further round."""
_FEWEST, _QUICK = 9, 2
"""How many rounds there are at least, and when quick."""

_Way = Callable[[], float]


def show(cases: Sequence[Case], quick: bool) -> bool:
    """Print the table; answers whether the gate costs no more than it may anywhere (always, when quick)."""
    print("\n" + head(_COLUMNS))
    fine = True
    for case in cases:
        with _ways(case) as ways:
            rounds = _rounds(ways, quick)
            off, on = map(_calls, ways)
        factors = [on / off for off, on in rounds]
        factor, (low, high) = statistics.median(factors), interval(factors)
        over = factor > LIMIT and not quick
        seconds = [figure(statistics.median(column), 3) for column in zip(*rounds, strict=True)]
        sure = f"{figure(low, 3)} to {figure(high, 3)}"
        verdict = "-" if quick else "ok" if not over else "over" if low > LIMIT else "over by chance?"
        cells = [case.name, str(len(rounds)), *seconds, figure(factor, 3), sure, figure(on / off, 3), verdict]
        print(row(cells), flush=True)
        fine &= not over
    return fine


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Between which of ``values`` the median of all that could be drawn lies, with 95 % certainty (binomial ranks)."""
    ranked, count = sorted(values), len(values)
    reach = 0.98 * math.sqrt(count)
    return ranked[max(0, math.floor(count / 2 - reach) - 1)], ranked[min(count - 1, math.ceil(count / 2 + reach))]


@contextmanager
def _ways(case: Case) -> Iterator[list[_Way]]:
    """A cycle with the gate off, and one with it on, in CPU seconds."""
    run = loaded(text_of(case.workload), observer=Several(everyday(0)))
    run.go()
    gc.collect()
    gc.freeze()  # what is loaded need not be looked through before every cycle
    try:
        yield [partial(run.again, f"{PIPELINED_STATE}={kept}") for kept in ("false", "true")]
    finally:
        gc.unfreeze()


def _rounds(ways: Sequence[_Way], quick: bool) -> list[tuple[float, ...]]:
    found: list[tuple[float, ...]] = []
    spent = 0.0
    for times in in_turns(ways, 10_000):
        found.append(times)
        spent += sum(times)
        low, high = interval([on / off for off, on in found])
        if (quick and len(found) == _QUICK) or spent > _SECONDS:
            break
        if len(found) >= _FEWEST and not low <= LIMIT <= high:
            break
    return found


def _calls(way: _Way) -> int:
    """How many functions a cycle calls."""
    profile = cProfile.Profile()
    profile.enable()
    way()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())
