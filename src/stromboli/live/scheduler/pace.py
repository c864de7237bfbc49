"""When cycles begin: a period after the one before, and sooner where a pod arrives and nothing else is to be done."""

from __future__ import annotations

from collections.abc import Callable
from math import inf


class Pace:
    """When the next cycle is due; times are seconds of the event loop's clock.

    Cycles are a period apart.  After one that found nothing to do, the first pod or PodGroup that arrives is looked at
    at once, in an extra cycle: the next regular one is due when it was due anyway, so objects that are created one
    after the other do not wait longer, and there are two cycles in a period at most.  ``arrivals`` counts what has
    arrived so far.
    """

    def __init__(self, arrivals: Callable[[], int]) -> None:
        self._arrivals = arrivals
        self._seen = 0
        self._decided = -inf
        self._idle = self._is_extra = False

    def begun(self, now: float, period: float) -> None:
        """A cycle begins and sees all that has arrived so far; one that is not due yet is an extra one."""
        self._seen = self._arrivals()
        self._is_extra = now < self._decided + period

    def decided(self, now: float, *, idle: bool = False) -> None:
        """A cycle has decided at ``now``; ``idle``: it found nothing to do."""
        self._idle = idle and not self._is_extra
        if not self._is_extra:
            self._decided = now

    def seconds_left(self, now: float, period: float) -> float:
        """Seconds until the next cycle begins where cycles are ``period`` seconds apart; it is due from 0 on."""
        if self._idle and self._arrivals() != self._seen:
            return 0.0
        return self._decided + period - now
