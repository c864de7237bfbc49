"""A queue's deserved amount, worked out once into whole numbers that its holdings can be compared with at once.

Holdings are whole numbers, so each tolerant comparison with a deserved amount turns at one whole number a column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from stromboli.fairness.share import divisors, dominant_share
from stromboli.model.resources.amounts import MIN, le
from stromboli.model.resources.axes import PODS
from stromboli.model.resources.resource import INFINITE

NO_LIMIT = 1 << 100
"""Stands for a limit that no amount reaches."""


class Thresholds:
    """What ``deserved`` (by column) means for holdings, lists of whole numbers by column of at least its length.

    limits  most that a column may come to when it is asked for; pods are never limited
    floors  (column, least amount that counts as the whole of it), for columns with a deserved amount
    tops    most that counts as no more than deserved
    """

    __slots__ = ("_parts_of", "floors", "limits", "tops")

    def __init__(self, deserved: Sequence[float]) -> None:
        self._parts_of = divisors(deserved)
        self.limits = [NO_LIMIT if amount >= INFINITE else math.floor(amount) for amount in deserved]
        self.limits[PODS] = NO_LIMIT
        self.tops = [NO_LIMIT if amount >= INFINITE else _top(amount) for amount in deserved]
        self.floors = [(column, _floor(amount)) for column, amount in enumerate(deserved) if amount >= MIN]

    def share(self, held: Sequence[int]) -> float:
        """The largest part of a deserved column that ``held`` is."""
        return dominant_share(held, self._parts_of)

    def covers(self, held: Sequence[int], more: Sequence[int]) -> bool:
        """Whether no column that ``more`` asks for exceeds its limit with it; exact, without tolerance."""
        for have, need, limit in zip(held, more, self.limits, strict=False):
            if need and have + need > limit:
                return False
        return True

    def is_limited(self, column: int) -> bool:
        """Whether there is a limit to what a column may come to."""
        return column < len(self.limits) and self.limits[column] < NO_LIMIT

    def times(self, held: Sequence[int], more: Sequence[int], most: int) -> int:
        """How often ``more`` can be added, one after the other, while :meth:`covers` holds; ``most`` at most."""
        if most == 1:
            return int(self.covers(held, more))
        for have, need, limit in zip(held, more, self.limits, strict=False):
            if need:
                most = min(most, (limit - have) // need)
        return max(most, 0)

    def lacking(
        self, asked: Sequence[int], held: Sequence[int], coming: Sequence[int], spare: Sequence[int]
    ) -> list[int]:
        """Columns in which ``asked``, with what is held and what is coming less what is spare, exceeds its limit.

        Only what is asked for is looked at; exact, without tolerance.
        """
        rows = enumerate(zip(asked, held, coming, spare, self.limits, strict=False))
        return [column for column, (more, have, due, free, limit) in rows if more and more + have + due - free > limit]

    def leaves_any(self, held: Sequence[int], more: Sequence[int]) -> bool:
        """Whether any column that ``more`` asks for, pods aside, is at most deserved with it (with tolerance)."""
        rows = enumerate(zip(held, more, self.tops, strict=False))
        return any(need and column != PODS and have + need <= most for column, (have, need, most) in rows)

    def concerns(self, asked: Sequence[int]) -> bool:
        """Whether anything is deserved of what ``asked`` asks for, pods included."""
        return any(column < len(asked) and asked[column] for column, _ in self.floors)

    def reached(self, held: Sequence[int]) -> bool:
        """Whether ``held`` is all of what is deserved, in every column (with tolerance)."""
        for column, least in self.floors:  # noqa: SIM110 - asked before every placement, and all() takes twice as long
            if held[column] < least:
                return False
        return True

    def exceeded(self, held: Sequence[int]) -> bool:
        """Whether ``held`` is more than deserved in any column (with tolerance)."""
        for have, most in zip(held, self.tops, strict=False):  # noqa: SIM110 - as for :meth:`reached`
            if have > most:
                return True
        return False


@lru_cache(maxsize=4096)
def thresholds(deserved: tuple[float, ...]) -> Thresholds:
    """The thresholds of ``deserved`` (by column), which few queues see change from cycle to cycle."""
    return Thresholds(deserved)


def _floor(amount: float) -> int:
    """The least whole number that ``amount`` is at most, within the tolerance."""
    below = math.floor(amount)
    return below if le(amount, below) else below + 1


def _top(amount: float) -> int:
    """The largest whole number that is at most ``amount``, within the tolerance."""
    below = math.floor(amount)
    return below + 1 if le(below + 1, amount) else below
