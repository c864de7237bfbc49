"""Quantiles of starts cover what they say, and of two predictions the one is told that has lost less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.study.calibration import (
    DISCOUNT,
    ENOUGH,
    LARGEST,
    LEVELS,
    SCALE,
    SLACK,
    STEP,
    Calibration,
    HeadOfLine,
    Open,
    Quantiles,
)  # fmt: skip


@pytest.mark.parametrize("change", [0.995, 1.0, 1.005])
def test_quantiles_cover_what_they_say_also_of_waits_that_become_shorter_and_longer(change: float) -> None:
    dice, calibration = np.random.default_rng(5), Calibration()
    covered = list[list[bool]]()
    for number in range(400):
        outcome = 300.0 * change**number * float(dice.exponential(1.0))
        predicted = np.sort(dice.exponential(600.0, 64))
        if calibration.is_ready:
            said = [one or 0.0 for one in calibration.quantiles(predicted)]
            covered.append([outcome <= one + SLACK for one in said])
            for level, one in enumerate(covered[-1]):
                calibration.came(level, covered=one)
        calibration.add(predicted, outcome)
    assert len(calibration) == 400
    assert np.abs(np.mean(covered, axis=0) - LEVELS).max() < 0.05


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_of_any_outcomes_a_part_is_covered_that_the_moves_of_the_factor_bound(covered: list[bool]) -> None:
    """The law of quantile tracking: level - part covered is how far the logarithm has moved over the steps taken."""
    calibration, predicted = Calibration(), np.full(4, 600.0)
    for _ in range(ENOUGH):
        calibration.add(predicted, 600.0)
    for one in covered:
        calibration.came(0, covered=one)
    p50 = calibration.quantiles(predicted)[0]
    assert p50 is not None
    moved = np.log((p50 + SCALE) / (600.0 + SCALE))
    if p50 and np.abs(np.cumsum([STEP * (0.5 - one) for one in covered])).max() < LARGEST:
        assert np.mean(covered) == pytest.approx(0.5 - moved / (STEP * len(covered)), abs=1e-6)


def test_late_misses_stretch_no_further_than_seven_times() -> None:
    """Hundreds of predictions may have been made before the first of them is known to have been too low."""
    calibration, predicted = Calibration(), np.full(4, 700.0)
    for _ in range(ENOUGH):
        calibration.add(predicted, 700.0)
    for _ in range(300):
        calibration.came(1, covered=False)
    assert calibration.quantiles(predicted)[1] == pytest.approx(1000.0 * np.exp(2.0) - SCALE)


def test_the_first_factor_is_that_of_the_first_predictions() -> None:
    calibration = Calibration()
    for number in range(ENOUGH):
        assert calibration.basis == "not calibrated"
        assert calibration.quantiles(np.full(4, 600.0)) == (600.0,) * 3
        calibration.add(np.full(4, 600.0), 600.0 * (number + 1))
    ratios = [(600.0 * (number + 1) + SCALE) / (600.0 + SCALE) for number in range(ENOUGH)]
    expected_quantiles = [(1200.0 + SCALE) * ratios[place] - SCALE for place in (10, 16, 19)]
    assert calibration.quantiles(np.full(4, 1200.0)) == pytest.approx(expected_quantiles)


def test_answers_say_how_often_such_answers_have_come_true() -> None:
    calibration = Calibration()
    for _ in range(ENOUGH):
        calibration.add(np.full(4, 600.0), 600.0)
    assert calibration.basis == "calibrated by 20 jobs"
    for covered in (True, True, False):
        calibration.told_came(1, covered=covered)
        calibration.told_came(0, covered=False)
    assert calibration.basis == "calibrated by 20 jobs; P80 held 67% of 3 times"


def test_a_quantile_that_is_exceeded_is_known_before_the_wait_ends() -> None:
    """Once the wait ends it counts no more."""
    told = list[tuple[int, bool]]()
    quantiles = Open((50.0, 100.0, None), lambda number, covered: told.append((number, covered)))
    quantiles.waits(50.0 + SLACK)
    assert told == []
    quantiles.waits(51.0 + SLACK)
    assert told == [(0, False)]
    quantiles.started(100.0 + SLACK)
    assert told == [(0, False), (1, True)]


SAID: Quantiles = (300.0, 600.0, None)


@pytest.mark.parametrize(
    ("outcomes", "ahead", "told"),
    [
        ([], 3900.0, SAID),
        ([3900.0], 3900.0, (3900.0, 3900.0, None)),
        ([3900.0], 500.0, (500.0, 500.0, None)),
        ([300.0], 3900.0, SAID),
        ([3900.0], None, SAID),
        ([3900.0] + [600.0] * 5, 3900.0, SAID),  # nine tenths of what was lost long ago are forgotten
        ([2000.0], 3900.0, (300.0, 3900.0, None)),  # too long is the smaller fault of a P80 only
    ],
    ids=["no outcome", "head of line", "a shorter queue", "sketch", "first in its queue", "of late", "level by level"],
)
def test_the_prediction_is_told_that_has_lost_less(outcomes: list[float], ahead: float | None, told: Quantiles) -> None:
    head = HeadOfLine()
    for outcome in outcomes:
        head.add(SAID, "q", 3900.0, outcome)
    assert head.or_else(SAID, "q", ahead) == told
    assert head.or_else(SAID, "other", ahead) == SAID


def test_losses_of_long_ago_count_less() -> None:
    head, losses = HeadOfLine(), [0.0, 0.0]
    outcomes = [3900.0, *[300.0] * 40]
    for outcome in outcomes:
        head.add((300.0, 300.0, 300.0), "q", 3900.0, outcome)
        losses = [DISCOUNT * one + abs(outcome - said) / 2 for one, said in zip(losses, (300.0, 3900.0), strict=True)]
        assert (head.or_else((300.0,) * 3, "q", 3900.0)[0] == 3900.0) == (losses[1] < losses[0])


def test_the_head_of_the_line_is_told_where_it_was_better_in_the_queue_and_in_all() -> None:
    head = HeadOfLine()
    head.add(SAID, "q", 3900.0, 3900.0)
    head.add(SAID, "other", 3900.0, 300.0)
    head.add(SAID, "other", 3900.0, 300.0)
    assert [head.or_else(SAID, queue, 3900.0)[0] for queue in ("q", "other")] == [300.0, 300.0]
    head.add(SAID, "q", 3900.0, 3900.0)
    head.add(SAID, "q", 3900.0, 3900.0)
    assert [head.or_else(SAID, queue, 3900.0)[0] for queue in ("q", "other")] == [3900.0, 300.0]


def test_a_quantile_that_is_told_is_not_below_a_lower_one() -> None:
    head = HeadOfLine()
    head.add((0.0, 4000.0, 4000.0), "q", 4000.0, 4000.0)
    assert head.or_else((100.0, 500.0, 5000.0), "q", 900.0) == (900.0, 900.0, 5000.0)
