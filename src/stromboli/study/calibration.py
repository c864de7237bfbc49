"""By which factors predictions of starts must be stretched so that they cover what they say, and how often they did.

There is a second prediction beside them: how long the first job of the queue has waited already (:class:`HeadOfLine`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, exp, inf, log
from typing import Final

from stromboli.study.runtimes import Floats

LEVELS: Final = (0.5, 0.8, 0.95)
"""Which quantiles are told."""
DISCOUNT: Final = 0.97
"""What the losses before count with each further one."""

Quantiles = Sequence[float | None]
"""Seconds, one for each of :data:`LEVELS`, ascending; None where a quantile is infinite."""
TOLD: Final = LEVELS.index(0.8)
"""The one whose past answers show how far the present ones are to be trusted."""
SLACK: Final = 10.0
"""Seconds that are added to predictions and outcomes when they are compared: less than that does not matter."""
SCALE: Final = 300.0
"""Seconds that are added to both before one is divided by the other: factors of short times would be large."""
ENOUGH: Final = 20
"""Past predictions that it takes to calibrate by."""
STEP: Final = 0.3
"""By how much the logarithm of a factor moves with each answer."""
LARGEST: Final = 2.0
"""Logarithm of the largest factor; of the smallest one it is the negative.

Where jobs wait for days, hundreds are asked about before the first outcome comes, and all move the factor when theirs
does: without a bound it goes on long after it is large enough.
"""


def pinball(outcome: float, said: float, level: float) -> float:
    """The loss of a quantile (R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46(1), 1978)."""
    return max(level * (outcome - said), (level - 1) * (outcome - said))


def ascending(found: Sequence[float]) -> tuple[float | None, ...]:
    """``found``, each at least as large as those before it, infinite ones as None."""
    ordered = [max(found[: number + 1]) for number in range(len(found))]
    return tuple(None if one == inf else one for one in ordered)


class HeadOfLine:
    """Which of two predictions is told, level by level: the one that has lost less of late, in the queue and in all.

    The calibrated sketch knows no jobs that come later: where more come than end, it says too little for days, and too
    much once its factor has followed.  The wait of a queue's first job grows with the queue, and a job that joins a
    queue that moves steadily waits about as long (R. Ibrahim, W. Whitt, "Real-Time Delay Estimation Based on Delay
    History", M&SOM 11(3), 2009).

    As long as neither has lost more than the other, that is the sketch.  What the first job has waited is not
    calibrated: where it is told, its coverage is what it is.
    """

    def __init__(self) -> None:
        self._all = [(0.0, 0.0)] * len(LEVELS)
        self._queues: dict[str, list[tuple[float, float]]] = {}

    def or_else(self, said: Quantiles, queue: str, ahead: float | None) -> tuple[float | None, ...]:
        """The quantiles that are told of a job of ``queue``.

        ``said`` are those of the sketch; of the jobs before it in its queue the one that has waited longest has waited
        ``ahead`` seconds longer, None where there is none.
        """
        if ahead is None or queue not in self._queues:
            return tuple(said)
        losses = zip(said, self._all, self._queues[queue], strict=True)
        found = [ahead if all(other < mine for mine, other in both) else one for one, *both in losses]
        return ascending([inf if one is None else one for one in found])

    def add(self, said: Quantiles, queue: str, ahead: float | None, outcome: float) -> None:
        """A start of which was ``said`` so much came after ``outcome`` seconds."""
        if ahead is None:
            return
        for losses in (self._all, self._queues.setdefault(queue, [(0.0, 0.0)] * len(LEVELS))):
            for at, one in enumerate(said):
                if one is not None:
                    mine, other = (DISCOUNT * loss for loss in losses[at])
                    mine += pinball(outcome, one, LEVELS[at])
                    losses[at] = (mine, other + pinball(outcome, ahead, LEVELS[at]))


class Calibration:
    """How far the quantiles of predictions must be stretched, and what came of those that were.

    For each level there is a factor.  It begins as the level's quantile of outcome / prediction over the first
    :data:`ENOUGH` predictions: split-conformal prediction with a relative score.

    Waits of a cluster are not drawn from one distribution: load comes and goes.  So the factor follows what comes true
    (:meth:`came`): its logarithm goes up by :data:`STEP` x level with each outcome that exceeds what was said, and down
    by :data:`STEP` x (1 - level) with each that does not.  This is quantile tracking, whose long-run coverage is that
    of the level whatever the outcomes are, as long as logarithms of outcome / prediction are bounded
    (A. Angelopoulos, E. Candès, R. Tibshirani, "Conformal PID Control for Time Series Prediction", NeurIPS 2023).
    """

    def __init__(self) -> None:
        self._first: list[tuple[tuple[float, ...], float]] = []
        self._logs = [0.0] * len(LEVELS)
        self._told = [[0, 0] for _ in LEVELS]
        self._jobs = 0
        self.head_of_line = HeadOfLine()

    def __len__(self) -> int:
        return self._jobs

    def add(self, predicted: Floats, outcome: float) -> None:
        """A job that was predicted to start at these times, one a draw, has started after ``outcome`` seconds."""
        self._jobs += 1
        if self._jobs > ENOUGH:
            return
        self._first.append((tuple(quantile(predicted, level) for level in LEVELS), outcome))
        if self.is_ready:
            self._logs = [self._begin(number) for number in range(len(LEVELS))]

    def _begin(self, number: int) -> float:
        ratios = sorted(
            log((outcome + SCALE) / (raws[number] + SCALE)) for raws, outcome in self._first if raws[number] < inf
        )
        at = ceil(LEVELS[number] * (len(ratios) + 1))
        return ratios[min(at, len(ratios)) - 1] if ratios else 0.0

    @property
    def is_ready(self) -> bool:
        """Whether there are enough past predictions to calibrate by."""
        return len(self) >= ENOUGH

    @property
    def basis(self) -> str:
        """What answers rest on: by how many jobs they are calibrated, and how often P80 has come true."""
        if not self.is_ready:
            return "not calibrated"
        held, missed = self._told[TOLD]
        told = f"; P80 held {held / (held + missed):.0%} of {held + missed} times" if held + missed else ""
        return f"calibrated by {len(self)} jobs{told}"

    def came(self, number: int, covered: bool) -> None:
        """The calibrated quantile of level ``number`` covered an outcome, or did not."""
        moved = self._logs[number] + STEP * (LEVELS[number] - covered)
        self._logs[number] = min(max(moved, -LARGEST), LARGEST)

    def told_came(self, number: int, covered: bool) -> None:
        """The quantile of level ``number`` that was told covered an outcome, or did not."""
        self._told[number][not covered] += 1

    def quantiles(self, predicted: Floats) -> tuple[float | None, ...]:
        """The calibrated quantiles of a prediction; None where they are infinite."""
        return ascending([self._stretched(quantile(predicted, level), number) for number, level in enumerate(LEVELS)])

    def _stretched(self, raw: float, number: int) -> float:
        if not self.is_ready or raw == inf:
            return raw
        return max((raw + SCALE) * exp(self._logs[number]) - SCALE, 0.0)


class Open:
    """Quantiles of a start that has not come yet; ``came`` hears of each level once whether it covered the outcome."""

    def __init__(self, quantiles: Quantiles, came: Callable[[int, bool], None]) -> None:
        self._open = {number: one for number, one in enumerate(quantiles) if one is not None}
        self._came = came

    def waits(self, waited: float) -> None:
        """So long was waited by now: what is exceeded is told at once, as to tell it in the end favours short waits."""
        for number in [number for number, said in self._open.items() if waited > said + SLACK]:
            del self._open[number]
            self._came(number, False)

    def started(self, outcome: float) -> None:
        """The start came after so many seconds."""
        self.waits(outcome)
        for number in self._open:
            self._came(number, True)


def quantile(draws: Floats, level: float) -> float:
    """The least of ``draws``, which ascend, that a part ``level`` of them does not exceed."""
    return float(draws[max(ceil(level * len(draws)) - 1, 0)])
