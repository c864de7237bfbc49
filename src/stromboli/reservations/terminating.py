"""Nodes with terminating pods: predicates are evaluated as if these pods had left already.

A terminating pod keeps its ports, and counts as a neighbour, until it has left.  That excludes a pod that would start
now, but not a pod that holds room beyond its session and starts after the others have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.engine.placement import Choice
from stromboli.framework.engine.rows import Bools
from stromboli.framework.engine.shards import own_first
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import RELEASING
from stromboli.model.table import Rows
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState


def find(session: SessionState, task: Task, within: Bools | None = None) -> Choice | None:
    """The best node for ``task`` as things stand, else, if it may wait, the best once terminating pods have left."""
    found = session.placer.place(task, within)
    return found or (None if session.reservations is None else session.reservations.terminating.place(task, within))


def takes(session: SessionState, task: Task, row: int) -> bool:
    """Whether predicates accept ``task`` on ``row`` now, or, if it may wait, once terminating pods have left."""
    book = session.reservations
    return session.placer.passes(task, row) or (book is not None and book.terminating.passes(task, row))


class Terminating:
    """The pods that were terminating when the session opened; pods evicted in the session count as gone anyway."""

    def __init__(self, session: SessionState) -> None:
        self._session = session

    @cached_property
    def rows(self) -> Rows:
        """The rows with terminating pods."""
        node_tasks = self._session.snapshot.node_tasks
        releasing: Rows = np.flatnonzero(self._session.snapshot.table.releasing.any(axis=0))
        return releasing[[bool(node_tasks[row] and self._on(row)) for row in releasing.tolist()]]

    def place(self, task: Task, within: Bools | None = None) -> Choice | None:
        """The best node for ``task`` among those with terminating pods, once these have left; None if there is none.

        It is used for tasks that no node accepts as things stand.
        """
        if not self.rows.size:
            return None
        placer, members = self._session.placer, np.zeros(len(self._session.table), dtype=bool)
        for row in self._hopeful(task, within):
            members[row] = self.passes(task, row)
        for part in own_first(members, placer.own):
            if part.any():
                return Choice([placer.choose(task, part)], OperationKind.PIPELINE)
        return None

    def passes(self, task: Task, row: int) -> bool:
        """Whether predicates accept ``task`` on ``row`` once its terminating pods have left; False without such."""
        if not (leaving := self._on(row)):
            return False
        with self._session.ledger.pretend_removed(leaving, row):
            return self._session.placer.passes(task, row)

    def _hopeful(self, task: Task, within: Bools | None) -> list[int]:
        """The rows with terminating pods that will have room for ``task`` and are not excluded by a lasting reason."""
        session, rows = self._session, self.rows
        table, columns = session.table, np.array(session.axes.deciding(task.request), dtype=np.intp)
        want = session.ledger.arrays(task.template)[0][columns][:, None]
        found = table.view(rows).fitting(want, columns)[1] & np.asarray(session.placer.curable(task), dtype=bool)[rows]
        if within is not None:
            found &= within[rows]
        hopeful: list[int] = rows[found].tolist()
        return hopeful

    def _on(self, row: int) -> Sequence[Task]:
        return [task for task in self._session.snapshot.node_tasks[row].values() if task.status is RELEASING]
