"""How well domains, and nodes by their domains, suit a pod or a part of a job; from 0 to 1, ties above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from stromboli.framework.books.domains import NOWHERE, Domains
from stromboli.model.resources.axes import Vector, amount_at
from stromboli.model.table import Ints, Rows

Floats = npt.NDArray[np.float64]

FULL: Final = 1.0
"""What a tier counts for a node that lies in no domain of it."""

MOST_TIERS: Final = 1000
"""So many tiers without a domain are counted; they raise the scores of all nodes alike."""


def fullness(domains: Domains, request: Vector, weights: Mapping[int, int]) -> Floats:
    """How full each domain would be with ``request`` in it: the mean of its resources, ``weights`` by column.

    0 where one of them would not fit, or where none counts.
    """
    total, fits = np.zeros(len(domains)), np.ones(len(domains), dtype=bool)
    asked = {column: weight for column, weight in weights.items() if amount_at(request, column) > 0}
    for column, weight in asked.items():
        after, offered = domains.used[column] + request[column], domains.alloc[column]
        fits &= after <= offered
        total += weight * (after / np.maximum(offered, 1))
    weight = sum(asked.values())
    return np.where(fits, total / weight, 0.0) if weight else np.zeros(len(domains))


class TierWeights:
    """Weights of the tiers for pods without a network topology: each is ``fading`` times the one below it.

    ``absent`` is the weight of the numbers between the lowest and the highest tier that no domain bears.
    """

    def __init__(self, tiers: Sequence[int], fading: float) -> None:
        low, high = tiers[0], tiers[-1]
        with np.errstate(over="ignore", divide="ignore"):
            self.of = {tier: float(np.power(fading, float(tier - 1))) for tier in tiers}
            between = (tier for tier in range(low, min(high, low + MOST_TIERS)) if tier not in self.of)
            self.absent = sum(float(np.power(fading, float(tier - 1))) for tier in between)
        self.total = sum(self.of.values()) + self.absent
        self.usable = bool(np.isfinite(self.total)) and self.total > 0


def by_fullness(domains: Domains, full: Floats, weights: TierWeights, rows: Rows) -> Floats:
    """The score of ``rows`` by the ``fullness`` of their domains, tier by tier."""
    total = np.full(len(rows), weights.absent * FULL)
    full = np.append(full, FULL)  # found at NOWHERE
    for tier, weight in weights.of.items():
        total += weight * full[domains.at_tier[tier][rows]]
    return total / weights.total


def by_distance(domains: Domains, lies_in: str) -> Floats:
    """How close each domain is to ``lies_in``, shape (domains + 1,): 1 for itself, less the wider both lie in.

    The last entry, 0, is that of rows without a domain.
    """
    tiers, infos = list(domains.at_tier), domains.infos
    low, high = tiers[0], tiers[-1]
    found, own = np.zeros(len(domains) + 1), domains.index.get(lies_in, NOWHERE)
    chain = [] if own == NOWHERE else [around for around in domains.up[:, own].tolist() if around != NOWHERE]
    for around in reversed(chain):  # what lies closer is said last
        inside = np.flatnonzero((domains.up == around).any(axis=0))
        found[inside] = (high - infos[around].tier) / max(high - low, 1)
    if chain:
        found[own] = 1.0
    return found


def break_tie(scores: Floats, shares: Floats) -> Floats:
    """``scores``, ``shares`` added to the best ones if they are several."""
    best = scores == scores.max(initial=0.0)
    return scores + np.where(best, shares, 0.0) if np.count_nonzero(best) > 1 else scores


def counts(domains: Domains, rows: Ints | Rows) -> Ints:
    """How many of ``rows`` lie in each of the narrowest domains, shape (domains + 1,); the last entry is 0."""
    held = domains.narrowest[rows] if len(rows) else np.empty(0, dtype=np.intp)
    found = np.zeros(len(domains) + 1, dtype=np.int64)
    np.add.at(found, held[held != NOWHERE], 1)
    return found
