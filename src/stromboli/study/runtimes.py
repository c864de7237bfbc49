"""How long jobs will run: their own estimates, or draws from similar jobs that have ended; otherwise unknown.

Of jobs that have run longer than those alike did, only the age tells how long they go on: half of those that reach an
age reach twice of it.  That was found of processes (M. Harchol-Balter, A. Downey, "Exploiting Process Lifetime
Distributions for Dynamic Load Balancing", ACM TOCS 15(3), 1997): the part that lives longer than T falls as 1 / T.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.errors import StromboliError
from stromboli.model.values import duration

EXPECTED: Final = "stromboli.dev/expected-runtime"
"""Annotation of a pod or a PodGroup: how long it will run, as its user expects, such as ``90m``."""
LEAST: Final = 5
"""Ended jobs that it takes to draw from them; as many must have run at least as long as the one that is asked about.

Where they have not, as many must have ended in its queue for its age to be a basis."""
KEPT: Final = 2000
"""Ended jobs that are remembered of each sort."""

Floats = NDArray[np.float64]


class Sort(NamedTuple):
    """What makes jobs alike: their queue, their owner with the stem of the name, and how many pods they have."""

    queue: str
    owner: str
    size: int

    def likenesses(self) -> Iterator[tuple[object, ...]]:
        """From the closest likeness to the loosest one."""
        yield self.queue, self.owner, self.size
        yield self.queue, self.owner
        yield self.queue, self.size
        yield (self.queue,)


class Runtimes:
    """Runtimes of ended jobs, in seconds, by likeness."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], list[float]] = {}

    def add(self, sort: Sort, runtime: float) -> None:
        """A job has ended."""
        for likeness in sort.likenesses():
            known = self._known.setdefault(likeness, [])
            insort(known, runtime)
            if len(known) > KEPT:
                del known[len(known) // 2]  # the middle is known best

    def left(self, sort: Sort, elapsed: float, draws: int, dice: np.random.Generator) -> Floats | None:
        """How long a job that has run for ``elapsed`` seconds goes on, drawn so many times; None without a basis."""
        for likeness in sort.likenesses():
            known = self._known.get(likeness, [])
            first = bisect_right(known, elapsed)
            if len(known) - first >= LEAST:
                return dice.choice(np.asarray(known[first:]), draws) - elapsed
        if elapsed > 0 and len(self._known.get((sort.queue,), ())) >= LEAST:
            return elapsed * (1.0 / (1.0 - dice.random(draws)) - 1.0)
        return None


def expected(annotations: Mapping[str, str]) -> float | None:
    """The user's own estimate in seconds; None where there is none that can be read."""
    try:
        return duration.seconds(annotations[EXPECTED])
    except (KeyError, StromboliError, ValueError):
        return None
