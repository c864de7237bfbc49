"""What a request takes of a device that several requests may have: amounts by the policies of its capacities.

Semantics: https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/5075-dra-consumable-capacity
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.errors import QuantityError
from stromboli.model.claims import Capacity, CapacityPolicy, CapacityRange
from stromboli.model.resources import quantity
from stromboli.model.spec import Amount

Takes = Mapping[str, int]
"""Thousandths of a device's capacities by name; all capacities are there."""


def takes(capacities: Mapping[str, Capacity], asked: Mapping[str, Amount]) -> Takes | None:
    """What a request for ``asked`` takes of an idle device; None where the device cannot give it.

    Amounts are rounded up as the policy of a capacity says.  Of a capacity that is not asked for, the policy's default
    is taken, and without one all of it.
    """
    if any(name not in capacities for name in asked):
        return None
    try:
        found = {name: _taken(capacity, asked.get(name)) for name, capacity in capacities.items()}
        suits = all(quantity.milli(capacities[name].value) >= amount >= 0 for name, amount in found.items())
    except (QuantityError, _Refused):
        return None
    return found if suits else None


class _Refused(Exception):
    """The policy of a capacity refuses an amount."""


def _taken(capacity: Capacity, asked: Amount | None) -> int:
    """What is taken of one capacity.  Raises QuantityError; _Refused."""
    policy = capacity.request_policy
    if asked is None:
        unasked = None if policy is None else policy.default
        return quantity.milli(capacity.value if unasked is None else unasked)
    amount = quantity.milli(asked)
    return amount if policy is None else _rounded(amount, policy)


def _rounded(amount: int, policy: CapacityPolicy) -> int:
    """The next amount that the policy allows; the default is allowed whatever else is said."""
    if policy.valid_range is not None:
        return _within(amount, policy.valid_range, policy.default)
    if not policy.valid_values:
        return amount
    larger = [value for each in policy.valid_values if (value := quantity.milli(each)) >= amount]
    if not larger:
        raise _Refused
    return min(larger)


def _within(amount: int, allowed: CapacityRange, default: Amount | None) -> int:
    least = 0 if allowed.min is None else quantity.milli(allowed.min)
    step = 0 if allowed.step is None else quantity.milli(allowed.step)
    found = max(amount, least)
    if step > 0:
        found = least + -(-(found - least) // step) * step
    beyond = allowed.max is not None and found > quantity.milli(allowed.max)
    if beyond and not (default is not None and found == quantity.milli(default)):
        raise _Refused
    return found


def written(amount: int) -> str:
    """Thousandths as a quantity, in powers of 1024 where that is shorter, as memory is written."""
    if amount % 1000:
        return quantity.format_milli(amount)
    return min(quantity.format_bytes(amount // 1000), quantity.format_milli(amount), key=len)
