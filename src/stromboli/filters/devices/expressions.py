"""What CEL expressions say of devices, compiled once each.  Their length and cost are bounded: tenants write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

from stromboli.errors import QuantityError
from stromboli.model.claims import Attribute, Device
from stromboli.model.resources import quantity

LONGEST: Final = 10 * 1024
"""Characters of an expression; an API server stores no longer ones."""
MOST_STEPS: Final = 10_000
"""Steps that macros may take over lists: a list has at most half as many entries as its expression has characters."""
DEEPEST: Final = 100
"""Brackets within brackets."""

_MARKS: Final = re.compile(r"\.(all|exists|exists_one|map|filter)\s*\(|[(\[{]|[)\]}]")
_DOMAIN: Final = re.compile(r"""\.(attributes|capacity)\s*\[\s*(["'])([^"']*)\2\s*\]""")
_SEMVER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_NANO: Final = 10**9

Answer = bool | str
"""Whether a device satisfies an expression, or what is wrong with the expression."""


class Expression:
    """One compiled expression; ``problem`` says why it cannot be used."""

    def __init__(self, text: str) -> None:
        self.problem = _too_costly(text)
        self._domains = {(where, name) for where, _, name in _DOMAIN.findall(text)}
        if not self.problem:
            import cel  # only where a claim has an expression: it takes a quarter of a second

            self._context = partial(cel.Context, functions=_FUNCTIONS)
            try:
                self._program = cel.compile(text)
            except ValueError as error:
                self.problem = f"CEL compile error: {str(error).splitlines()[0]}"

    def of(self, device: dict[str, Any]) -> Answer:
        """What it says of a device, given as :func:`seen` shows it."""
        if self.problem:
            return self.problem
        missing = [(where, name) for where, name in self._domains if name not in device[where]]
        if missing:  # Kubernetes shows an unknown domain as an empty one
            device = {**device, "attributes": {**device["attributes"]}, "capacity": {**device["capacity"]}}
            for where, name in missing:
                device[where][name] = {}
        try:
            found = self._program.execute(self._context({"device": device}))
        except KeyError as error:
            return f"CEL runtime error: no such key: {error.args[0]}"
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, QuantityError) as error:
            return f"CEL runtime error: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        return found if isinstance(found, bool) else "CEL runtime error: the expression yields no bool"


@lru_cache(maxsize=4096)
def expression(text: str) -> Expression:
    """The expression ``text``, compiled when it is first asked for."""
    return Expression(text)


def seen(driver: str, device: Device) -> dict[str, Any]:
    """A device as expressions see it: attributes and capacities by domain, their driver's where they name none."""
    found: dict[str, Any] = {"driver": driver, "attributes": {}, "capacity": {}}
    found["allowMultipleAllocations"] = device.allow_multiple_allocations
    for name, attribute in device.attributes.items():
        _put(found["attributes"], driver, name, _value(attribute))
    for name, capacity in device.capacity.items():
        _put(found["capacity"], driver, name, _quantity(str(capacity.value)))
    return found


def _put(domains: dict[str, dict[str, Any]], driver: str, name: str, value: object) -> None:
    domain, between, own = name.rpartition("/")
    domains.setdefault(domain if between else driver, {})[own] = value


def _value(attribute: Attribute) -> object:
    if attribute.version is not None:
        return {"semver": attribute.version}
    return next((each for each in (attribute.int_, attribute.bool_, attribute.string) if each is not None), "")


def _too_costly(text: str) -> str:
    """Why an expression may take too long, or too deep; empty if it may not."""
    if len(text) > LONGEST:
        return f"CEL compile error: the expression has {len(text)} characters, more than {LONGEST}"
    opened: list[bool] = []
    maps = deepest = 0
    for mark in _MARKS.finditer(text):
        if mark[0] in (")", "]", "}"):
            if opened:
                opened.pop()
            continue
        opened.append(mark[1] is not None)
        maps += mark[1] == "map"  # lists that one map made longer are the next one's input, wherever it stands
        deepest = max(deepest, sum(opened), maps)
        if len(opened) > DEEPEST:
            return f"CEL compile error: the expression has more than {DEEPEST} brackets within each other"
    if deepest > 1 and max(32, len(text) // 2) ** deepest > MOST_STEPS:
        return f"CEL compile error: the expression may take more than {MOST_STEPS} steps over lists"
    return ""


# -- Kubernetes' functions: quantities and versions are maps, since the library knows no types of others --------------


def _quantity(text: str) -> dict[str, str]:
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


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _quantity,
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
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
}
