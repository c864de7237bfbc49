"""Volumes that are free, by storage class and by the nodes that reach them; and where new ones can be made."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from stromboli.filters.columns import Bools
from stromboli.filters.selectors import Clauses, clauses, rows_of_term, takes
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
NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.intp)

MOST_SHAPES: Final = 256
"""Shapes whose counts are kept; as many as classes of pods."""

FEW_CHANGES: Final = 32
"""Up to so many volumes are counted one by one; beyond, all are counted again."""


class Reach:
    """Which rows reach a volume."""

    def __init__(self, table: NodeTable) -> None:
        self._table, self._nodes = table, table.view()
        self._known: dict[NodeSelector | None, int] = {}
        self.rows: list[Bools] = []
        self._by_value: dict[str, dict[str, Rows]] = {}
        self._met: dict[Requirement, Rows] = {}

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

    def taking(self, wanted: Clauses | None) -> Rows:
        """Rows whose labels satisfy every requirement; all without one, none where ``wanted`` is None."""
        if wanted is None:
            return NO_ROWS
        if not wanted:
            return np.arange(len(self._table), dtype=np.intp)
        return reduce(np.intersect1d, map(self._meeting, wanted))

    def _meeting(self, want: Requirement) -> Rows:
        if want.operator == "In":
            return self._with_label(want)
        if want not in self._met:
            self._met[want] = np.flatnonzero(self._nodes.where(lambda node: takes((want,), node.labels)))
        return self._met[want]

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
        return np.concatenate([rows[value] for value in want.values if value in rows] or [NO_ROWS])


class Group:
    """Free volumes of one class that the same nodes reach, the smallest first."""

    __slots__ = ("rows", "volumes")

    def __init__(self, reached: Bools) -> None:
        self.rows: Rows = np.flatnonzero(reached)
        self.volumes: list[tuple[int, str]] = []


class Pool:
    """The free volumes of one storage class, as columns: a volume has a number, a size, a sort and a group.

    Volumes of one sort differ in size, nodes and name alone, so that a sort is compared with a claim once.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._numbers: dict[str, int] = {}
        self._volumes: list[tuple[PersistentVolume, int, Group]] = []
        self._sorts: dict[tuple[object, ...], PersistentVolume] = {}
        self._groups: dict[int, Group] = {}
        self._of_row: dict[int, list[Group]] = {}
        self._counts: dict[Shape, tuple[int, Ints]] = {}
        self._changes: list[tuple[int, int]] = []

    def add(self, volume: PersistentVolume, reached: Bools) -> None:
        """Take a volume in; all are, before any is asked for."""
        group = self._groups.get(id(reached))
        if group is None:
            group = self._groups[id(reached)] = Group(reached)
            for row in group.rows.tolist():
                self._of_row.setdefault(row, []).append(group)
        name, size = volume.metadata.name, size_of(volume)
        self._numbers[name] = len(self._volumes)
        self._volumes.append((volume, size, group))
        self._sorts.setdefault(sort_of(volume), volume)
        insort(group.volumes, (size, name))

    @cached_property
    def _columns(self) -> _Columns:
        sorts = {sort: number for number, sort in enumerate(self._sorts)}
        groups = {id(group): number for number, group in enumerate(self._groups.values())}
        found = [(size, sorts[sort_of(volume)], groups[id(group)]) for volume, size, group in self._volumes]
        sizes, of_sort, of_group = np.array(found, dtype=np.int64).reshape(-1, 3).T
        free = np.zeros(len(found), dtype=bool)
        for group in self._groups.values():
            free[[self._numbers[name] for _, name in group.volumes]] = True
        rows = [group.rows for group in self._groups.values()]
        places = np.repeat(np.arange(len(rows)), [part.size for part in rows])
        return _Columns(sizes, of_sort, of_group, free, np.concatenate(rows), places)

    def free(self, name: str) -> None:
        """A volume is free."""
        _, size, group = self._volumes[self._numbers[name]]
        insort(group.volumes, (size, name))
        self._change(name, 1)

    def take(self, name: str) -> None:
        """A volume is free no more."""
        _, size, group = self._volumes[self._numbers[name]]
        group.volumes.remove((size, name))
        self._change(name, -1)

    def rows_of(self, name: str) -> Rows:
        """The rows that reach a volume."""
        return self._volumes[self._numbers[name]][2].rows

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def _change(self, name: str, times: int) -> None:
        number = self._numbers[name]
        self._columns.free[number] = times > 0
        self._changes.append((number, times))

    def counts(self, shape: Shape) -> Ints:
        """How many free volumes of that shape each row reaches."""
        known, found = self._counts.pop(shape, (-1, np.zeros(0, dtype=np.int64)))
        new = self._changes[known:] if known >= 0 else []
        if known < 0 or len(new) > FEW_CHANGES:
            found = self._counted(shape)
        for number, times in new if len(new) <= FEW_CHANGES else ():
            volume, size, group = self._volumes[number]
            if size >= shape.size and suits(volume, shape):
                found[group.rows] += times
        if len(self._counts) >= MOST_SHAPES:
            del self._counts[next(iter(self._counts))]
        self._counts[shape] = len(self._changes), found
        return found

    def _counted(self, shape: Shape) -> Ints:
        columns = self._columns
        suiting = np.array([suits(volume, shape) for volume in self._sorts.values()], dtype=bool)
        fitting = columns.free & (columns.sizes >= shape.size) & suiting[columns.sorts]
        of_group = np.bincount(columns.groups[fitting], minlength=len(self._groups))
        return np.bincount(columns.rows, of_group[columns.places], minlength=self._rows).astype(np.int64)

    def _fits(self, shape: Shape, size: int, name: str) -> bool:
        return size >= shape.size and suits(self._volumes[self._numbers[name]][0], shape)

    def smallest(self, shape: Shape, row: int, chosen: set[str]) -> str:
        """The smallest free volume for a claim on a row, by name where several are; empty without any."""
        found = (
            (size, name) for group in self._of_row.get(row, ()) for size, name in _first(self, shape, group, chosen)
        )
        return min(found, default=(0, ""))[1]


class _Columns(NamedTuple):
    """One entry a volume; then the ``rows`` of all groups in turn, with the number of the group in ``places``."""

    sizes: Ints
    sorts: Ints
    groups: Ints
    free: Bools
    rows: Rows
    places: Ints


def _first(pool: Pool, shape: Shape, group: Group, chosen: set[str]) -> Iterator[tuple[int, str]]:
    start = bisect_left(group.volumes, (shape.size, ""))
    fitting = (
        each for each in islice(group.volumes, start, None) if each[1] not in chosen and pool._fits(shape, *each)
    )
    return iter(tuple(each for each in (next(fitting, None),) if each is not None))


def sort_of(volume: PersistentVolume) -> tuple[object, ...]:
    """What :func:`suits` reads of a volume."""
    spec = volume.spec
    labels = tuple(sorted(volume.metadata.labels.items()))
    return spec.volume_mode, spec.volume_attributes_class_name, spec.access_modes, labels


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


class _Segments(NamedTuple):
    """The rows of each CSIStorageCapacity of a class, in the order of names, with its bytes: columns of one length."""

    rows: Rows
    largest: Ints
    rooms: Ints


class Provisioning:
    """Where volumes of a class can be made; ``looks_at_capacity`` is the flag ``csi-storage``."""

    def __init__(self, storage: Storage, table: NodeTable, reach: Reach, looks_at_capacity: bool) -> None:
        self._storage, self._table, self._reach, self._looks = storage, table, reach, looks_at_capacity
        self._known: dict[tuple[str, int], Ints] = {}
        self._found_rooms: dict[tuple[str, int], Ints] = {}
        self._segments: dict[str, _Segments] = {}

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

    def room(self, storage_class: str, size: int, row: int) -> int | None:
        """How many bytes there are for volumes like one of ``size`` on a row; None where the driver does not say."""
        named = self._storage.classes.get(storage_class)
        rooms = self._rooms(named, size) if named is not None else None
        return None if rooms is None or rooms[row] < 0 else int(rooms[row])

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
        rooms = self._rooms(named, size)
        return np.ones(len(self._table), dtype=bool) if rooms is None else rooms >= 0

    def _rooms(self, named: StorageClass, size: int) -> Ints | None:
        """Bytes in which a volume of ``size`` can be made, by row, -1 for none; None where its driver does not say."""
        driver = self._storage.drivers.get(named.provisioner)
        if not self._looks or driver is None or not driver.spec.storage_capacity:
            return None
        key = named.metadata.name, size
        if key not in self._found_rooms:
            self._found_rooms[key] = self._room_of_rows(*key)
        return self._found_rooms[key]

    def _room_of_rows(self, storage_class: str, size: int) -> Ints:
        if storage_class not in self._segments:
            self._segments[storage_class] = self._segments_of(storage_class)
        segments = self._segments[storage_class]
        fits = segments.largest >= size
        found = np.full(len(self._table), -1, dtype=np.int64)
        rows, first = np.unique(segments.rows[fits], return_index=True)
        found[rows] = segments.rooms[fits][first]
        return found

    def _segments_of(self, storage_class: str) -> _Segments:
        found = []
        for _, capacity in sorted(self._storage.capacities.items()):
            if capacity.storage_class_name == storage_class and (amounts := _amounts_of(capacity)) is not None:
                found.append((self._reach.taking(clauses(capacity.node_topology)), *amounts))
        rows = [part for part, _, _ in found]
        largest, rooms = np.array([amounts for _, *amounts in found], dtype=np.int64).reshape(-1, 2).T
        sizes = [part.size for part in rows]
        return _Segments(np.concatenate([*rows, NO_ROWS]), np.repeat(largest, sizes), np.repeat(rooms, sizes))


def _amounts_of(capacity: CSIStorageCapacity) -> tuple[int, int] | None:
    """Bytes of the largest volume that can be made, and of what there is for it; None where neither is said."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    if limit is None:
        return None
    return quantity.whole(limit), quantity.whole(limit if capacity.capacity is None else capacity.capacity)


def size_of(volume: PersistentVolume) -> int:
    """Bytes of a volume."""
    return quantity.whole(volume.spec.capacity.get(STORAGE, 0))


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
