"""Runs of tasks that limit each other: which rows they take, by the scores of each step."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.framework.engine.limited import _by_turns


class AtMost:
    """Each domain takes so many tasks."""

    def __init__(self, most: int) -> None:
        self.most, self.placed = most, dict[int, int]()
        self.rows, self.domains = np.ones(3, dtype=bool), np.array([0, 1, 2], dtype=np.intp)

    def admits(self, domain: int) -> bool:
        return self.placed.get(domain, 0) < self.most

    def place(self, domain: int) -> bool:
        self.placed[domain] = self.placed.get(domain, 0) + 1
        return False


LEVELS = [[10.0, 8.0, 1.0], [9.0, 7.0, 1.0], [2.0, 6.0, 1.0], [0.0, 5.0, 1.0]]
"""The scores of three rows once 0, 1, … tasks went there."""


@pytest.mark.parametrize(
    ("most", "count", "places"),
    [
        (9, 4, [0, 0, 1, 1]), (9, 6, [0, 0, 1, 1, 1, 1]), (1, 5, [0, 1, 2]), (2, 5, [0, 0, 1, 1, 2]),
        (9, 7, None),
    ],
)  # fmt: skip
def test_each_task_takes_the_best_row_as_the_ones_before_have_left_it(
    most: int, count: int, places: list[int] | None
) -> None:
    """A row that has taken as many as there are levels ends the run where tasks are left: what follows is not known."""
    limit = AtMost(most)
    assert _by_turns(LEVELS, limit.domains, limit, count) == places
