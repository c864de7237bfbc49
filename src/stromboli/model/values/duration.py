"""Durations as Go writes them (``2h30m``, ``1.5s``, ``-1h``), kept as whole nanoseconds."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from stromboli.errors import DurationError

NANOSECOND: Final = 1
MICROSECOND: Final = 1000
MILLISECOND: Final = 1000 * MICROSECOND
SECOND: Final = 1000 * MILLISECOND
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_UNITS: Final = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # micro sign
    "μs": MICROSECOND,  # Greek mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_LARGEST: Final = 2**63 - 1
_LONGEST: Final = 1000


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """Nanoseconds of a duration: signed parts of a decimal number and a unit (``ns us ms s m h``), or plain ``0``.

    What is finer than a nanosecond is cut off.  Raises :class:`~stromboli.errors.DurationError`, also for what does
    not fit in 64 bits.
    """
    sign, rest = (text[0], text[1:]) if text[:1] in ("-", "+") else ("", text)
    if rest == "0":
        return 0
    if not rest or len(rest) > _LONGEST:
        raise DurationError(text, "it is empty" if not rest else f"it has more than {_LONGEST} characters")
    total = _sum_of_parts(text, rest)
    if total > _LARGEST + (sign == "-"):
        raise DurationError(text, "it is longer than 292 years")
    return -total if sign == "-" else total


def seconds(text: str) -> float:
    """Seconds of a duration; errors as :func:`parse`."""
    return parse(text) / SECOND


def format_duration(nanoseconds: int) -> str:
    """Text of a duration as Go prints it: ``2h30m0s``, ``1.5s``, ``250ms``, ``0s``."""
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if size == 0:
        return "0s"
    if size < SECOND:
        return sign + _short(size)
    minutes, rest = divmod(size, MINUTE)
    hours, minutes = divmod(minutes, 60)
    text = _decimal(rest, SECOND) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _sum_of_parts(text: str, rest: str) -> int:
    total = position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None:
            raise DurationError(text, f"{rest[position:]!r} is not a number with a unit")
        whole, decimals, unit = match.groups(default="")
        if not whole and not decimals:
            raise DurationError(text, f"{match[0]!r} has no number")
        if unit not in _UNITS:
            raise DurationError(text, f"{unit!r} is not a unit of time")
        total += int(whole + decimals) * _UNITS[unit] // 10 ** len(decimals)
        position = match.end()
    return total


def _short(size: int) -> str:
    """Text of less than a second, in the largest unit that makes it at least 1."""
    if size < MICROSECOND:
        return f"{size}ns"
    return _decimal(size, MILLISECOND) + "ms" if size >= MILLISECOND else _decimal(size, MICROSECOND) + "µs"


def _decimal(size: int, unit: int) -> str:
    """``size / unit`` (a power of ten) without trailing zeros."""
    whole, fraction = divmod(size, unit)
    digits = str(fraction).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
