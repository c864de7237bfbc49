"""Devices that pods claim (dynamic resource allocation): how many of a class, and how much of their capacities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stromboli.model.names import DEVICE_CLASS_PREFIX
from stromboli.model.resources import quantity
from stromboli.model.resources.quantity import saturating_add, saturating_multiply
from stromboli.model.spec import Amount, Wire


class Devices(msgspec.Struct, frozen=True):
    """A number of devices of one class, and amounts of their dimensions, in thousandths."""

    count: int = 0
    capacity: dict[str, int] = {}

    def times(self, number: int) -> Devices:
        """So many times as much; what is beyond 64 bits stays at their end."""
        dimensions = {name: saturating_multiply(amount, number) for name, amount in self.capacity.items()}
        return Devices(saturating_multiply(self.count, number), dimensions)


Demand = Mapping[str, Devices]
"""Devices by class."""


def together(demands: Iterable[Demand]) -> dict[str, Devices]:
    """Several demands added up."""
    total: dict[str, Devices] = {}
    for demand in demands:
        for name, devices in demand.items():
            total[name] = _sum(total.get(name, Devices()), devices)
    return total


def _sum(left: Devices, right: Devices) -> Devices:
    names = {**left.capacity, **right.capacity}
    dimensions = {name: saturating_add(left.capacity.get(name, 0), right.capacity.get(name, 0)) for name in names}
    return Devices(saturating_add(left.count, right.count), dimensions)


def read_classes(written: Mapping[str, Amount] | None) -> dict[str, Devices]:
    """The device classes in a Queue's amounts: ``deviceclass/C`` counts devices of class C, ``D.deviceclass/C`` is the
    amount of dimension D that they have together.  Raises :class:`~stromboli.errors.QuantityError`.
    """
    found: list[Demand] = []
    for name, amount in (written or {}).items():
        dimension, between, of = name.partition(f".{DEVICE_CLASS_PREFIX}")
        if between and dimension and of:
            found.append({of: Devices(0, {dimension: quantity.milli(amount)})})
        elif name.startswith(DEVICE_CLASS_PREFIX) and name != DEVICE_CLASS_PREFIX:
            found.append({name.removeprefix(DEVICE_CLASS_PREFIX): Devices(quantity.whole(amount))})
    return together(found)


# -- As claims are written -------------------------------------------------------------------------------------------


class ClaimedCapacity(Wire, frozen=True):
    """Amounts of each device's dimensions, by name, as written."""

    requests: dict[str, Amount] = {}


class ExactRequest(Wire, frozen=True):
    """A request for devices of one class."""

    device_class_name: str = ""
    count: int = 0
    allocation_mode: str = ""
    capacity: ClaimedCapacity | None = None


class DeviceRequest(Wire, frozen=True):
    """One request of a claim; ``exactly`` is None where it is a choice among several."""

    name: str = ""
    exactly: ExactRequest | None = None


class ClaimedDevices(Wire, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()


class ResourceClaimSpec(Wire, frozen=True):
    """``spec`` of a ResourceClaim."""

    devices: ClaimedDevices = ClaimedDevices()
