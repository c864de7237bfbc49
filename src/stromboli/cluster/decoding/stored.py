"""Objects of pods' claims that are kept as they are: volumes and devices."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec.structs import replace

from stromboli.cluster.decoding.amounts import check_amounts
from stromboli.cluster.decoding.decode import demand_of, naming
from stromboli.cluster.events import Event
from stromboli.model.claims import Allocation, Consumer, Demand, DeviceObjects, ResourceClaim, ResourceClaimStatus
from stromboli.model.objects.base import Object
from stromboli.model.objects.storage import (
    NODE,
    SELECTED_NODE,
    VOLUME,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    is_bound,
)
from stromboli.model.spec import NodeSpec
from stromboli.model.task import Task

STORAGE_FIELDS: Final = {
    "PersistentVolume": "volumes",
    "PersistentVolumeClaim": "claims",
    "StorageClass": "classes",
    "CSINode": "csi_nodes",
    "CSIDriver": "drivers",
    "CSIStorageCapacity": "capacities",
    "VolumeAttachment": "attachments",
}
DEVICE_FIELDS: Final = {"ResourceClaim": "claims", "ResourceSlice": "slices", "DeviceClass": "classes"}
"""The fields of :class:`Storage` and :class:`DeviceObjects`, by kind."""


class Counting(Protocol):
    """Counts volumes as a resource; see :class:`~stromboli.cluster.decoding.attachable.Attachable`."""

    def counted(self, task: Task) -> Task:
        """The task, its volumes among what it asks for."""

    def offered(self, spec: NodeSpec) -> NodeSpec:
        """The node with what it attaches."""

    def heard(self, event: Event) -> None:
        """Count again where a volume object has changed."""

    def follow(self, task: Task) -> None:
        """Count the task again when one of its claims changes."""

    def of(self, state: Any) -> Counting:
        """The same for another state."""


Shown = TypeVar("Shown", Storage, DeviceObjects)


class Stored(Generic[Shown]):
    """The objects of some kinds; ``fields`` names the field of ``shape`` for each."""

    def __init__(self, shape: Callable[..., Shown], fields: Mapping[str, str]) -> None:
        self._shape: Callable[..., Shown] = shape
        self._fields = fields
        self._objects: dict[str, dict[str, Any]] = {field: {} for field in fields.values()}
        self._shown: Shown | None = None
        self.settings: dict[str, Any] = {}
        """Fields of ``shape`` that are no objects."""

    def handlers(self) -> dict[str, Callable[[Any, bool], None]]:
        """What takes in an object of each kind."""
        return {kind: self._taker(kind) for kind in self._fields}

    def _taker(self, kind: str) -> Callable[[Any, bool], None]:
        objects = self._objects[self._fields[kind]]

        def take(found: Object, stays: bool) -> None:
            meta = found.metadata
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            if stays:
                check(kind, found)
            self._shown = None
            objects.pop(key, None)
            if stays:
                objects[key] = found

        return take

    def shown(self) -> Shown:
        """All of them as they stand, by name; later changes do not reach it."""
        if self._shown is None:
            found = {field: dict(sorted(objects.items())) for field, objects in self._objects.items()}
            self._overlay(found)
            self._shown = self._shape(**found, **self.settings)
        return self._shown

    def plain(self) -> Shown:
        """All of them as they were told, decisions left out."""
        found = {field: dict(objects) for field, objects in self._objects.items()}
        return self._shape(**found, **self.settings)

    def restore(self, plain: Shown) -> None:
        """Have the objects and settings of ``plain``."""
        handlers = self.handlers()
        for kind, field in self._fields.items():
            for found in getattr(plain, field).values():
                handlers[kind](found, True)
        self.settings = {name: getattr(plain, name) for name in self.settings}

    def _overlay(self, found: dict[str, dict[str, Any]]) -> None:
        """Put decisions over objects."""

    def written(self) -> Iterator[tuple[str, Object]]:
        """All objects, each with its kind."""
        for kind, field in self._fields.items():
            yield from ((kind, found) for found in self._objects[field].values())


class StoredDevices(Stored[DeviceObjects]):
    """Objects of devices; ``demands`` are what claims ask for, by ``namespace/name``."""

    def __init__(self) -> None:
        super().__init__(DeviceObjects, DEVICE_FIELDS)
        self.demands: dict[str, Demand] = {}
        self.given: dict[str, tuple[str, Mapping[str, Allocation]]] = {}

        self.required = False
        """Whether pods are left out that name a claim which is not there."""

    def lacks(self, task: Task) -> bool:
        """Whether a task is left out for want of a claim."""
        return self.required and any(key not in self.demands for key in task.claims)

    def claim(self, key: str) -> ResourceClaim | None:
        """A claim by ``namespace/name`` as it was told, decisions left out; None where there is none."""
        found: ResourceClaim | None = self._objects["claims"].get(key)
        return found

    def give(self, uid: str, pod: str, claims: Mapping[str, Allocation]) -> None:
        """The claims of ``pod`` have these devices; see :class:`~stromboli.framework.books.plan.Bind`."""
        self._shown = None
        self.given.pop(uid, None)
        if claims:
            self.given[uid] = pod, claims

    def keep(self, pods: Container[str]) -> None:
        """Forget what was given to pods that are not among ``pods``, by uid."""
        for uid in [uid for uid in self.given if uid not in pods]:
            self.give(uid, "", {})

    def _overlay(self, found: dict[str, dict[str, Any]]) -> None:
        for uid, (pod, claims) in self.given.items():
            user = Consumer(resource="pods", name=pod.rpartition("/")[2], uid=uid)
            for key, allocation in claims.items():
                if (claim := found["claims"].get(key)) is None:
                    continue
                status: ResourceClaimStatus = claim.status
                users = status.reserved_for if any(one.uid == uid for one in status.reserved_for) else (
                    *status.reserved_for, user)  # fmt: skip
                status = replace(status, allocation=status.allocation or allocation, reserved_for=users)
                found["claims"][key] = replace(claim, status=status)

    def handlers(self) -> dict[str, Callable[[Any, bool], None]]:
        """What takes in an object of each kind."""
        return {**super().handlers(), "ResourceClaim": self._claim}

    def _claim(self, claim: ResourceClaim, stays: bool) -> None:
        key, demand = f"{claim.metadata.namespace}/{claim.metadata.name}", demand_of(claim)
        self._taker("ResourceClaim")(claim, stays)
        self.demands.pop(key, None)
        if stays:
            self.demands[key] = demand


class StoredVolumes(Stored[Storage]):
    """Objects of volumes, and what claims are about to get; ``devices`` are the objects of claimed devices."""

    def __init__(self) -> None:
        super().__init__(Storage, STORAGE_FIELDS)
        self.settings = {"looks_at_capacity": True, "ignored": frozenset()}
        self.attachable: Counting | None = None
        self.devices = StoredDevices()
        self.given: dict[str, Mapping[str, str]] = {}

    def configure(self, capacity: bool, ignored: frozenset[str], attachable: Counting | None) -> None:
        """Whether provisioners' capacity is looked at, whose volumes are ignored, and what counts others."""
        self.settings, self._shown = {"looks_at_capacity": capacity, "ignored": ignored}, None
        self.attachable = attachable

    def take_over(self, old: StoredVolumes, attachable: Counting | None) -> None:
        """Have the settings and decisions of ``old``, not its objects."""
        self.settings, self.attachable, self.given = old.settings, attachable, old.given
        self.devices.given, self.devices.required = old.devices.given, old.devices.required

    def give(self, uid: str, volumes: Mapping[str, str]) -> None:
        """The claims of pod ``uid`` get these; see :class:`~stromboli.framework.books.plan.Bind`."""
        self._shown = None
        self.given.pop(uid, None)
        if volumes:
            self.given[uid] = volumes

    def keep(self, pods: Container[str]) -> None:
        """Forget what was given to pods that are not among ``pods``, by uid."""
        self.devices.keep(pods)
        for uid in [uid for uid in self.given if uid not in pods]:
            self.give(uid, {})

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """A claim as the server has it."""
        return self._objects["claims"].get(key)

    def volume(self, name: str) -> PersistentVolume | None:
        """A volume as the server has it."""
        return self._objects["volumes"].get(name)

    def _overlay(self, found: dict[str, dict[str, Any]]) -> None:
        for key, what in ((key, what) for given in self.given.values() for key, what in given.items()):
            claim, volume = found["claims"].get(key), found["volumes"].get(what.removeprefix(VOLUME))
            if claim is None or is_bound(claim):
                continue
            if what.startswith(NODE):
                notes = claim.metadata.annotations | {SELECTED_NODE: what.removeprefix(NODE)}
                found["claims"][key] = replace(claim, metadata=replace(claim.metadata, annotations=notes))
            elif volume is not None and volume.spec.claim_ref is None:
                meta = claim.metadata
                reference = ClaimReference(meta.namespace, meta.name, meta.uid)
                found["volumes"][volume.metadata.name] = replace(volume, spec=replace(volume.spec, claim_ref=reference))


def check(kind: str, found: Any) -> None:
    """Raise :class:`~stromboli.errors.ManifestError` for an amount that cannot be read."""
    with naming(kind, found.metadata):
        if kind == "PersistentVolume":
            check_amounts(found.spec.capacity, "spec.capacity")
        elif kind == "PersistentVolumeClaim":
            check_amounts(found.spec.resources.requests, "spec.resources.requests")
        elif kind == "CSIStorageCapacity":
            stated = {"capacity": found.capacity, "maximumVolumeSize": found.maximum_volume_size}
            check_amounts({field: amount for field, amount in stated.items() if amount is not None}, "")
        elif kind == "ResourceSlice":
            for place, device in enumerate(found.spec.devices):
                amounts = {name: capacity.value for name, capacity in device.capacity.items()}
                check_amounts(amounts, f"spec.devices[{place}].capacity")
