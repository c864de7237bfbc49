"""What the plugin predicates reports: refusals node by node, what is skipped, and tasks that are placed or removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from stromboli.filters.columns import Bools, Masks
from stromboli.model.resources.axes import PODS
from stromboli.model.table import NodeRows
from stromboli.model.task import Task

Tells = Callable[[str], Callable[..., None] | None]
"""Gives what to call when a key of the catalogue happens; None when no observer wants it."""

EVENTS: Final = ("predicate_allocate", "predicate_allocated", "predicate_deallocate", "predicate_deallocated")


class FilterLines:
    """Reports the lines that an observer wants, of nodes by their ``names`` in the order of rows.

    ``events`` is whether an observer wants placements and removals, ``wants_skipped`` whether one wants the names of
    filters that have nothing to ask, ``wants_full`` whether one wants nodes that hold as many pods as they may.
    """

    __slots__ = ("_full", "_names", "_skipped", "_tells", "events", "wants_full", "wants_skipped")

    def __init__(self, tells: Tells, names: Sequence[str]) -> None:
        self._tells, self._names = tells, names
        self.events = any(tells(key) for key in EVENTS)
        self._full, self._skipped = tells("predicate_pod_number"), tells("predicate_skipped")
        self.wants_full = self._full is not None
        self.wants_skipped = self._skipped is not None

    def pod_number(self, task: Task, nodes: NodeRows, room: Bools) -> None:
        """Rows without ``room`` hold as many pods as they may."""
        if self._full is None or room.all():
            return
        rows, offered, held = nodes.rows.tolist(), nodes.alloc[PODS].tolist(), nodes.requested[PODS].tolist()
        for place in np.flatnonzero(~room).tolist():
            node = self._names[rows[place]]
            self._full(task=task, node=node, allocatable=offered[place], existing=held[place])

    def proportional(self, task: Task, nodes: NodeRows, masks: Masks) -> None:
        """Rows with a mask would keep too little for their idle devices."""
        if say := self._tells("predicate_proportional"):
            for row, mask in zip(nodes.rows.tolist(), masks.tolist(), strict=True):
                say(task=task, node=self._names[row], fit=not mask)

    def cached(self, task: Task, nodes: NodeRows, masks: Masks) -> None:
        """Rows with a mask refuse all tasks of the template."""
        if say := self._tells("predicate_cached"):
            for row, mask in zip(nodes.rows.tolist(), masks.tolist(), strict=True):
                say(node=self._names[row], name=task.name, fit=not mask)

    def uncached(self, task: Task) -> None:
        """The task says nothing of its template."""
        if say := self._tells("predicate_uncached"):
            say(name=task.name)

    def skipped(self, task: Task, filters: Iterable[str]) -> None:
        """Filters, by the names of Kubernetes, that have nothing to ask of the task."""
        if self._skipped:
            for name in filters:
                self._skipped(name=name, task=task)

    def came(self, task: Task) -> None:
        """The task has taken a place on its node."""
        self._event("predicate_allocate", "predicate_allocated", task)

    def left(self, task: Task) -> None:
        """The task leaves its node."""
        self._event("predicate_deallocate", "predicate_deallocated", task)

    def _event(self, begun: str, done: str, task: Task) -> None:
        if say := self._tells(begun):
            say(node=task.node_name)
        if say := self._tells(done):
            say(task=task, node=task.node_name)
