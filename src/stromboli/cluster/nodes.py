"""The nodes of a cluster and the tasks on them, whatever order their events come in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from stromboli.cluster.decoding.shards import ShardStore
from stromboli.model.resources.axes import Axes, Vector, add_to
from stromboli.model.snapshot import NodeTasks
from stromboli.model.spec import NodeSpec
from stromboli.model.status import TaskStatus
from stromboli.model.table import AMOUNTS, NodeStatics, NodeTable
from stromboli.model.task import Task

LARGEST = 2**63 - 1
_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key of a name in which numbers count as numbers: ``n2`` before ``n10``; equal ones by plain text."""
    parts = _DIGITS.split(name)
    return tuple((1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts)), name


class NodeEntry:
    """One node, or the place of one whose object has not come yet: what it offers, and the tasks on it, added up."""

    __slots__ = ("nonzero", "offer", "pipelined", "place", "releasing", "requested", "spec", "tasks", "used")

    def __init__(self, name: str = "") -> None:
        self.place = natural(name)
        self.spec: NodeSpec | None = None
        self.offer: Vector = ()
        self.used: list[int] = []
        self.releasing: list[int] = []
        self.pipelined: list[int] = []
        self.requested: list[int] = []
        self.nonzero: list[int] = [0, 0]
        self.tasks = NodeTasks()

    def count(self, task: Task, times: int) -> None:
        """Add ``task`` to the sums, or with ``times`` -1 take it away."""
        vector = task.template.vector
        if task.status is TaskStatus.Pipelined:
            add_to(self.pipelined, vector, times)
        else:
            add_to(self.used, vector, times)
            if task.status is TaskStatus.Releasing:
                add_to(self.releasing, vector, times)
        add_to(self.requested, vector, times)
        add_to(self.nonzero, task.template.nonzero, times)

    def balanced(self) -> bool:
        """Whether the sums are those of the tasks."""
        fresh = NodeEntry()
        for task in self.tasks.values():
            fresh.count(task, 1)
        return all(_same(getattr(self, name), getattr(fresh, name)) for name in _SUMS)


_SUMS = ("used", "releasing", "pipelined", "requested", "nonzero")


def _same(left: list[int], right: list[int]) -> bool:
    """Whether two sums are equal; what one lacks counts as zero."""
    return all(a == b for a, b in zip_longest(left, right, fillvalue=0))


class NodeStore:
    """Nodes by name.  A node whose object is unknown keeps its tasks and is left out of snapshots.

    ``shards`` say which are this scheduler's own.
    """

    __slots__ = ("_axes", "_changed", "_entries", "_moved", "_rows", "_statics", "_table", "_tasks", "shards")

    def __init__(self, axes: Axes) -> None:
        self._axes, self.shards = axes, ShardStore()
        self._entries: dict[str, NodeEntry] = {}
        self._rows: list[NodeEntry] | None = None
        self._statics: NodeStatics | None = None
        self._table: NodeTable | None = None
        self._changed: dict[str, None] = {}
        self._tasks: list[NodeTasks] = []
        self._moved: dict[str, None] = {}

    def set_node(self, spec: NodeSpec, offer: Vector) -> None:
        """Take a node's object in, new or changed."""
        entry = self._entry(spec.name)
        if entry.spec is None:
            self._rows = None
        if entry.spec != spec:
            self._statics = None
        entry.spec, entry.offer = spec, offer

    def has(self, name: str) -> bool:
        """Whether the object of a node is known."""
        entry = self._entries.get(name)
        return entry is not None and entry.spec is not None

    def drop_node(self, name: str) -> None:
        """Forget a node's object; tasks that are still on it keep its place."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.spec = None
            self._rows = self._statics = None
            if not entry.tasks:
                del self._entries[name]

    def add(self, task: Task) -> None:
        """Put ``task`` on its node.  Raises OverflowError, nothing changed, when the node's sums leave 64 bits."""
        entry = self._entry(task.node_name)
        entry.count(task, 1)
        if max(*entry.requested, *entry.nonzero) > LARGEST:
            entry.count(task, -1)
            raise OverflowError(task.node_name)
        entry.tasks = NodeTasks(entry.tasks) if self._table is not None else entry.tasks
        entry.tasks[task.key] = task

    def remove(self, task: Task) -> None:
        """Take ``task`` off its node."""
        entry = self._entries[task.node_name]
        entry.count(task, -1)
        entry.tasks = NodeTasks(entry.tasks)
        entry.tasks.pop(task.key, None)
        self._changed[task.node_name] = self._moved[task.node_name] = None
        if entry.spec is None and not entry.tasks:
            del self._entries[task.node_name]

    def exchange(self, old: Task, new: Task) -> None:
        """Put ``new`` in the place of ``old``, which is counted as it is, on the same node."""
        entry = self._entry(new.node_name)
        entry.tasks = NodeTasks(entry.tasks)
        entry.tasks.pop(old.key, None)  # as if one had left and the other come: it is the last one now
        entry.tasks[new.key] = new

    def _entry(self, name: str) -> NodeEntry:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = NodeEntry(name)
        self._changed[name] = self._moved[name] = None
        return entry

    def entries(self) -> Mapping[str, NodeEntry]:
        """What is known of each node, by name; only to look at."""
        return self._entries

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> NodeTable:
        """A table of all known nodes, in natural order of their names."""
        table = self._laid_out()
        self._renew(table, self._changed)
        self._changed = {}
        return table.copy()

    def catch_up(self, most: int) -> bool:
        """Renew ``most`` rows ahead of the next snapshot; False where it has no more than that to renew by itself."""
        table = self._laid_out()
        if len(self._changed) <= most:
            return False
        some = list(islice(self._changed, most))
        self._renew(table, some)
        for name in some:
            del self._changed[name]
        return True

    def _laid_out(self) -> NodeTable:
        """The table with a row for each known node; rows of those that have changed are as they were, or zero."""
        if self._rows is None:
            known = [entry for entry in self._entries.values() if entry.spec is not None]
            self._rows = sorted(known, key=attrgetter("place"))
            self._tasks = []
        if self._statics is None:
            self._statics = NodeStatics([entry.spec for entry in self._rows if entry.spec is not None])
            self._table = _moved(self._table, self._statics) if self._table is not None else None
        if self._table is None or len(self._axes) != self._table.alloc.shape[0]:
            self._table = _empty(self._axes, self._statics)
            self._changed = dict.fromkeys(self._entries)
        return self._table

    def _renew(self, table: NodeTable, changed: Iterable[str]) -> None:
        row = table.statics.row
        names = [name for name in changed if name in row]
        if names:
            rows = [row[name] for name in names]
            for column, amounts in _columns(self._axes, [self._entries[name] for name in names]):
                getattr(table, column)[:, rows] = amounts

    def tasks(self) -> Sequence[NodeTasks]:
        """Tasks on each node of the last snapshot, row by row."""
        if not self._tasks:
            self._tasks = [entry.tasks for entry in self._rows or ()]
        elif self._statics is not None:
            row = self._statics.row
            for name in self._moved:
                if name in row:
                    self._tasks[row[name]] = self._entries[name].tasks
        self._moved.clear()
        return self._tasks.copy()


def _amounts(entry: NodeEntry) -> tuple[Vector, ...]:
    return entry.offer, entry.used, entry.releasing, entry.pipelined, entry.requested, entry.nonzero


def _full(amounts: Vector, length: int) -> Vector:
    return amounts if len(amounts) == length else [*amounts, *([0] * (length - len(amounts)))]


def _moved(table: NodeTable, statics: NodeStatics) -> NodeTable | None:
    """The same amounts in the rows of ``statics``; those of nodes that are new are yet to be filled in."""
    if not len(table):
        return None
    old = table.statics.row
    places = np.array([old.get(name, 0) for name in statics.names], dtype=np.intp)
    return NodeTable(table.axes, statics, {name: getattr(table, name).take(places, axis=1) for name in AMOUNTS})


def _empty(axes: Axes, statics: NodeStatics) -> NodeTable:
    length = {name: 2 if name == "nonzero" else len(axes) for name in AMOUNTS}
    shapes = {name: (length[name], len(statics.names)) for name in AMOUNTS}
    return NodeTable(axes, statics, {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()})


def _columns(axes: Axes, entries: list[NodeEntry]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The amounts of ``entries`` by their names: a row for each resource, a column for each entry."""
    by_name = zip(*(_amounts(entry) for entry in entries), strict=True) if entries else [()] * len(AMOUNTS)
    for name, vectors in zip(AMOUNTS, by_name, strict=True):
        length = 2 if name == "nonzero" else len(axes)
        flat = list(chain.from_iterable(_full(vector, length) for vector in vectors))
        yield name, np.array(flat, dtype=np.int64).reshape(len(entries), length).T
