"""Quantities are read and written exactly as Kubernetes does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import QuantityError
from stromboli.model.resources import quantity

MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("2", 2),
        ("+3", 3),
        ("-1.5", Fraction(-3, 2)),
        ("500m", Fraction(1, 2)),
        ("250u", Fraction(1, 4000)),
        ("7n", Fraction(7, 10**9)),
        ("3k", 3000),
        ("3M", 3 * 10**6),
        ("3G", 3 * 10**9),
        ("3T", 3 * 10**12),
        ("3P", 3 * 10**15),
        ("3E", 3 * 10**18),
        ("1Ki", 2**10),
        ("1.5Mi", 3 * 2**19),
        ("4Gi", 2**32),
        ("2Ti", 2**41),
        ("2Pi", 2**51),
        ("2Ei", 2**61),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E+3", 1000),
        ("12e-2", Fraction(3, 25)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1.Gi", 2**30),
        ("0010", 10),
        ("m", 0),
        ("-", 0),
    ],
)
def test_parse(text: str, amount: Fraction | int) -> None:
    assert quantity.parse(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            " ",
            " 1",
            "1 ",
            "1.1.M",
            "1+1.0M",
            "0.1mi",
            "0.1am",
            "aoeu",
            ".5i",
            "1i",
            "-3.01i",
            "-3.01e-",
            "1e",
            "--1",
        ],
        *["1,5", "1K", "1kB", "0x10", "1_000", "1e1.5", "NaN", "inf", "٣", "1\n", "1e9999999999999"],
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity.parse(text)
    assert caught.value.value == text
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("value", [None, True, [], {}, b"1", float("nan"), float("inf")])
def test_other_types_are_refused(value: object) -> None:
    for read in (quantity.parse, quantity.whole, quantity.milli):
        with pytest.raises(QuantityError):
            read(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "whole", "milli"),
    [
        (3, 3, 3000),
        (0.5, 1, 500),
        (1e-7, 1, 1),
        (1e20, MAX, MAX),
        ("500m", 1, 500),
        ("1.5", 2, 1500),
        ("-1.5", -2, -1500),
        ("0.4m", 1, 1),
        ("1500u", 1, 2),
        ("1e15", 10**15, 10**18),
        ("99999999999999999999", MAX, MAX),
        ("-99999999999999999999", -MAX, -MAX),
        (Fraction(1, 3), 1, 334),
        (Fraction(-1, 3), -1, -334),
        (2**70, MAX, MAX),
    ],
)
def test_accessors_round_away_from_zero_and_saturate(value: quantity.Quantity, whole: int, milli: int) -> None:
    assert quantity.whole(value) == whole
    assert quantity.milli(value) == milli


def test_finer_than_nano_is_rounded_up() -> None:
    assert quantity.parse("0.1n") == Fraction(1, 10**9)
    assert quantity.parse("-1.5n") == Fraction(-2, 10**9)
    assert quantity.parse("1e-100000000") == Fraction(1, 10**9)
    assert quantity.parse("0e-100000000") == 0


def test_binary_amounts_are_capped_decimal_ones_are_not() -> None:
    assert quantity.parse("8Ei") == MAX
    assert quantity.parse("-100Ei") == -MAX
    assert quantity.parse("100E") == 10**20


def test_very_long_numbers_are_refused() -> None:
    assert quantity.parse("9" * 4000) == int("9" * 4000)
    with pytest.raises(QuantityError, match="4000 digits"):
        quantity.parse("9" * 4001)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (2070, "2070m"), (1000, "1"), (1500, "1500m"), (10**6, "1k"), (-250, "-250m"), (MAX, f"{MAX}m")],
)
def test_format_milli(amount: int, text: str) -> None:
    assert quantity.format_milli(amount) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *[(0, "0"), (500, "500"), (1000, "1k"), (1024, "1Ki"), (1025, "1025"), (18944 * 2**20, "18944Mi")],
        *[(-2048, "-2Ki"), (2**30, "1Gi"), (2**60, "1Ei"), (2**70, "1024Ei"), (5 * 10**9, "5000000000")],
    ],
)
def test_format_bytes(amount: int, text: str) -> None:
    assert quantity.format_bytes(amount) == text


def test_beyond_the_largest_suffix_an_exponent_is_written() -> None:
    assert quantity.format_whole(10**18) == "1E"
    assert quantity.format_whole(10**21) == "1e21"


@given(st.integers(-(2**62), 2**62))
def test_what_is_written_reads_back(amount: int) -> None:
    assert quantity.parse(quantity.format_milli(amount)) == Fraction(amount, 1000)
    assert quantity.parse(quantity.format_whole(amount)) == amount
    assert quantity.parse(quantity.format_bytes(amount)) == amount
    assert quantity.milli(quantity.format_milli(amount)) == amount


@given(st.integers(0, 10**12), st.integers(0, 9), st.sampled_from(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]))
def test_decimal_texts_mean_what_the_fraction_says(digits: int, places: int, suffix: str) -> None:
    power = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}[suffix]
    text = f"{digits // 10**places}.{digits % 10**places:0{places}d}{suffix}" if places else f"{digits}{suffix}"
    exact = Fraction(digits, 10**places) * Fraction(10) ** power
    read = quantity.parse(text)
    assert exact <= read < exact + Fraction(1, 10**9)
    assert quantity.whole(text) == min(-(-read.numerator // read.denominator), MAX)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP", max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        amount = quantity.parse(text)
    except QuantityError:
        return
    assert min(abs(amount), Fraction(MAX)) <= abs(quantity.whole(text))


def test_saturating_arithmetic() -> None:
    assert quantity.saturating_add(2, 3) == 5
    assert quantity.saturating_add(MAX, 1) == MAX
    assert quantity.saturating_multiply(4, 5) == 20
    assert quantity.saturating_multiply(2**40, 2**40) == MAX
