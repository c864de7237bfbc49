"""The filter of claimed devices: DynamicResources."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from stromboli.filters.columns import Masks, picked
from stromboli.filters.devices.book import DeviceBook
from stromboli.filters.devices.search import TOO_LONG
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.model.job import PENDING
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

FILTER: Final = "DynamicResources"
REFUSALS: Final = tuple(
    Reason(text, resolvable=False, plugin=FILTER)
    for text in ("cannot allocate all claims", "resourceclaim not available on the node", TOO_LONG)
)
MOST_TEXTS: Final = 64
"""Texts of errors that one session tells apart; what goes beyond is told as "cannot allocate all claims"."""


class ClaimFilters:
    """The filter as one session asks it, if it is ``on``."""

    def __init__(self, session: ClusterView, on: bool) -> None:
        self._session = session
        self.used = on and any(template.spec.resource_claims for template in session.snapshot.all_templates() or ())

    @cached_property
    def _book(self) -> DeviceBook:
        session = self._session
        shares = not session.compat.asks("claims-under-way")
        groups = {(job.uid, key): job.group.uid for job in session.jobs.peek() for key in job.group.claims}
        return DeviceBook(session.snapshot.devices, session.table, self._tasks(), shares=shares, groups=groups)

    def _tasks(self) -> Iterator[Task]:
        for job in self._session.jobs.peek():
            yield from job.tasks.values()

    @cached_property
    def errors(self) -> tuple[Reason, ...]:
        """What expressions of pending pods' claims get wrong; they are tried out for this."""
        texts: dict[str, None] = {}
        for job in self._session.active_jobs():
            for task in job.of(PENDING):
                if task.claims and not self._book.problem(task):
                    texts.update(dict.fromkeys(self._book.errors(task).values()))
        return tuple(Reason(text, code=StatusCode.ERROR, plugin=FILTER) for text in list(texts)[:MOST_TEXTS])

    def wanted(self, task: Task) -> Hashable:
        """What the answers depend on."""
        return self._book.key(task) if task.claims else None

    def named(self, task: Task) -> Hashable:
        """What the texts of errors depend on."""
        return (self._book.key(task), task.claims) if task.claims else None

    def problem(self, task: Task) -> Reason | None:
        """What rules out every node at once."""
        if not self.used or not (task.claims or task.lacks_claims):
            return None
        text = self._book.problem(task)
        return Reason(f"plugin {FILTER} pre-predicates failed {text}", code=StatusCode.ERROR) if text else None

    def refusals(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Rows whose devices do, as bits that number :data:`REFUSALS`."""
        if not task.claims or (found := self._book.masks(task)) is None:
            return None
        told = self._told(task)
        if told:
            found = found.copy()
            found[list(told)] = 0
        return picked(found, nodes)

    def scores(self, task: Task, nodes: NodeRows) -> Ints | None:
        """How good the alternatives are that claims get on each row."""
        found = self._book.scores(task) if task.claims and not self._book.problem(task) else None
        return None if found is None else picked(found, nodes)

    def failures(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Rows where an expression failed, as bits that number :attr:`errors`."""
        told = self._told(task) if task.claims else {}
        if not told:
            return None
        masks = np.zeros(len(self._session.table), dtype=np.uint64)
        for row, bit in told.items():
            masks[row] = np.uint64(1 << bit)
        return picked(masks, nodes)

    def _told(self, task: Task) -> dict[int, int]:
        """Rows whose error is one of :attr:`errors`, with its number."""
        if not self.errors:
            return {}
        numbers = {reason.text: number for number, reason in enumerate(self.errors)}
        return {row: numbers[text] for row, text in self._book.errors(task).items() if text in numbers}

    def placed(self, event: TaskEvent) -> None:
        """A pod has been placed: its claims get devices there."""
        task = event.task
        row = self._session.table.statics.row.get(task.node_name) if self.used and task.claims else None
        if row is None:
            return
        given = self._book.place(task, row)
        if given is None:
            event.err = f"the claims of pod {task.key} can no longer be allocated on node {task.node_name}"
        else:
            self._session.ledger.bind_claims[task.uid] = given

    def removed(self, task: Task) -> None:
        """A pod has left its place, or is about to."""
        if self.used and task.claims:
            self._book.leave(task)
            self._session.ledger.bind_claims.pop(task.uid, None)
