"""Numbers for what rows of the node table hold, so that equal amounts are found without comparing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

KEPT: Final = 1 << 14
"""How many states have numbers; when there are more, all are forgotten, and later ones get new numbers."""


class Change(NamedTuple):
    """Amounts that come to one row, and by the number of its state before the number of its state with them."""

    amounts: npt.NDArray[np.int64]
    after: dict[int, int]


class RowStates:
    """The number of each row's state; rows, or moments, with equal numbers have equal amounts.

    ``journal`` is the table's: a row that it lists may have changed.  ``amounts`` are its columns, shapes (any, rows).
    """

    __slots__ = ("_amounts", "_journal", "_known", "_last", "_numbers", "_seen")

    def __init__(self, journal: list[int], amounts: Sequence[npt.NDArray[np.int64]]) -> None:
        self._journal, self._amounts = journal, amounts
        self._known: dict[int, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._seen = self._last = 0

    def of(self, rows: Iterable[int]) -> list[int]:
        """The number of each of ``rows``."""
        if self._seen < len(self._journal):
            self._catch_up()
        known = self._known
        return [known.get(row) or self._find(row) for row in rows]  # each class asks for them

    def follow(self, row: int, after: dict[int, int]) -> None:
        """``row``, which the journal is about to list, has changed; ``after`` is what is known of the :class:`Change`.

        A state from which the change has been seen before is followed without looking at amounts.
        """
        if self._seen < len(self._journal):
            self._catch_up()
        self._seen += 1
        if (before := self._known.pop(row, 0)) == 0:
            return
        if number := after.get(before):
            self._known[row] = number
        else:
            if len(after) >= KEPT:
                after.clear()
            after[before] = self._find(row)

    def _catch_up(self) -> None:
        for touched in self._journal[self._seen :]:
            self._known.pop(touched, None)
        self._seen = len(self._journal)

    def _find(self, row: int) -> int:
        amounts = b"".join([part[:, row].tobytes() for part in self._amounts])
        number = self._numbers.get(amounts)
        if number is None:
            if len(self._numbers) >= KEPT:
                self._numbers.clear()
            self._last += 1
            number = self._numbers[amounts] = self._last
        self._known[row] = number
        return number
