"""What CEL expressions say of devices, compiled once each."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from stromboli.cel import CelError, Program
from stromboli.cel.functions import as_quantity
from stromboli.model.claims import Attribute, Device

_DOMAIN: Final = re.compile(r"""\.(attributes|capacity)\s*\[\s*(["'])([^"']*)\2\s*\]""")

Answer = bool | str
"""Whether a device satisfies an expression, or what is wrong with the expression."""


class Expression:
    """One compiled expression; ``problem`` says why it cannot be used."""

    def __init__(self, text: str) -> None:
        self._program = Program(text)
        self.problem = self._program.problem
        self._domains = {(where, name) for where, _, name in _DOMAIN.findall(text)}

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
            found = self._program.value({"device": device})
        except CelError as error:
            return str(error)
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
        _put(found["capacity"], driver, name, as_quantity(str(capacity.value)))
    return found


def _put(domains: dict[str, dict[str, Any]], driver: str, name: str, value: object) -> None:
    domain, between, own = name.rpartition("/")
    domains.setdefault(domain if between else driver, {})[own] = value


def _value(attribute: Attribute) -> object:
    if attribute.version is not None:
        return {"semver": attribute.version}
    return next((each for each in (attribute.int_, attribute.bool_, attribute.string) if each is not None), "")
