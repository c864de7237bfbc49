"""How the cost of recording is measured: every call is made, and what measuring takes does not count."""

from __future__ import annotations

import pytest

from benchmarks.records.cost import Meter, seconds_of


def test_every_call_is_made_and_about_half_are_measured() -> None:
    meter, made = Meter(), list[int]()
    call = meter.by_turns(made.append, "hear")
    for number in range(1000):
        call(number)
    assert made == list(range(1000))
    assert meter.spent["hear called"] == 1000
    assert 400 < meter.spent["hear measured"] < 600


def test_what_empty_calls_take_is_taken_off_each_call() -> None:
    spent = {"hear called": 10, "hear measured": 4, "hear": 4 * 5e-6, "hear empty": 6 * 2e-6}
    assert seconds_of("hear", spent) == pytest.approx(10 * 3e-6)
