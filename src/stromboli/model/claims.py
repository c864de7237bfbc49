"""Devices that pods claim (dynamic resource allocation): how many of a class, and how much of their capacities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from stromboli.model.names import DEVICE_CLASS_PREFIX
from stromboli.model.objects.base import NamespacedMetadata, Object
from stromboli.model.resources import quantity
from stromboli.model.resources.quantity import saturating_add, saturating_multiply
from stromboli.model.spec import Amount, NodeSelector, Toleration, Wire

CLAIM_SECONDS: Final = 600
"""How long drivers may take to make allocated devices ready, unless told otherwise."""
MOST_GROUP_CLAIMS: Final = 4
"""Claims that a PodGroup of Kubernetes' own may share, as API servers have it."""


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


class CelSelector(Wire, frozen=True):
    """An expression in CEL over ``device``."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """What a device must satisfy."""

    cel: CelSelector | None = None


class ClaimedCapacity(Wire, frozen=True):
    """Amounts of each device's dimensions, by name, as written."""

    requests: dict[str, Amount] = {}


class ExactRequest(Wire, frozen=True):
    """A request for devices of one class; an alternative of several has a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    count: int = 0
    allocation_mode: str = ""
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: ClaimedCapacity | None = None


class DeviceRequest(Wire, frozen=True):
    """One request of a claim; ``exactly`` is None where it is a choice among several, the best first."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True):
    """An attribute that is the same on all devices of the requests (none named: all), or different on each."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class ClaimedDevices(Wire, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class ResourceClaimSpec(Wire, frozen=True):
    """``spec`` of a ResourceClaim."""

    devices: ClaimedDevices = ClaimedDevices()


class DeviceResult(Wire, frozen=True):
    """A device given to a claim, and the request that it meets (``request/alternative`` of a choice).

    Of a device that several requests may have it is a share: one with an id, and with what it takes of all capacities.
    """

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    share_id: str = msgspec.field(name="shareID", default="")
    consumed_capacity: dict[str, Amount] = {}
    binding_conditions: tuple[str, ...] = ()
    """What its driver must have said of the device before pods may be bound; copied from the device."""
    binding_failure_conditions: tuple[str, ...] = ()
    """What its driver says of a device that it cannot make ready."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Driver, pool and name of the device, and the share's id."""
        return self.driver, self.pool, self.device, self.share_id


class DeviceResults(Wire, frozen=True):
    """All devices given to a claim, and what their drivers are told; configurations are passed on as they are."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class Allocation(Wire, frozen=True):
    """What a claim was given, and the nodes where it can be used; without a selector everywhere."""

    devices: DeviceResults = DeviceResults()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str = ""

    @property
    def has_conditions(self) -> bool:
        """Whether drivers have to make devices ready before pods may be bound."""
        return any(one.binding_conditions for one in self.devices.results)


class Consumer(Wire, frozen=True):
    """A pod (``resource`` ``pods``) that may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire, frozen=True):
    """Something that the driver of a device says of it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(Wire, frozen=True):
    """What the driver says of a device that a claim has."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = msgspec.field(name="shareID", default="")
    conditions: tuple[DeviceCondition, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Driver, pool and name of the device, and the share's id, as :attr:`DeviceResult.key`."""
        return self.driver, self.pool, self.device, self.share_id


class ResourceClaimStatus(Wire, frozen=True):
    """``status`` of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()


class ResourceClaim(Object, frozen=True):
    """resource.k8s.io/v1 ResourceClaim: devices for one or more pods."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


# -- As devices are offered ------------------------------------------------------------------------------------------


class Attribute(Wire, frozen=True):
    """A property of a device: one of four types."""

    int_: int | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class CapacityRange(Wire, frozen=True):
    """Amounts that may be taken of a capacity: from ``min`` on in steps, up to ``max``."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityPolicy(Wire, frozen=True):
    """How much of a capacity one request takes: ``default`` where it names none, else the next amount allowed."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class Capacity(Wire, frozen=True):
    """How much of something a device has; the policy is for devices that several requests may have."""

    value: Amount = 0
    request_policy: CapacityPolicy | None = None


class DeviceTaint(Wire, frozen=True):
    """A mark on a device that keeps claims without a matching toleration away."""

    key: str = ""
    value: str = ""
    effect: str = ""


class CounterUse(Wire, frozen=True):
    """How much of the counters of a set a device takes while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Capacity] = {}


class CounterSet(Wire, frozen=True):
    """Counters that the devices of a pool share: parts of one card draw on its memory and its slices."""

    name: str = ""
    counters: dict[str, Capacity] = {}


class Device(Wire, frozen=True):
    """One device; attributes and capacities without a domain are its driver's own."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Capacity] = {}
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterUse, ...] = ()
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    """Whether a claim that has it can be used on the node alone for which it was allocated."""
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class Pool(Wire, frozen=True):
    """The pool that a slice is part of: its newest generation counts, once all of its slices are there."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Wire, frozen=True):
    """``spec`` of a ResourceSlice: devices of one driver, and the nodes that reach them."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()
    devices: tuple[Device, ...] = ()


class ResourceSlice(Object, frozen=True):
    """resource.k8s.io/v1 ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Wire, frozen=True):
    """``spec`` of a DeviceClass."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class DeviceClass(Object, frozen=True):
    """resource.k8s.io/v1 DeviceClass: what devices of a kind have in common."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceObjects(msgspec.Struct, frozen=True):
    """All of it: claims by ``namespace/name``, slices and classes by name."""

    claims: Mapping[str, ResourceClaim] = {}
    slices: Mapping[str, ResourceSlice] = {}
    classes: Mapping[str, DeviceClass] = {}
