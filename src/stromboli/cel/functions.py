"""Functions that Kubernetes adds to CEL: quantities, versions, texts, and lists.

Quantities and versions are maps, since the library knows no types of others.
Source: https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from stromboli.errors import QuantityError
from stromboli.model.resources import quantity

_SEMVER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_NANO: Final = 10**9
LONGEST_TEXT: Final = 1 << 20
"""Characters of a text that an expression makes."""
LONGEST_OF_DEVICES: Final = 256
"""Characters of one that a selector of devices makes; texts of devices have at most 64."""
MOST_PARTS: Final = 2000
"""Parts into which it splits one."""


def as_quantity(text: str) -> dict[str, str]:
    """A quantity as expressions hold it, in billionths.  Raises QuantityError."""
    return {"quantity": str(int(quantity.parse(text) * _NANO))}


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            read(text)
        except (QuantityError, ValueError):
            return False
        return True

    return holds


def _semver(text: str) -> dict[str, str]:
    _parts({"semver": text})
    return {"semver": text}


def _parts(value: dict[str, str]) -> tuple[object, ...]:
    """A version's parts in the order of precedence: a pre-release comes before its release."""
    match = _SEMVER.fullmatch(value["semver"])
    if match is None:
        raise ValueError(f"{value['semver']!r} is no semantic version")
    names = match[4].split(".") if match[4] else ()
    before = tuple((0, int(name), "") if name.isdigit() else (1, 0, name) for name in names)
    return int(match[1]), int(match[2]), int(match[3]), not before, before


def _order(value: dict[str, str]) -> Any:
    return int(value["quantity"]) if "quantity" in value else _parts(value)


def _compare(left: dict[str, str], right: dict[str, str]) -> int:
    one, other = _order(left), _order(right)
    return int(one > other) - int(one < other)


def _amount(value: dict[str, str] | int) -> int:
    return value * _NANO if isinstance(value, int) else int(value["quantity"])


def _index(where: Any, what: Any, start: int = 0) -> int:
    """Where in a text or a list something stands first, from ``start`` on; -1 for nowhere."""
    if isinstance(where, str):
        return where.find(what, start)
    return where.index(what) if what in where else -1


def _last_index(where: Any, what: Any) -> int:
    if isinstance(where, str):
        return where.rfind(what)
    return len(where) - 1 - where[::-1].index(what) if what in where else -1


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        found = text.split(by, most - 1 if most > 0 else -1)
    else:
        found = [*text[: most - 1], text[most - 1 :]] if 0 < most < len(text) else list(text)
    if len(found) > MOST_PARTS:
        raise ValueError(f"a text is split into {len(found)} parts, more than {MOST_PARTS}")
    return found


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    """The change of case of the letters A to Z alone."""
    return lambda text: "".join(change(sign) if sign.isascii() else sign for sign in text)


def _part(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"{start} to {end} is no part of a text of {len(text)} characters")
    return text[start:end]


def _joining(longest: int) -> Callable[..., str]:
    def joined(texts: list[str], between: str = "") -> str:
        _bound(sum(map(len, texts)) + len(between) * max(len(texts) - 1, 0), longest)
        return between.join(texts)

    return joined


def _replacing(longest: int) -> Callable[..., str]:
    def replaced(text: str, old: str, new: str, most: int = -1) -> str:
        times = text.count(old) if most < 0 else min(most, text.count(old))
        _bound(len(text) + times * (len(new) - len(old)), longest)
        return text.replace(old, new, most)

    return replaced


def _bound(length: int, longest: int) -> None:
    if length > longest:
        raise ValueError(f"a text of {length} characters is made, more than {longest}")


_AMOUNTS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": as_quantity,
    "isQuantity": _reads(quantity.parse),
    "semver": _semver,
    "isSemver": _reads(_semver),
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "add": lambda left, right: {"quantity": str(_amount(left) + _amount(right))},
    "sub": lambda left, right: {"quantity": str(_amount(left) - _amount(right))},
    "sign": lambda value: (_amount(value) > 0) - (_amount(value) < 0),
    "isInteger": lambda value: _amount(value) % _NANO == 0,
    "asInteger": lambda value: _amount(value) // _NANO,
    "asApproximateFloat": lambda value: float(Fraction(_amount(value), _NANO)),
    "major": lambda value: _parts(value)[0],
    "minor": lambda value: _parts(value)[1],
    "patch": lambda value: _parts(value)[2],
}
"""Of quantities and versions."""

_TEXTS: Final[Mapping[str, Callable[..., Any]]] = {
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "charAt": lambda text, place: _part(text, place, min(place + 1, len(text))),
    "split": _split,
    "substring": _part,
    "trim": str.strip,
    "reverse": lambda text: text[::-1],
    "indexOf": _index,
    "lastIndexOf": _last_index,
    "sum": sum,
    "min": min,
    "max": max,
    "isSorted": lambda values: all(one <= other for one, other in pairwise(values)),
}
"""Of texts and lists; none makes one longer."""


def _functions(longest: int) -> Mapping[str, Callable[..., Any]]:
    return {**_AMOUNTS, **_TEXTS, "join": _joining(longest), "replace": _replacing(longest)}


FUNCTIONS: Final = _functions(LONGEST_TEXT)
"""Those of policies and of schemas."""

DEVICE_FUNCTIONS: Final = _functions(LONGEST_OF_DEVICES)
"""Those of selectors, which are asked about each device."""
