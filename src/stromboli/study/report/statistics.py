"""Confidence over seeds: intervals of means, and differences of two configurations seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple

T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t: what 95 % of values lie within, for 1 to 30 degrees of freedom."""
NORMAL: Final = 1.96
"""The same for more of them."""


class Interval(NamedTuple):
    """A mean, and how far the true one may lie from it with 95 % confidence; None: one value tells nothing of that."""

    mean: float
    half: float | None

    @property
    def differs(self) -> bool:
        """Whether zero lies outside."""
        return self.half is not None and abs(self.mean) > self.half

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if not self.half else f"{self.mean:.4g} ± {self.half:.2g}"


def interval(values: Sequence[float]) -> Interval:
    """The mean of values and its interval of confidence, t x s / √n (Student)."""
    if len(values) < 2:
        return Interval(fmean(values) if values else 0.0, None)
    degrees = len(values) - 1
    t = T[degrees - 1] if degrees <= len(T) else NORMAL
    return Interval(fmean(values), t * stdev(values) / sqrt(len(values)))


def paired(new: Sequence[float], old: Sequence[float]) -> Interval:
    """The mean difference new - old of values that belong together, by seed."""
    return interval([one - other for one, other in zip(new, old, strict=True)])
