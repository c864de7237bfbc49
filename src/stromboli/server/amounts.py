"""Quantities as the server keeps them: the canonical text of what was written."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from stromboli.model.resources.quantity import parse

_DECIMAL: Final = (
    (18, "E"),
    (15, "P"),
    (12, "T"),
    (9, "G"),
    (6, "M"),
    (3, "k"),
    (0, ""),
    (-3, "m"),
    (-6, "u"),
    (-9, "n"),
)
_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+$")


@lru_cache(maxsize=1 << 14)
def canonical(text: str | float) -> str:
    """The text in the form that Kubernetes gives it: no fraction, the largest suffix of the same family.

    Raises :class:`stromboli.errors.QuantityError` for what is no quantity.
    """
    amount = parse(text)
    if isinstance(text, str) and text.endswith("i") and abs(amount) >= 1024:
        return _binary(amount)
    if isinstance(text, str) and _EXPONENT.search(text):
        return _exponent(amount)
    return _decimal(amount)


def _binary(amount: Fraction) -> str:
    for power, suffix in _BINARY:
        if amount % (1 << power) == 0:
            return f"{amount / (1 << power)}{suffix}"
    return _decimal(amount)


def _decimal(amount: Fraction) -> str:
    if not amount:
        return "0"
    for power, suffix in _DECIMAL:
        scaled = amount / Fraction(10) ** power
        if scaled.denominator == 1:
            return f"{scaled}{suffix}"
    return str(amount)


def _exponent(amount: Fraction) -> str:
    for power, _ in _DECIMAL:
        scaled = amount / Fraction(10) ** power
        if amount and scaled.denominator == 1:
            return f"{scaled}e{power}" if power else str(scaled)
    return _decimal(amount)
