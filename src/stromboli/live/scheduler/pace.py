"""When cycles begin: a period after the one before, and sooner where something arrives at a scheduler without work."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """When the next cycle is due; times are seconds of the event loop's clock.

    Cycles are a period apart.  After one that found nothing to do, the first pod or PodGroup that arrives is looked at
    at once, by a cycle beside these: the next of them is due when it was due anyway, so objects that are created one
    after the other do not wait longer, and there are two cycles in a period at most.  ``arrivals`` counts what has
    arrived so far.
    """

    def __init__(self, arrivals: Callable[[], int]) -> None:
        self._arrivals = arrivals
        self._seen = 0
        self._decided = 0.0
        self._idle = self._is_early = False

    def begun(self) -> None:
        """A cycle begins: what has arrived so far is its business."""
        self._seen = self._arrivals()

    def ended(self, now: float, *, idle: bool = False) -> None:
        """A cycle has decided at ``now``; ``idle``: it found nothing to do."""
        self._idle = idle and not self._is_early
        if not self._is_early:
            self._decided = now
        self._is_early = False

    def left(self, now: float, period: float) -> float:
        """Seconds until the next cycle begins where cycles are ``period`` seconds apart; none are left from 0 on."""
        left = self._decided + period - now
        if left > 0 and self._idle and self._arrivals() != self._seen:
            self._is_early, left = True, 0.0
        return left
