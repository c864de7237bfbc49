"""How much a part tries, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

SLOW: Final = 5.0
"""Seconds after which something is said to hang."""
_SHOWN: Final = 20


@dataclass(frozen=True)
class Effort:
    """How much is tried: ``number`` trials from ``first`` on, drawn by ``seed``, or what goes into ``minutes``."""

    seed: int
    number: int
    minutes: float
    first: int = 0
    server: str = "embedded"
    """The kind of server where processes are tried."""

    def trials(self) -> Iterator[tuple[int, Random]]:
        """Numbers of trials, each with its own dice, so that one can be tried again alone."""
        end = time.monotonic() + 60 * self.minutes
        for number in range(self.first, self.first + self.number):
            if time.monotonic() > end:
                return
            yield number, Random(f"{self.seed}/{number}")


@dataclass
class Outcome:
    """What came of a part: how many were tried, what became of them, and what must not have happened."""

    name: str
    seed: int
    tried: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def violated(self, number: int, what: str) -> None:
        """Note that a trial was not survived."""
        self.violations.append(f"{self.name} {number}: {what}")

    @property
    def survived(self) -> int:
        """Trials after which nothing was wrong."""
        return self.tried - len(self.violations)

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        told = f"{self.name}: {self.tried} tried, {self.survived} survived, seed {self.seed}, {seconds:.0f} s ({ends})"
        return "\n".join([told, *self.violations[:_SHOWN]])
