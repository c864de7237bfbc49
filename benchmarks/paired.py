"""Two ways of running the same cycle, by turns within one process, until it is told which side of a limit they lie on.

A workload is loaded once, and neither way leaves anything on it.  The factor is the median over the rounds, each round
compared within itself; how many functions are called does not depend on what else the machine does.
"""

from __future__ import annotations

import cProfile
import gc
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.cases import Case
from benchmarks.child import everyday
from benchmarks.measure import in_turns, text_of
from benchmarks.tables import figure, head, row
from stromboli.framework.config.config import Config
from stromboli.narration.observe import Several
from stromboli.sim.runner import loaded

_SECONDS: Final = 60.0
"""After so many CPU seconds of cycles a workload has no further round."""
_FEWEST, _QUICK = 9, 2
"""How many rounds there are at least, and when quick."""

Way = partial[float]
"""A cycle with one of the configurations; answers with its CPU seconds."""


@dataclass(frozen=True)
class Comparison:
    """Two ways, each a change of the configuration, with their ``names`` and the ``limit`` of the factor."""

    names: tuple[str, str]
    ways: tuple[Callable[[Config], Config], Callable[[Config], Config]]
    limit: float

    def show(self, cases: Sequence[Case], quick: bool) -> bool:
        """Print the table; answers whether the second way costs no more than it may anywhere (always, when quick)."""
        first, second = self.names
        factor = f"{second} : {first}"
        names = ("workload", "rounds", f"{first}, CPU s", f"{second}, CPU s", factor, "with 95 % certainty")
        print("\n" + head([*names, f"calls, {factor}", "verdict"]))
        verdicts = [self._compared(case, quick) for case in cases]
        return all(verdicts)

    def _compared(self, case: Case, quick: bool) -> bool:
        with self.loaded(case) as ways:
            rounds = self._rounds(ways, quick)
            before, after = map(_calls, ways)
        factors = [second / first for first, second in rounds]
        factor, (low, high) = statistics.median(factors), interval(factors)
        over = factor > self.limit and not quick
        seconds = [figure(statistics.median(column), 3) for column in zip(*rounds, strict=True)]
        sure = f"{figure(low, 3)} to {figure(high, 3)}"
        verdict = "-" if quick else "ok" if not over else "over" if low > self.limit else "over by chance?"
        cells = [case.name, str(len(rounds)), *seconds, figure(factor, 3), sure, figure(after / before, 3), verdict]
        print(row(cells), flush=True)
        return not over

    @contextmanager
    def loaded(self, case: Case) -> Iterator[list[Way]]:
        """Both ways of a cycle on one state, in CPU seconds."""
        run = loaded(text_of(case.workload), observer=Several(everyday(0)))
        run.go()
        gc.collect()
        gc.freeze()  # what is loaded need not be looked through before every cycle
        try:
            yield [partial(run.again, way(run.config)) for way in self.ways]
        finally:
            gc.unfreeze()

    def _rounds(self, ways: Sequence[Way], quick: bool) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        spent = 0.0
        for times in in_turns(ways, 10_000):
            found.append(times)
            spent += sum(times)
            low, high = interval([second / first for first, second in found])
            if (quick and len(found) == _QUICK) or spent > _SECONDS:
                break
            if len(found) >= _FEWEST and not low <= self.limit <= high:
                break
        return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Between which of ``values`` the median of all that could be drawn lies, with 95 % certainty (binomial ranks)."""
    ranked, count = sorted(values), len(values)
    reach = 0.98 * math.sqrt(count)
    return ranked[max(0, math.floor(count / 2 - reach) - 1)], ranked[min(count - 1, math.ceil(count / 2 + reach))]


def _calls(way: Way) -> int:
    """How many functions a cycle calls."""
    profile = cProfile.Profile()
    profile.enable()
    way()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())
