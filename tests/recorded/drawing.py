"""Draws that are the same in every version of Python: a seed and ``random()``, and nothing else of the module."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws by a seed; Python promises equal numbers from equal seeds only for ``random()``."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def number(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``, both included."""
        return least + int(self._random() * (most - least + 1))

    def one(self, of: Sequence[T]) -> T:
        """One of these."""
        return of[int(self._random() * len(of))]

    def some(self, of: Sequence[T], most: int) -> list[T]:
        """Up to ``most`` different ones, in their order."""
        left = list(range(len(of)))
        taken = [left.pop(int(self._random() * len(left))) for _ in range(min(self.number(0, most), len(left)))]
        return [of[place] for place in sorted(taken)]

    def one_in(self, many: int) -> bool:
        """True one time in so many."""
        return self._random() * many < 1
