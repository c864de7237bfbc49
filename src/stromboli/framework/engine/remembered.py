"""What nodes have said, by their amounts: a node with amounts that were seen before needs no new question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.model.resources.row_states import Change
from stromboli.model.table import NodeTable

KEPT_STATES: Final = 1024
"""How many states a class remembers; it forgets all of them when there are more."""

MOST_ROWS: Final = 32
"""Up to so many rows are looked up one by one; for more, asking all of them at once is cheaper."""

WORTH_IT: Final = 4
"""A class begins to remember when it is renewed so many times: most are not, and their states would never be needed."""


class Said(NamedTuple):
    """What one row answers: whether the class is admitted there, now, the two sums of scores, and their total."""

    open: bool
    now: bool
    score: float
    batch: float
    best_now: float


class Remembered:
    """The answers of one class by the state of a row: its amounts, and the answers that never change.

    ``fixed`` are those, one entry a row.
    """

    __slots__ = ("_fixed", "_kinds", "_number", "_said", "_table", "_times")

    def __init__(self, table: NodeTable, fixed: Sequence[npt.NDArray[Any]]) -> None:
        self._table, self._fixed = table, fixed
        self._kinds: list[int] | None = None
        self._number = 1
        self._said: dict[int, Said] = {}
        self._times = 0

    def applies(self, rows: int) -> bool:
        """Whether looking up so many rows pays; it is asked once for each renewal."""
        self._times += 1
        return self._times > WORTH_IT and rows <= MOST_ROWS

    def of(self, rows: Sequence[int]) -> list[Said | None]:
        """What a row in the state of each of ``rows`` has said, where that is known."""
        return list(map(self._said.get, self._states(rows)))

    def note(self, row: int, said: Said) -> None:
        """Remember what ``row`` says as it is."""
        if len(self._said) >= KEPT_STATES:
            self._said.clear()
        (state,) = self._states((row,))
        self._said[state] = said

    def ahead(self, row: int, changes: Iterable[Change]) -> Iterator[Said]:
        """What ``row`` will say after each of ``changes``, as far as a row has been in such states before."""
        ((state,), (here,)) = self._table.states.of((row,)), self._states((row,))
        number = self._number
        kind = here - state * number if number > 1 else 0
        for change in changes:
            state = change.after.get(state, 0)
            if (said := self._said.get(state * number + kind)) is None or not state:
                return
            yield said

    def _states(self, rows: Sequence[int]) -> Sequence[int]:
        """A number for the kind of each of ``rows`` and its amounts."""
        if self._kinds is None:
            self._kinds = _kinds(self._fixed, len(self._table))
            self._number = max(self._kinds, default=0) + 1
        states, kinds, number = self._table.states.of(rows), self._kinds, self._number
        return states if number == 1 else [state * number + kinds[row] for state, row in zip(states, rows, strict=True)]


def _kinds(fixed: Sequence[npt.NDArray[Any]], rows: int) -> list[int]:
    """A number for each row, equal for rows with the same entry in every one of ``fixed``."""
    kinds = np.zeros(rows, dtype=np.int64)
    for column in fixed:
        values, place = np.unique(column, return_inverse=True)
        if len(values) > 1:
            _, kinds = np.unique(kinds * len(values) + place, return_inverse=True)
    return kinds.tolist()
