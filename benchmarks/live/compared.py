"""Two trees of sources under the same load, by turns: what one took of the other."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.live.load import Load
from benchmarks.live.run import Outcome
from benchmarks.tables import figure, head, row

Run = Callable[[Load, Path | None], Outcome]
"""A run with the scheduler and controllers of a tree, None for this one."""

FIGURES: Final[dict[str, Callable[[Outcome], float]]] = {
    "bound/s": lambda one: one.rate,
    "scheduler ms/pod": lambda one: one.per_pod("scheduler"),
    "controllers ms/pod": lambda one: one.per_pod("controllers"),
    "apiserver ms/pod": lambda one: one.per_pod("apiserver"),
    "all ms/pod": lambda one: 1000 * one.running.cpu() / one.load.pods,
    "requests/pod": lambda one: one.running.requests.total() / one.load.pods,
    "all ms/pod until quiet": lambda one: 1000 * one.quiet.cpu() / one.load.pods,
    "requests/pod until quiet": lambda one: one.quiet.requests.total() / one.load.pods,
}


def compare(loads: Sequence[Load], rounds: int, run: Run, other: Path) -> None:
    """Run each load ``rounds`` times with each tree, ``other`` first in every second round, and print the medians."""
    found = {load.name: [_turn(load, number, run, other) for number in range(rounds)] for load in loads}
    print("\n" + head(("load", "figure", "other tree", "this tree", "this : other, median", "rounds")))
    for name, pairs in found.items():
        for what, of in FIGURES.items():
            theirs, ours = ([of(pair[side]) for pair in pairs] for side in (0, 1))
            factors = [our / their for our, their in zip(ours, theirs, strict=True)]
            cells = (statistics.median(theirs), statistics.median(ours), statistics.median(factors))
            print(row([name, what, *map(figure, cells), ", ".join(map(figure, factors))]))


def _turn(load: Load, number: int, run: Run, other: Path) -> tuple[Outcome, Outcome]:
    """The other tree's outcome and ours."""
    if number % 2:
        theirs, ours = run(load, other), run(load, None)
    else:
        ours, theirs = run(load, None), run(load, other)
    return theirs, ours
