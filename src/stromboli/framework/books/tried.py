"""Moves that are only tried: what they add to the holdings of queues, kept in a task's cycle state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from stromboli.framework.books.cycle_state import CycleState
from stromboli.model.resources.axes import Vector, add_to


class TriedMoves:
    """The tried moves that one plugin counts, under ``key`` of the cycle state.

    What is kept there, {queue: what is added to its holdings, by column}, is never changed in place, so clones may
    share it.
    """

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def move(self, state: CycleState, queues: Iterable[str], vector: Vector, times: int) -> None:
        """Count ``times * vector`` to each of ``queues``."""
        moves = dict(self._kept(state))
        for queue in queues:
            moves[queue] = total = list(moves.get(queue, ()))
            add_to(total, vector, times)
        state.write(self.key, moves)

    def holdings(self, state: CycleState, queue: str, held: Sequence[int]) -> list[int]:
        """What ``queue`` would hold with the tried moves, ``held`` being what it holds without them."""
        total = list(held)
        add_to(total, self._kept(state).get(queue, ()))
        return total

    def _kept(self, state: CycleState) -> Mapping[str, Sequence[int]]:
        return cast("Mapping[str, Sequence[int]]", state.get(self.key, {}))
