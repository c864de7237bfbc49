"""Shares: which part of something an amount is, in the dimension where that part is largest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stromboli.model.resources.amounts import MIN


def divisors(whole: Sequence[float]) -> list[float]:
    """``whole`` by column, ready for :func:`dominant_share`: what there is nothing of becomes infinite."""
    return [float(amount) if amount >= MIN else math.inf for amount in whole]


def dominant_share(amounts: Iterable[float], parts_of: Iterable[float]) -> float:
    """The largest of ``amount / whole`` over the columns of which there is something, at least 0.

    ``parts_of`` comes from :func:`divisors`; columns beyond the shorter of the two do not count.  (Dominant resource
    fairness: Ghodsi et al., NSDI 2011.)
    """
    largest = 0.0
    for amount, whole in zip(amounts, parts_of, strict=False):
        part = amount / whole
        if part > largest:
            largest = part
    return largest
