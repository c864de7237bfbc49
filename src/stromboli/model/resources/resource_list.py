"""Smaller readers and writers of single entries of Kubernetes resource lists."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from stromboli.errors import ManifestError
from stromboli.model.names import CPU, EPHEMERAL_STORAGE, MEMORY
from stromboli.model.resources import quantity

RESERVABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Resources that a kubelet can reserve for the system."""


def parse_reserved(reserved: Mapping[str, quantity.Quantity]) -> dict[str, Fraction]:
    """Amounts that a kubelet reserves, by name.

    Raises :class:`~stromboli.errors.ManifestError` for a negative amount or a name that cannot be reserved,
    :class:`~stromboli.errors.QuantityError` for a bad amount.
    """
    amounts: dict[str, Fraction] = {}
    for name, value in reserved.items():
        if name not in RESERVABLE:
            raise ManifestError(f'cannot reserve "{name}" resource')
        amounts[name] = quantity.parse(value)
        if amounts[name] < 0:
            raise ManifestError(f'resource quantity for "{name}" cannot be negative: {value}')
    return amounts


def read_amount(name: str, value: quantity.Quantity) -> int:
    """One amount as plain number: cpu in thousandths, everything else in units, rounded up."""
    return quantity.milli(value) if name == CPU else quantity.whole(value)


def write_amount(name: str, amount: float) -> str:
    """The reverse of :func:`read_amount`; memory is written in binary form."""
    write = {CPU: quantity.format_milli, MEMORY: quantity.format_bytes}.get(name, quantity.format_whole)
    return write(int(amount))
