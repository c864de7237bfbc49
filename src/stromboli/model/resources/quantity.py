"""Kubernetes quantities (``500m``, ``4Gi``, ``1e3``): reading them exactly, writing them in canonical form.

The rules are those of Kubernetes' own reader, written from its documented grammar:

* a sign, digits with at most one point (``5.`` and ``.5`` are fine; a missing number reads as zero), a suffix;
* decimal suffixes ``n u m`` none ``k M G T P E``, binary ``Ki Mi Gi Ti Pi Ei``, exponents ``e3``, ``E-2``;
* anything finer than a nano is rounded away from zero to the next nano;
* with a binary suffix the magnitude is capped at 2^63-1; decimal amounts keep their value.

Values are exact: fractions or integers, never floats.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from stromboli.errors import QuantityError

Quantity: TypeAlias = str | float | Fraction
"""What counts as a quantity: its text, a number from JSON or YAML, or an exact amount."""

MAX_INT64: Final = 2**63 - 1
"""Largest amount that Kubernetes' integer accessors can give."""

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_NAMES: Final = {0: "", **{power: suffix for suffix, power in _BINARY.items()}}

_GRAMMAR: Final = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[+-]?[0-9]*+)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_NANO: Final = 10**9
_WIDEST_EXPONENT: Final = 4000
"""Beyond this an amount is certainly capped, or certainly rounded to one nano; keeps a hostile exponent cheap."""
_LONGEST_NUMBER: Final = 4000
"""More digits than this are refused, since reading them takes time that grows with the square of the length."""

_CACHED: Final = 1 << 16


def parse(value: Quantity) -> Fraction:
    """The exact amount of a quantity, e.g. ``parse("500m") == Fraction(1, 2)``.

    ``value`` is the text, a number as JSON and YAML may hold it (a float counts as its shortest decimal text), or an
    exact amount, which comes back as it is.  Raises :class:`QuantityError` for anything else.
    """
    if type(value) is int or isinstance(value, Fraction):
        return Fraction(value)
    return _read(_text_of(value))


def whole(value: Quantity) -> int:
    """The amount in units, rounded away from zero and held within ±(2^63-1), as Kubernetes' ``Value()`` rounds."""
    if type(value) is int:
        return _clamp(value)
    if isinstance(value, Fraction):
        return _clamp(_away_from_zero(value))
    return _scaled(_text_of(value), 1)


def milli(value: Quantity) -> int:
    """The amount in thousandths, rounded away from zero and held within ±(2^63-1), as ``MilliValue()`` rounds."""
    if type(value) is int:
        return _clamp(1000 * value)
    if isinstance(value, Fraction):
        return _clamp(_away_from_zero(1000 * value))
    return _scaled(_text_of(value), 1000)


def format_milli(amount: int) -> str:
    """Canonical decimal text of ``amount`` thousandths: ``2070 -> "2070m"``, ``1000 -> "1"``, ``10**6 -> "1k"``."""
    return _format_decimal(amount, -3)


def format_whole(amount: int) -> str:
    """Canonical decimal text of ``amount`` units: ``110 -> "110"``, ``5000 -> "5k"``."""
    return _format_decimal(amount, 0)


def format_bytes(amount: int) -> str:
    """Canonical binary text of ``amount`` bytes: ``18944 * 2**20 -> "18944Mi"``.

    Below 1024 Kubernetes writes the decimal form, so ``1000 -> "1k"``; 1025 stays ``"1025"``.
    """
    if -1024 < amount < 1024:
        return _format_decimal(amount, 0)
    power = 0
    while amount % 1024 == 0 and power < 60:
        amount //= 1024
        power += 10
    return f"{amount}{_BINARY_NAMES[power]}"


def saturating_add(left: int, right: int) -> int:
    """Sum of two counts, held within ±(2^63-1) so that a limit is never passed by wrapping."""
    return _clamp(left + right)


def saturating_multiply(left: int, right: int) -> int:
    """Product of two counts, held within ±(2^63-1)."""
    return _clamp(left * right)


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise QuantityError(value, f"a {type(value).__name__} is neither a text nor a number")
    return repr(value)


@lru_cache(maxsize=_CACHED)
def _scaled(text: str, per_unit: int) -> int:
    """Amount times ``per_unit``, rounded away from zero."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text) * per_unit
    amount = _read(text) * per_unit
    return _clamp(_away_from_zero(amount))


@lru_cache(maxsize=_CACHED)
def _read(text: str) -> Fraction:
    match = _GRAMMAR.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(text, "it must be a number with an optional suffix")
    sign, digits, decimals, suffix = match.groups(default="")
    if len(digits) + len(decimals) > _LONGEST_NUMBER:
        raise QuantityError(text[:20] + "...", f"it has more than {_LONGEST_NUMBER} digits")
    number = Fraction(int(digits + decimals or "0"), 10 ** len(decimals))
    amount = _to_nano(_with_suffix(number, suffix, text))
    return -amount if sign == "-" else amount


def _with_suffix(number: Fraction, suffix: str, text: str) -> Fraction:
    """``number`` (not negative) in the unit that ``suffix`` names; ``text`` is the whole quantity, for the error."""
    if suffix in _BINARY:
        return min(number * (1 << _BINARY[suffix]), Fraction(MAX_INT64))
    if suffix in _DECIMAL:
        return number * _power_of_ten(_DECIMAL[suffix])
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[1]) > 12:
        raise QuantityError(text, f"{suffix!r} is not a known suffix")
    return number * _power_of_ten(max(-_WIDEST_EXPONENT, min(int(exponent[1]), _WIDEST_EXPONENT)))


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def _to_nano(amount: Fraction) -> Fraction:
    """``amount`` (not negative), rounded up to whole nanos."""
    if _NANO % amount.denominator == 0:
        return amount
    return Fraction(_away_from_zero(amount * _NANO), _NANO)


def _away_from_zero(amount: Fraction) -> int:
    size = -(-abs(amount.numerator) // amount.denominator)
    return size if amount >= 0 else -size


def _clamp(amount: int) -> int:
    return max(-MAX_INT64, min(amount, MAX_INT64))


def _format_decimal(amount: int, power: int) -> str:
    """Text of ``amount * 10**power`` with the largest suffix that needs no fraction."""
    if amount == 0:
        return "0"
    while amount % 1000 == 0:
        amount //= 1000
        power += 3
    return f"{amount}{_DECIMAL_NAMES.get(power, f'e{power}')}"
