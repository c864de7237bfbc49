"""Kubernetes' scores of a node by its amounts, and how raw scores of several nodes become 0 to 100.

Whole numbers throughout; divisions drop the fraction.  Amounts are in the units of the node table, and products stay
within 64 bits up to 80 PiB.  Each score stands here for one node and for arrays; both agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

import numpy as np

from stromboli.filters.columns import Bools, Floats
from stromboli.model.table import Ints

MAX_SCORE: Final = 100
"""The best score of a node."""


# -- Shares of cpu and memory ----------------------------------------------------------------------------------------


def least_allocated(offered: Sequence[int], wanted: Sequence[int]) -> int:
    """Mean of ``(offered - wanted) * 100 / offered`` over the resources offered; 0 where more is wanted than offered.

    ``wanted`` counts the pods on the node and the new one, with stand-ins for containers that ask for nothing.
    """
    total = known = 0
    for a, w in zip(offered, wanted, strict=True):
        if a > 0:
            known += 1
            total += (a - w) * MAX_SCORE // a if w < a else 0
    return total // known if known else 0


def most_allocated(offered: Sequence[int], wanted: Sequence[int]) -> int:
    """Mean of ``wanted * 100 / offered``, at most 100 each, over the resources offered; arguments as above."""
    shares = [min(w, a) * MAX_SCORE // a for a, w in zip(offered, wanted, strict=True) if a > 0]
    return sum(shares) // len(shares) if shares else 0


def least_allocated_rows(offered: Ints, wanted: Ints) -> Ints:
    """:func:`least_allocated` for arrays of shape (resources, rows).  Shape (rows,)."""
    return _mean_share(offered, np.maximum(offered - wanted, 0))


def most_allocated_rows(offered: Ints, wanted: Ints) -> Ints:
    """:func:`most_allocated` for arrays of shape (resources, rows).  Shape (rows,)."""
    return _mean_share(offered, np.minimum(wanted, offered))


def _mean_share(offered: Ints, part: Ints) -> Ints:
    there = offered > 0
    if there.all():  # nearly always; the general way below gives the same
        quick: Ints = np.add.reduce(part * MAX_SCORE // offered) // len(offered)
        return quick
    shares = np.where(there, part * MAX_SCORE // np.maximum(offered, 1), 0)
    mean: Ints = shares.sum(axis=0) // np.maximum(there.sum(axis=0), 1)
    return mean


# -- Balance ---------------------------------------------------------------------------------------------------------


def balanced_allocation(offered: Sequence[int], requested: Sequence[int], asked: Sequence[int], before: int) -> int:
    """50 + (50 + evenness with the pod - evenness without it) / 2.

    ``requested`` is what the pods on the node ask for and ``asked`` what the new one does, resource by resource,
    without stand-ins; ``before`` is the :func:`evenness` without it.
    """
    wanted = [have + more for have, more in zip(requested, asked, strict=True)]
    return 50 + (50 + evenness(offered, wanted) - before) // 2


def evenness(offered: Sequence[int], requested: Sequence[int]) -> int:
    """100 times (1 - standard deviation of the fractions in use), the fraction dropped; of the resources offered."""
    fractions = [r / a if r < a else 1.0 for a, r in zip(offered, requested, strict=True) if a > 0]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = sqrt(sum([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - deviation) * MAX_SCORE)


def balanced_allocation_rows(offered: Ints, requested: Ints, asked: Sequence[int], before: Ints | None = None) -> Ints:
    """:func:`balanced_allocation` for arrays of shape (resources, rows), two or three resources.  Shape (rows,).

    Without ``before`` both evennesses are computed in one pass.
    """
    if before is None:
        both = np.array((asked, (0,) * len(asked)), dtype=np.int64)[:, :, None]
        after, before = evenness_rows(offered, requested + both)
    else:
        after = evenness_rows(offered, requested + np.array(asked, dtype=np.int64)[:, None])
    score: Ints = 50 + (50 + after - before) // 2
    return score


def evenness_rows(offered: Ints, requested: Ints) -> Ints:
    """:func:`evenness` for arrays of shape (resources, rows), two or three resources.  Shape (rows,).

    ``requested`` may be several such arrays, with one more axis before, which the result then has, too.
    """
    there = offered > 0
    if there.all():  # mostly; the general way below gives the same
        fractions = np.minimum(requested / offered, 1.0)
        deviation = _half_difference(fractions) if len(offered) == 2 else _deviation(fractions)
    else:
        deviation = _deviation_of_some(np.minimum(requested / np.where(there, offered, 1), 1.0), there)
    evenness: Ints = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return evenness


def _deviation_of_some(fractions: Floats, there: Bools) -> Floats:
    """Standard deviation of those of two or three rows that are ``there``, 0 for one or none."""
    known = there.sum(axis=0)
    deviation: Floats = np.where(known == 2, _half_range(fractions, there), 0.0)
    return np.where(known == 3, _deviation(fractions), deviation) if len(there) == 3 else deviation


def _half_difference(fractions: Floats) -> Floats:
    """Standard deviation of two rows."""
    half: Floats = np.abs(fractions[..., 0, :] - fractions[..., 1, :]) / 2
    return half


def _half_range(fractions: Floats, there: Bools) -> Floats:
    """Standard deviation of the two rows that are ``there``; no number of use where there is another number of them."""
    high = np.where(there, fractions, -np.inf).max(axis=-2)
    low = np.where(there, fractions, np.inf).min(axis=-2)
    half: Floats = (high - low) / 2
    return half


def _deviation(fractions: Floats) -> Floats:
    """Standard deviation of three rows; added up in their order, as floating-point sums depend on it."""
    first, second, third = fractions[..., 0, :], fractions[..., 1, :], fractions[..., 2, :]
    mean = (first + second + third) / 3
    squares = (first - mean) * (first - mean) + (second - mean) * (second - mean) + (third - mean) * (third - mean)
    spread: Floats = np.sqrt(squares / 3)
    return spread


# -- From raw scores to 0..100, entry by entry -----------------------------------------------------------------------


def share_of_greatest(raw: Ints, high: int) -> Ints:
    """``raw * 100 / high``: more is better; ``raw`` itself where ``high`` is 0."""
    return raw * MAX_SCORE // high if high else raw


def rest_of_greatest(raw: Ints, high: int) -> Ints:
    """``100 - raw * 100 / high``: less is better; 100 for all where ``high`` is 0."""
    return MAX_SCORE - share_of_greatest(raw, high)


def between_extremes(raw: Ints, low: int, high: int) -> Ints:
    """``100 * (raw - low) / (high - low)`` in floating point, the fraction dropped; 0 for all where both are equal."""
    if high <= low:
        return np.zeros(len(raw), dtype=np.int64)
    share: Ints = (float(MAX_SCORE) * ((raw - low).astype(np.float64) / float(high - low))).astype(np.int64)
    return share


def beside_extremes(raw: Ints, low: int, high: int) -> Ints:
    """``100 * (high + low - raw) / high``: less is better; 100 for all where ``high`` is 0."""
    if not high:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64)
    return MAX_SCORE * (high + low - raw) // high
