"""Devices in use: those allocated as a whole, shares of others, and counters that devices draw on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from stromboli.filters.devices.capacity import Takes
from stromboli.filters.devices.offers import MORE_THAN_ANY, Candidate, CounterKey, Draws, Key, milli
from stromboli.model.claims import Capacity, DeviceResult

K = TypeVar("K", bound=Hashable)


def share_of(given: DeviceResult) -> Takes | None:
    """What a claim has of a device that it shares; None for one that it has alone."""
    if not given.share_id:
        return None
    return {name: milli(Capacity(amount), MORE_THAN_ANY) for name, amount in given.consumed_capacity.items()}


class Usage:
    """Sums over allocations; what is taken (``times`` 1) and given back (-1) again leaves no trace.

    A device draws on counters once, however many share it.
    """

    __slots__ = ("amounts", "drawn", "shares", "whole")

    def __init__(self) -> None:
        self.whole: Counter[Key] = Counter()
        self.shares: Counter[Key] = Counter()
        self.amounts: Counter[tuple[Key, str]] = Counter()
        """Thousandths that the sharers of a device have of each capacity."""
        self.drawn: Counter[CounterKey] = Counter()

    def uses(self, key: Key) -> bool:
        """Whether a pod has the device, or a share of it."""
        return key in self.whole or key in self.shares

    def count(self, key: Key, share: Takes | None, draws: Draws, times: int) -> None:
        """Take a share of a device, or with None the device itself; ``draws`` are those of the device."""
        was_used = self.uses(key)
        _add(self.whole if share is None else self.shares, key, times)
        for name, amount in (share or {}).items():
            _add(self.amounts, (key, name), times * amount)
        if self.uses(key) != was_used:
            for counter, amount in draws:
                _add(self.drawn, counter, times * amount)


def has_room(one: Candidate, share: Takes | None, counters: Mapping[CounterKey, int], *usages: Usage) -> bool:
    """Whether a share of a device, or with None the whole device, is free given what ``usages`` hold together.

    ``counters`` is how much there is of those that devices share; of one that is not among them there is nothing.
    """
    is_used = any(usage.uses(one.key) for usage in usages)
    if is_used and (share is None or any(one.key in usage.whole for usage in usages)):
        return False
    return _capacities_suffice(one, share or {}, usages) and (is_used or _counters_suffice(one, counters, usages))


def _capacities_suffice(one: Candidate, share: Takes, usages: Sequence[Usage]) -> bool:
    held = {name: sum(usage.amounts[one.key, name] for usage in usages) for name in share}
    return all(held[name] + amount <= one.capacity(name) for name, amount in share.items())


def _counters_suffice(one: Candidate, counters: Mapping[CounterKey, int], usages: Sequence[Usage]) -> bool:
    return all(
        sum(usage.drawn[counter] for usage in usages) + amount <= counters.get(counter, 0)
        for counter, amount in one.draws
    )


def _add(sums: Counter[K], key: K, amount: int) -> None:
    """Add to a sum; one that has become nothing is forgotten."""
    sums[key] += amount
    if not sums[key]:
        del sums[key]
