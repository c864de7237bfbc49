"""Which of several best nodes: the first, or one that is drawn by a seed."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.framework.engine.classes import NEVER
from stromboli.framework.engine.placement import Ties


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("scores", [[], [NEVER], [NEVER, NEVER, NEVER]])
def test_without_a_candidate_there_is_no_best_row(scores: list[float], seed: int | None) -> None:
    assert Ties(seed).best(np.array(scores)) == -1


def test_without_a_seed_the_first_of_the_best_is_taken_and_a_search_begins_with_the_first_node() -> None:
    ties = Ties()
    assert [ties.best(np.array(scores)) for scores in ([1.0, 3.0, 3.0], [NEVER, 0.0], [2.0])] == [1, 1, 0]
    assert [ties.offset(nodes) for nodes in (0, 1, 9)] == [0, 0, 0]


def test_a_seed_draws_among_the_best_alone_and_the_same_again() -> None:
    scores = np.array([3.0, 1.0, 3.0, NEVER, 3.0])
    ties, again, other = Ties(1), Ties(1), Ties(2)
    drawn = [ties.best(scores) for _ in range(50)]
    assert drawn == [again.best(scores) for _ in range(50)] != [other.best(scores) for _ in range(50)]
    assert set(drawn) == {0, 2, 4}
    assert {ties.offset(4) for _ in range(50)} == {0, 1, 2, 3}
    assert ties.offset(0) == 0
