"""A second prediction of a start: how long the first job of the queue has waited already.

The calibrated sketch knows no jobs that come later: where more come than end, it says too little for days, and too much
once its factor has followed.  The wait of a queue's first job grows with the queue, and a job that joins a queue that
moves steadily waits about as long (R. Ibrahim, W. Whitt, "Real-Time Delay Estimation Based on Delay History",
M&SOM 11(3), 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

LEVELS: Final = (0.5, 0.8, 0.95)
"""Which quantiles are told."""
DISCOUNT: Final = 0.97
"""What the losses before count with each further one."""

Quantiles = Sequence[float | None]
"""Seconds, one for each of :data:`LEVELS`, ascending; None where a quantile is infinite."""


def pinball(outcome: float, said: float, level: float) -> float:
    """The loss of a quantile (R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46(1), 1978)."""
    return max(level * (outcome - said), (level - 1) * (outcome - said))


def ascending(found: Sequence[float]) -> tuple[float | None, ...]:
    """``found``, each at least as large as those before it, infinite ones as None."""
    ordered = [max(found[: number + 1]) for number in range(len(found))]
    return tuple(None if one == inf else one for one in ordered)


class HeadOfLine:
    """Which of the two predictions is told, level by level: the one that has lost less of late.

    As long as neither has lost more than the other, that is the calibrated sketch's.
    """

    def __init__(self) -> None:
        self._losses = [(0.0, 0.0) for _ in LEVELS]

    def or_else(self, said: Quantiles, ahead: float | None) -> tuple[float | None, ...]:
        """The quantiles that are told.

        ``said`` are those of the sketch; the job that has waited longest in the queue has waited ``ahead`` seconds
        longer than the one that is asked about, None where no other has.
        """
        if ahead is None:
            return tuple(said)
        found = [ahead if other < mine else one for one, (mine, other) in zip(said, self._losses, strict=True)]
        return ascending([inf if one is None else one for one in found])

    def add(self, said: Quantiles, ahead: float | None, outcome: float) -> None:
        """A start of which was ``said`` so much came after ``outcome`` seconds."""
        if ahead is None:
            return
        for at, one in enumerate(said):
            if one is not None:
                mine, other = (DISCOUNT * loss for loss in self._losses[at])
                self._losses[at] = (
                    mine + pinball(outcome, one, LEVELS[at]),
                    other + pinball(outcome, ahead, LEVELS[at]),
                )
