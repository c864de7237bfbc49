"""How the cost of recording is measured: every call is made, and what measuring takes does not count."""

from __future__ import annotations

import time
from itertools import count

import pytest

from benchmarks.records.cost import Meter, seconds_of
from stromboli.cluster.rim import Cut


def test_every_call_is_made_and_about_half_are_timed() -> None:
    meter, made = Meter(), list[int]()
    call = meter.sampled(made.append, "hear")
    for number in range(1000):
        call(number)
    assert made == list(range(1000))
    assert meter.spent["hear called"] == 1000
    assert 400 < meter.spent["hear measured"] < 600


def test_cycles_that_begin_are_all_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, made = count(), list[object]()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(now)))
    meter = Meter()
    call = meter.sampled(made.append, "hear")
    for _ in range(20):
        call(Cut(0.0, 0, 0))
    assert (len(made), meter.spent["loop"]) == (20, 20.0)
    assert "hear called" not in meter.spent


def test_reading_the_clock_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that goes on by a second whenever it is read, and by seven while the call lasts."""
    now = count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(now)))
    meter = Meter()
    call = meter.sampled(lambda: [next(now) for _ in range(7)], "hear")
    for _ in range(100):
        call()
    assert seconds_of("hear", meter.spent) == pytest.approx(700)


@pytest.mark.parametrize(
    ("called", "measured", "spent", "empty", "expected"),
    [
        pytest.param(10, 4, 4 * 5e-6, 6 * 2e-6, 10 * 3e-6, id="empty calls are taken off"),
        pytest.param(0, 0, 0.0, 0.0, 0.0, id="no event came"),
        pytest.param(2, 0, 0.0, 4e-6, 0.0, id="none was drawn"),
        pytest.param(2, 2, 8e-6, 0.0, 8e-6, id="all were drawn"),
    ],
)
def test_seconds_of_all_calls(called: int, measured: int, spent: float, empty: float, expected: float) -> None:
    counted = {"hear called": called, "hear measured": measured, "hear": spent, "hear empty": empty}
    assert seconds_of("hear", counted) == pytest.approx(expected)
