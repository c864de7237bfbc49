"""What an amount in a manifest must not be: unreadable, negative, or too large to be added up in 64 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.errors import ManifestError, QuantityError
from stromboli.model.names import CPU, MEMORY, PODS
from stromboli.model.resources import quantity
from stromboli.model.resources.axes import MOST_UNOFFERED
from stromboli.model.resources.scalar_names import is_counted
from stromboli.model.spec import Amount

POD_LARGEST: Final = MOST_UNOFFERED
"""Most that one pod may ask of a resource, in the units of :data:`~stromboli.model.resources.axes.Vector`."""
NODE_LARGEST: Final = 1 << 60
"""Most that one node may offer of a resource, in the same units."""
SCORED_LARGEST: Final = 1 << 55
"""Most of them where it is cpu or memory: scores take a hundred times the sum of two, which must fit into 64 bits."""
INT32: Final = range(-(2**31), 2**31)
COUNT: Final = range(2**31)
"""What Kubernetes' 32-bit fields hold, and what is left of it for fields that count things."""


def check_amounts(amounts: Mapping[str, Amount] | None, path: str, largest: int = 0) -> None:
    """Raise :class:`~stromboli.errors.ManifestError` for the first amount that is unreadable, negative or too large.

    Too large is more than ``largest`` (0: no bound) of a resource that scheduling counts, of a node's cpu and memory
    more than :data:`SCORED_LARGEST`.  The error names the field ``path``, empty for the object itself, and the
    resource.
    """
    for name, amount in (amounts or {}).items():
        scored = largest == NODE_LARGEST and name in (CPU, MEMORY)
        problem = _problem(name, amount, SCORED_LARGEST if scored else largest)
        if problem:
            raise ManifestError(problem, path=f"{path}.{name}" if path else name)


def check_whole(number: int | None, allowed: range, path: str) -> None:
    """Raise :class:`~stromboli.errors.ManifestError` naming ``path`` for a number outside ``allowed``."""
    if number is not None and number not in allowed:
        raise ManifestError(f"{number!r:.40} must be from {allowed[0]} to {allowed[-1]}", path=path)


def _problem(name: str, amount: Amount, largest: int) -> str:
    try:
        size = quantity.whole(amount) if name in (MEMORY, PODS) else quantity.milli(amount)
    except QuantityError as error:
        return error.message
    if size < 0:
        return f"{amount!r:.40} is negative"
    if 0 < largest < size and is_counted(name):
        return f"{amount!r:.40} is too large: the most is 2^{largest.bit_length() - 1} {_unit(name)}"
    return ""


def _unit(name: str) -> str:
    return {MEMORY: "bytes", PODS: "pods"}.get(name, "thousandths")
