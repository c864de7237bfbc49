"""Volumes that are free, by storage class and by the nodes that reach them; and where new ones can be made."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Final

import numpy as np

from stromboli.filters.columns import Bools
from stromboli.filters.selectors import clauses, rows_of_term, takes
from stromboli.filters.volumes.resolving import Shape
from stromboli.model.objects.storage import (
    FILESYSTEM,
    NO_PROVISIONER,
    STORAGE,
    CSIStorageCapacity,
    PersistentVolume,
    Storage,
    StorageClass,
    TopologyTerm,
    class_of,
)
from stromboli.model.resources import quantity
from stromboli.model.spec import NodeSelector, Requirement
from stromboli.model.table import Ints, NodeTable, Rows

FITS, NO_VOLUME, NO_SPACE = 0, 1, 2
"""What becomes of an unbound claim on a node: it gets a volume, there is none for it, or no room to make one."""

AVAILABLE: Final = "Available"


class Reach:
    """Which rows reach a volume."""

    def __init__(self, table: NodeTable) -> None:
        self._table, self._nodes = table, table.view()
        self._known: dict[NodeSelector | None, int] = {}
        self.rows: list[Bools] = []
        self._by_value: dict[str, dict[str, Rows]] = {}

    def of(self, volume: PersistentVolume) -> Bools:
        """Rows whose nodes satisfy the volume's node affinity.  Shape (rows,)."""
        return self.rows[self.number(volume)]

    def number(self, volume: PersistentVolume) -> int:
        """The place of these in ``rows``: volumes with equal node affinity share one."""
        affinity = volume.spec.node_affinity
        required = affinity.required if affinity is not None else None
        found = self._known.get(required)
        if found is None:
            found = self._known[required] = len(self.rows)
            self.rows.append(self._rows(required))
        return found

    def _rows(self, required: NodeSelector | None) -> Bools:
        if required is None:
            return np.ones(len(self._table), dtype=bool)
        found = np.zeros(len(self._table), dtype=bool)
        for term in required.node_selector_terms:
            wants = term.match_expressions
            if len(wants) == 1 and not term.match_fields and wants[0].operator == "In":
                found[self._with_label(wants[0])] = True
            else:
                found |= rows_of_term(term, self._nodes)
        return found

    def _with_label(self, want: Requirement) -> Rows:
        """Rows with one of a label's values: most volumes are of one node, or of one zone."""
        if want.key not in self._by_value:
            column = self._table.statics.label(want.key)
            order = np.argsort(column.codes, kind="stable")
            ends = np.searchsorted(column.codes[order], np.arange(len(column.values) + 1))
            self._by_value[want.key] = {
                value: order[ends[code] : ends[code + 1]] for code, value in enumerate(column.values)
            }
        rows = self._by_value[want.key]
        return np.concatenate([rows[value] for value in want.values if value in rows] or [np.zeros(0, dtype=np.intp)])


class Group:
    """Free volumes of one class that the same nodes reach, the smallest first."""

    __slots__ = ("rows", "volumes")

    def __init__(self, reached: Bools) -> None:
        self.rows: Rows = np.flatnonzero(reached)
        self.volumes: list[tuple[int, str]] = []


class Pool:
    """The free volumes of one storage class."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._volumes: dict[str, tuple[PersistentVolume, int, Group]] = {}
        self._groups: dict[int, Group] = {}
        self._of_row: dict[int, list[Group]] = {}
        self._counts: dict[Shape, Ints] = {}

    def add(self, volume: PersistentVolume, reached: Bools) -> None:
        """Take a volume in."""
        group = self._groups.get(id(reached))
        if group is None:
            group = self._groups[id(reached)] = Group(reached)
            for row in group.rows.tolist():
                self._of_row.setdefault(row, []).append(group)
        name, size = volume.metadata.name, quantity.whole(volume.spec.capacity.get(STORAGE, 0))
        self._volumes[name] = volume, size, group
        self.free(name)

    def free(self, name: str) -> None:
        """A volume is free."""
        volume, size, group = self._volumes[name]
        insort(group.volumes, (size, name))
        self._count(volume, size, group, 1)

    def take(self, name: str) -> None:
        """A volume is free no more."""
        volume, size, group = self._volumes[name]
        group.volumes.remove((size, name))
        self._count(volume, size, group, -1)

    def __contains__(self, name: str) -> bool:
        return name in self._volumes

    def _count(self, volume: PersistentVolume, size: int, group: Group, times: int) -> None:
        for shape, counts in self._counts.items():
            if size >= shape.size and suits(volume, shape):
                counts[group.rows] += times

    def counts(self, shape: Shape) -> Ints:
        """How many free volumes of that shape each row reaches."""
        found = self._counts.get(shape)
        if found is None:
            found = self._counts[shape] = np.zeros(self._rows, dtype=np.int64)
            for group in self._groups.values():
                fitting = sum(self._fits(shape, size, name) for size, name in group.volumes)
                found[group.rows] += fitting
        return found

    def _fits(self, shape: Shape, size: int, name: str) -> bool:
        return size >= shape.size and suits(self._volumes[name][0], shape)

    def smallest(self, shape: Shape, row: int, chosen: set[str]) -> str:
        """The smallest free volume for a claim on a row, by name where several are; empty without any."""
        found = (
            (size, name) for group in self._of_row.get(row, ()) for size, name in _first(self, shape, group, chosen)
        )
        return min(found, default=(0, ""))[1]


def _first(pool: Pool, shape: Shape, group: Group, chosen: set[str]) -> Iterator[tuple[int, str]]:
    fitting = (each for each in group.volumes if each[1] not in chosen and pool._fits(shape, *each))
    return iter(tuple(each for each in (next(fitting, None),) if each is not None))


def suits(volume: PersistentVolume, shape: Shape) -> bool:
    """Whether a volume is what a claim asks for, its size and nodes aside."""
    spec = volume.spec
    same = (spec.volume_mode or FILESYSTEM) == (shape.volume_mode or FILESYSTEM)
    same = same and (spec.volume_attributes_class_name or "") == shape.attributes_class
    modes = set(shape.access_modes) <= set(spec.access_modes)
    return same and modes and takes(shape.selector, volume.metadata.labels)


def is_free(volume: PersistentVolume) -> bool:
    """Whether a volume may be bound to any claim."""
    unclaimed = volume.spec.claim_ref is None and not volume.metadata.deletion_timestamp
    return unclaimed and volume.status.phase == AVAILABLE


def pools_of(storage: Storage, reach: Reach, rows: int) -> dict[str, Pool]:
    """The free volumes by storage class."""
    found: dict[str, Pool] = {}
    for volume in storage.volumes.values():
        if is_free(volume):
            found.setdefault(class_of(volume), Pool(rows)).add(volume, reach.of(volume))
    return found


class Provisioning:
    """Where volumes of a class can be made; ``looks_at_capacity`` is the flag ``csi-storage``."""

    def __init__(self, storage: Storage, table: NodeTable, looks_at_capacity: bool) -> None:
        self._storage, self._table, self._looks = storage, table, looks_at_capacity
        self._known: dict[tuple[str, int], Ints] = {}

    def codes(self, storage_class: str, size: int) -> Ints:
        """For each row whether a volume of that size can be made there."""
        found = self._known.get((storage_class, size))
        if found is None:
            found = self._known[storage_class, size] = self._codes(storage_class, size)
        return found

    def _codes(self, storage_class: str, size: int) -> Ints:
        named = self._storage.classes.get(storage_class)
        if named is None or named.provisioner in ("", NO_PROVISIONER):
            return np.full(len(self._table), NO_VOLUME, dtype=np.int64)
        allowed = self._allowed(named)
        roomy = self._roomy(named, size)
        return np.where(allowed, np.where(roomy, FITS, NO_SPACE), NO_VOLUME).astype(np.int64)

    def _allowed(self, named: StorageClass) -> Bools:
        if not named.allowed_topologies:
            return np.ones(len(self._table), dtype=bool)
        return reduce(np.logical_or, map(self._term, named.allowed_topologies))

    def _term(self, term: TopologyTerm) -> Bools:
        found = np.full(len(self._table), bool(term.match_label_expressions))
        for want in term.match_label_expressions:
            found &= self._table.statics.label(want.key).where(want.values.__contains__, absent=False)
        return found

    def _roomy(self, named: StorageClass, size: int) -> Bools:
        driver = self._storage.drivers.get(named.provisioner)
        if not self._looks or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(self._table), dtype=bool)
        found = np.zeros(len(self._table), dtype=bool)
        for capacity in self._storage.capacities.values():
            if capacity.storage_class_name == named.metadata.name and _suffices(capacity, size):
                wanted = clauses(capacity.node_topology)
                found |= self._table.view().where(lambda node, wanted=wanted: takes(wanted, node.labels))  # type: ignore[misc]
        return found


def _suffices(capacity: CSIStorageCapacity, size: int) -> bool:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return limit is not None and quantity.whole(limit) >= size


def kept_for(storage: Storage) -> Mapping[str, str]:
    """The volumes that name a claim, by that claim; those of claims that have gone are left out."""
    found: dict[str, str] = {}
    for volume in storage.volumes.values():
        reference = volume.spec.claim_ref
        key = f"{reference.namespace}/{reference.name}" if reference is not None else ""
        claim = storage.claims.get(key)
        if reference and claim and reference.uid in ("", claim.metadata.uid) and not volume.metadata.deletion_timestamp:
            found.setdefault(key, volume.metadata.name)
    return found
