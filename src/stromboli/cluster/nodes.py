"""The nodes of a cluster and the tasks on them, whatever order their events come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stromboli.model.axes import Axes, Vector, add_to
from stromboli.model.spec import NodeSpec
from stromboli.model.status import TaskStatus
from stromboli.model.table import AMOUNTS, NodeStatics, NodeTable
from stromboli.model.task import Task

LARGEST = 2**63 - 1


class NodeEntry:
    """One node, or the place of one whose object has not come yet: what it offers, and the tasks on it, added up."""

    __slots__ = ("nonzero", "offer", "pipelined", "releasing", "requested", "spec", "tasks", "used")

    def __init__(self) -> None:
        self.spec: NodeSpec | None = None
        self.offer: Vector = ()
        self.used: list[int] = []
        self.releasing: list[int] = []
        self.pipelined: list[int] = []
        self.requested: list[int] = []
        self.nonzero: list[int] = [0, 0]
        self.tasks: dict[str, Task] = {}

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


class NodeStore:
    """Nodes by name.  A node whose object is unknown keeps its tasks and is left out of snapshots."""

    __slots__ = ("_axes", "_changed", "_entries", "_rows", "_statics", "_table")

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._entries: dict[str, NodeEntry] = {}
        self._rows: list[NodeEntry] = []
        self._statics: NodeStatics | None = None
        self._table: NodeTable | None = None
        self._changed: dict[str, None] = {}

    def set_node(self, spec: NodeSpec, offer: Vector) -> None:
        """Take a node's object in, new or changed."""
        entry = self._entry(spec.name)
        if entry.spec != spec:
            self._statics = None
        entry.spec, entry.offer = spec, offer

    def drop_node(self, name: str) -> None:
        """Forget a node's object; tasks that are still on it keep its place."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.spec = None
            self._statics = None
            if not entry.tasks:
                del self._entries[name]

    def add(self, task: Task) -> None:
        """Put ``task`` on its node.  Raises OverflowError, nothing changed, when the node's sums leave 64 bits."""
        entry = self._entry(task.node_name)
        entry.count(task, 1)
        if max(*entry.requested, *entry.nonzero) > LARGEST:
            entry.count(task, -1)
            raise OverflowError(task.node_name)
        entry.tasks = {**entry.tasks, task.key: task} if self._table is not None else entry.tasks
        entry.tasks[task.key] = task

    def remove(self, task: Task) -> None:
        """Take ``task`` off its node."""
        entry = self._entries[task.node_name]
        entry.count(task, -1)
        entry.tasks = {key: other for key, other in entry.tasks.items() if key != task.key}
        self._changed[task.node_name] = None
        if entry.spec is None and not entry.tasks:
            del self._entries[task.node_name]

    def _entry(self, name: str) -> NodeEntry:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = NodeEntry()
        self._changed[name] = None
        return entry

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, order: Callable[[str], Any]) -> NodeTable:
        """A table of all known nodes, ordered by ``order`` of their names."""
        if self._statics is None:
            known = sorted((name for name, entry in self._entries.items() if entry.spec is not None), key=order)
            self._rows = [self._entries[name] for name in known]
            self._statics = NodeStatics([entry.spec for entry in self._rows if entry.spec is not None])
            self._table = None
        if self._table is None or len(self._axes) != self._table.alloc.shape[0]:
            self._table = _table(self._axes, self._statics, self._rows)
        else:
            self._renew(self._table)
        self._changed = {}
        return self._table.copy()

    def _renew(self, table: NodeTable) -> None:
        for name in self._changed:
            row = table.statics.row.get(name)
            if row is not None:
                entry = self._entries[name]
                for column, amounts in zip(AMOUNTS, _amounts(entry), strict=True):
                    getattr(table, column)[:, row] = _full(amounts, len(self._axes) if column != "nonzero" else 2)

    def tasks(self) -> Sequence[Mapping[str, Task]]:
        """Tasks on each node of the last snapshot, row by row."""
        return [entry.tasks for entry in self._rows]


def _amounts(entry: NodeEntry) -> tuple[Vector, ...]:
    return entry.offer, entry.used, entry.releasing, entry.pipelined, entry.requested, entry.nonzero


def _full(amounts: Vector, length: int) -> list[int]:
    return [*amounts, *([0] * (length - len(amounts)))]


def _table(axes: Axes, statics: NodeStatics, entries: list[NodeEntry]) -> NodeTable:
    columns = zip(*(_amounts(entry) for entry in entries), strict=True) if entries else [()] * len(AMOUNTS)
    arrays = {}
    for name, rows in zip(AMOUNTS, columns, strict=True):
        length = 2 if name == "nonzero" else len(axes)
        made = np.array([_full(row, length) for row in rows], dtype=np.int64).reshape(len(entries), length)
        arrays[name] = np.ascontiguousarray(made.T)
    return NodeTable(axes, statics, arrays)
