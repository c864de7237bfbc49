"""Durations are read and written as Go does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import DurationError
from stromboli.model.values import duration

S = duration.SECOND


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * S),
        ("+5s", 5 * S),
        ("-1h", -3600 * S),
        ("2h30m", 9000 * S),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", S),
        ("1h2m3.004005006s", 3723_004_005_006),
        ("10ns", 10),
        ("11us", 11_000),
        ("12µs", 12_000),
        ("12μs", 12_000),
        ("13ms", 13_000_000),
        ("1.5ns", 1),
        ("1m1m", 120 * S),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_parse(text: str, nanoseconds: int) -> None:
    assert duration.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "3",
        "s",
        ".s",
        "+.s",
        "1h-1m",
        "1d",
        "1 s",
        " 1s",
        "1s ",
        "abc",
        "1,5s",
        "1..5s",
        "9223372036854775808ns",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        duration.parse(text)
    assert caught.value.value == text


def test_overlong_text_is_refused() -> None:
    with pytest.raises(DurationError, match="characters"):
        duration.parse("1s" * 1000)


def test_seconds() -> None:
    assert duration.seconds("1m30.5s") == 90.5


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245 * S, "4m5s"),
        (245 * S + 1_000_000, "4m5.001s"),
        (18367 * S + 1_000_000, "5h6m7.001s"),
        (480 * S + 1, "8m0.000000001s"),
        (9000 * S, "2h30m0s"),
        (-3600 * S, "-1h0m0s"),
    ],
)
def test_format(nanoseconds: int, text: str) -> None:
    assert duration.format_duration(nanoseconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back(nanoseconds: int) -> None:
    assert duration.parse(duration.format_duration(nanoseconds)) == nanoseconds
