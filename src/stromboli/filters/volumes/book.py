"""The volumes of a session: what pods want, what nodes have, and what placements have taken so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from stromboli.filters.columns import Bools, Masks
from stromboli.filters.volumes.limits import Limits, ignoring
from stromboli.filters.volumes.pools import (
    FITS,
    MOST_SHAPES,
    NO_ROWS,
    NO_VOLUME,
    Pool,
    Provisioning,
    Reach,
    kept_for,
    pools_of,
    size_of,
)
from stromboli.filters.volumes.resolving import (
    NOTHING,
    ZONE_LABELS,
    Shape,
    Wanted,
    Wish,
    Zones,
    delayed,
    resolve,
    shape_of,
)
from stromboli.model.objects.storage import NODE, ONE_POD, SELECTED_NODE, VOLUME, Storage, class_of
from stromboli.model.table import Ints, NodeTable, Rows
from stromboli.model.task import Task

FAR, UNBOUND, TOO_SMALL, GONE = range(4)
REFUSALS: Final = ((FAR,), (UNBOUND,), (TOO_SMALL,), (GONE,), (FAR, UNBOUND), (FAR, TOO_SMALL), (GONE, UNBOUND),
                   (GONE, TOO_SMALL))  # fmt: skip
"""What VolumeBinding refuses together, a bit of its masks each."""
_BIT: Final = {(): 0, **{each: 1 << bit for bit, each in enumerate(REFUSALS)}}
_BITS: Final = np.array(
    [[_BIT[first + second] for second in ((), (UNBOUND,), (TOO_SMALL,))] for first in ((), (FAR,), (GONE,))],
    dtype=np.uint64,
)
"""The mask for what is wrong with bound claims, and with unbound ones."""
_Question: TypeAlias = tuple[tuple[int, ...], bool, tuple[Wish, ...]]


class Gets(NamedTuple):
    """What a claim gets: bytes that it asks for, of a volume that has so many, or of what there is to make one of.

    ``capacity`` is None where a driver does not say how much room it has.
    """

    storage_class: str
    asked: int
    capacity: int | None
    made: bool = False


class _Change(NamedTuple):
    """A claim was given something, or that was taken back: the rows that reach the volume, none for one to be made."""

    claim: str
    rows: Rows


class VolumeBook:
    """Answers for pods with claims.  ``tasks`` are all pods, ``placed`` those on nodes with their rows.

    Volumes of the provisioners in ``ignored``, and of some for tests, count for no limit; with None all count.
    """

    def __init__(
        self,
        storage: Storage,
        table: NodeTable,
        tasks: Iterable[Task],
        placed: Iterable[tuple[Task, int]],
        *,
        looks_at_capacity: bool = True,
        ignored: frozenset[str] | None = frozenset(),
    ) -> None:
        self.storage, self._table = storage, table
        self._mounted = Counter(mount.claim for task in tasks for mount in task.volumes)
        self._kept = dict(kept_for(storage))
        self._reach = Reach(table)
        self._pools = pools_of(storage, self._reach, len(table))
        self._provisioning = Provisioning(storage, table, self._reach, looks_at_capacity)
        self.limits = Limits(storage, table, frozenset() if ignored is None else ignoring(ignored))
        self._wanted: dict[str, Wanted] = {}
        self._given: dict[str, str] = {}
        self._users: dict[str, set[str]] = {}
        self._pods: dict[str, set[str]] = {}
        self._zones: dict[Zones, Bools] = {}
        self._answers: dict[_Question, tuple[int, Masks]] = {}
        self._changes: list[_Change] = []
        for task, row in placed:
            if task.volumes:
                self._mount(task, row, 1)

    def wanted(self, task: Task) -> Wanted:
        """What the claims of a pod come to."""
        if not task.volumes:
            return NOTHING
        found = self._wanted.get(task.uid)
        if found is None:
            own = lambda key: self._mounted[key] <= 1  # noqa: E731
            found = resolve(task, self.storage, own, self._kept.__contains__, self._reach.number)
            self._wanted[task.uid] = found
        return found

    # ------------------------------------------------------------------ answers, over all rows

    def in_zone(self, task: Task) -> Bools | None:
        """Rows in the zones of the pod's volumes; nodes that name no zone are anywhere.  None: volumes name none."""
        zones = self.wanted(task).zones
        if zones and zones not in self._zones:
            statics = self._table.statics
            somewhere = [statics.label(key).where(lambda _: True, absent=False) for key in ZONE_LABELS]
            near = [statics.label(key).where(values.__contains__, absent=False) for key, values in zones]
            self._zones[zones] = ~np.logical_or.reduce(somewhere) | np.logical_and.reduce(near)
        return self._zones[zones] if zones else None

    def attachable(self, task: Task) -> Bools | None:
        """Rows whose CSI drivers attach the pod's volumes, too; None where no limit concerns it."""
        wanted = self.wanted(task)
        return self.limits.fit(wanted, lambda: np.ones(len(self._table), dtype=bool)) if self.limits else None

    def is_alone(self, task: Task) -> bool:
        """Whether no other pod has one of the claims that are for one pod at a time."""
        return all(self._pods.get(claim, set()) <= {task.uid} for claim in self.wanted(task).alone)

    def binding(self, task: Task) -> Masks | None:
        """Refusals of each row, as bits that number :data:`REFUSALS`; None where there is nothing to bind or reach."""
        wanted = self.wanted(task)
        if not (wanted.bound or wanted.gone or wanted.wishes):
            return None
        question = wanted.bound, wanted.gone, wanted.wishes
        known, masks = self._answers.pop(question, (-1, self._nowhere))
        if known < 0:
            masks = self._masks(wanted, self._everywhere)
        elif known < len(self._changes) and (rows := self.changed_since(wanted, known)).size:
            masks = masks.copy()
            masks[rows] = self._masks(wanted, rows)
        if len(self._answers) >= MOST_SHAPES:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = len(self._changes), masks
        return masks

    @cached_property
    def _everywhere(self) -> Rows:
        return np.arange(len(self._table), dtype=np.intp)

    @cached_property
    def _nowhere(self) -> Masks:
        return np.zeros(len(self._table), dtype=np.uint64)

    @property
    def changes(self) -> int:
        """How often claims were given something, or it was taken back, so far."""
        return len(self._changes)

    def changed_since(self, wanted: Wanted, known: int) -> Rows:
        """The rows whose answers may have changed since so many changes were known.

        A free volume concerns the rows that reach it; one made for a claim concerns only the pods that share the claim.
        """
        new = self._changes[known:]
        parts = [change.rows for change in new if change.rows.size]
        is_own = any(change.claim in wanted.wishes for change in new)
        if is_own or sum(part.size for part in parts) > len(self._table):
            return self._everywhere
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate([*parts, NO_ROWS]))

    def _masks(self, wanted: Wanted, rows: Rows) -> Masks:
        codes = self._codes(wanted.wishes, rows)
        far = np.zeros(rows.size, dtype=bool)
        for number in wanted.bound if not wanted.gone else ():
            far |= ~self._reach.rows[number][rows]
        head = np.where(far, 1, 2 if wanted.gone else 0)
        masks: Masks = _BITS[head, codes]
        return masks

    def _codes(self, wishes: tuple[Wish, ...], rows: Rows) -> Ints:
        shapes = sorted((wish for wish in wishes if isinstance(wish, Shape)), key=lambda shape: shape.size)
        if len(shapes) < len(wishes):
            return np.array([self._code(wishes, row) for row in rows.tolist()], dtype=np.int64)
        found = np.zeros(rows.size, dtype=np.int64)
        close = np.zeros(rows.size, dtype=bool)
        for shape in shapes:
            pool = self._pools.get(shape.storage_class)
            counts = pool.counts(shape)[rows] if pool is not None else np.zeros(rows.size, dtype=np.int64)
            making = self._provisioning.codes(shape.storage_class, shape.size)[rows]
            found = np.where((found == FITS) & (counts == 0), making, found)
            close |= (counts < len(shapes)) & (making != FITS)
        for place in np.flatnonzero(close & (found == FITS)).tolist() if len(shapes) > 1 else ():
            found[place] = self._code(wishes, int(rows[place]))
        return found

    def _code(self, wishes: Sequence[Wish], row: int) -> int:
        found = self._choose(wishes, row)
        return found if isinstance(found, int) else FITS

    # ------------------------------------------------------------------ one row

    def _choose(self, wishes: Sequence[Wish], row: int) -> list[str] | int:
        """What each claim gets on a row, in the order of ``wishes``; the code of the first that gets nothing."""
        chosen: set[str] = set()
        found = [""] * len(wishes)
        shapes = [self._shape(wish) for wish in wishes]
        for place in sorted(range(len(wishes)), key=lambda place: shapes[place].size):
            given = self._one(wishes[place], shapes[place], row, chosen)
            if isinstance(given, int):
                return given
            found[place] = given
            chosen.add(given.removeprefix(VOLUME))
        return found

    def would_get(self, task: Task, row: int) -> list[Gets] | None:
        """What the claims that a pod lacks would get on a row; None where one of them gets nothing."""
        wishes = self.wanted(task).wishes
        found = self._choose(wishes, row)
        return None if isinstance(found, int) else [self._gets(*each, row) for each in zip(wishes, found, strict=True)]

    def _gets(self, wish: Wish, what: str, row: int) -> Gets:
        shape = self._shape(wish)
        if what.startswith(VOLUME):
            return Gets(shape.storage_class, shape.size, size_of(self.storage.volumes[what.removeprefix(VOLUME)]))
        room = self._provisioning.room(shape.storage_class, shape.size, row)
        return Gets(shape.storage_class, shape.size, room, made=True)

    def _shape(self, wish: Wish) -> Shape:
        return wish if isinstance(wish, Shape) else shape_of(self.storage.claims[wish])

    def _one(self, wish: Wish, shape: Shape, row: int, chosen: set[str]) -> str | int:
        node = self._table.statics.names[row]
        if isinstance(wish, str):
            given = self._given.get(wish, "")
            selected = self.storage.claims[wish].metadata.annotations.get(SELECTED_NODE, "")
            place = given.removeprefix(NODE) if given.startswith(NODE) else selected
            if place:
                code = self._made(shape, row) if place == node else NO_VOLUME
                return NODE + node if code == FITS else code
            kept = given.removeprefix(VOLUME) or self._kept.get(wish, "")
            if kept:
                return VOLUME + kept if self._reach.of(self.storage.volumes[kept])[row] else self._make(shape, row)
        pool = self._pools.get(shape.storage_class)
        volume = pool.smallest(shape, row, chosen) if pool is not None else ""
        return VOLUME + volume if volume else self._make(shape, row)

    def _made(self, shape: Shape, row: int) -> int:
        return int(self._provisioning.codes(shape.storage_class, shape.size)[row])

    def _make(self, shape: Shape, row: int) -> str | int:
        code = self._made(shape, row)
        return NODE + self._table.statics.names[row] if code == FITS else code

    # ------------------------------------------------------------------ placements

    def place(self, task: Task, row: int, binds: bool) -> dict[str, str] | None:
        """A pod takes a row: what its unbound claims get if ``binds``; None, nothing changed, where one cannot."""
        wanted = self.wanted(task)
        given: dict[str, str] = {}
        if binds and wanted.wishes:
            found = self._choose(wanted.wishes, row)
            if isinstance(found, int):
                return None
            given = dict(zip(delayed(task, self.storage), found, strict=True))
            for claim, what in given.items():
                self._give(claim, what, task.uid)
        self._mount(task, row, 1)
        return given

    def leave(self, task: Task, row: int) -> None:
        """A pod leaves a row; what only it was given is free again."""
        for mount in task.volumes:
            users = self._users.get(mount.claim)
            if users and task.uid in users:
                users.discard(task.uid)
                if not users:
                    self._take_back(mount.claim)
        self._mount(task, row, -1)

    def _give(self, claim: str, what: str, uid: str) -> None:
        self._users.setdefault(claim, set()).add(uid)
        if claim not in self._given:
            self._given[claim] = what
            if (pool := self._pool_of(claim, what)) is not None:
                pool.take(what.removeprefix(VOLUME))
            self._note(claim, pool, what)

    def _take_back(self, claim: str) -> None:
        what = self._given.pop(claim)
        if (pool := self._pool_of(claim, what)) is not None:
            pool.free(what.removeprefix(VOLUME))
        self._note(claim, pool, what)

    def _note(self, claim: str, pool: Pool | None, what: str) -> None:
        rows = NO_ROWS if pool is None else pool.rows_of(what.removeprefix(VOLUME))
        self._changes.append(_Change(claim, rows))

    def _pool_of(self, claim: str, what: str) -> Pool | None:
        """The pool from which a volume is given; None for what is made, or was kept for the claim."""
        pool = self._pools.get(class_of(self.storage.claims[claim])) if what.startswith(VOLUME) else None
        return pool if pool is not None and what.removeprefix(VOLUME) in pool else None

    def _mount(self, task: Task, row: int, times: int) -> None:
        self.limits.count(task, row, times)
        for mount in task.volumes:
            claim = self.storage.claims.get(mount.claim)
            if claim is not None and ONE_POD in claim.spec.access_modes:
                pods = self._pods.setdefault(mount.claim, set())
                (pods.add if times > 0 else pods.discard)(task.uid)
