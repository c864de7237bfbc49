"""Nodes where somebody is ending: predicates are asked as if those had gone already.

A pod that is being deleted keeps its ports and its place among its neighbours until it has gone.  That speaks against a
pod that would start now, but not against one that holds room beyond its session and starts when they have gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.operation import Operation
from stromboli.framework.placement import Choice
from stromboli.framework.rows import Bools
from stromboli.model.job import RELEASING
from stromboli.model.table import Rows
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


def find(session: Session, task: Task, within: Bools | None = None) -> Choice | None:
    """The best node for ``task``: as things stand, else, if it may wait so long, once others have ended there."""
    found = session.placer.place(task, within)
    return found or (None if session.ending is None else session.ending.place(task, within))


def takes(session: Session, task: Task, row: int) -> bool:
    """Whether predicates let ``task`` on ``row``: now, or, if it may wait so long, when others have ended there."""
    return session.placer.passes(task, row) or (session.ending is not None and session.ending.passes(task, row))


class Ending:
    """The pods of a session that were being deleted when it opened; whom it evicts itself counts as gone anyway."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def rows(self) -> Rows:
        """The rows on which anybody was ending."""
        node_tasks = self._session.snapshot.node_tasks
        releasing: Rows = np.flatnonzero(self._session.snapshot.table.releasing.any(axis=0))
        return releasing[[bool(node_tasks[row] and self._on(row)) for row in releasing.tolist()]]

    def place(self, task: Task, within: Bools | None = None) -> Choice | None:
        """The best node that takes ``task`` once everybody who is ending there has gone; None if there is none.

        It is asked for a task that no node takes as things stand.
        """
        if not self.rows.size:
            return None
        members = np.zeros(len(self._session.table), dtype=bool)
        for row in self._hopeful(task, within):
            members[row] = self.passes(task, row)
        return Choice([self._session.placer.choose(task, members)], Operation.PIPELINE) if members.any() else None

    def passes(self, task: Task, row: int) -> bool:
        """Whether predicates let ``task`` on ``row`` once those who are ending there have gone; False if nobody is."""
        if not (going := self._on(row)):
            return False
        with self._gone(going, row):
            return self._session.placer.passes(task, row)

    def _hopeful(self, task: Task, within: Bools | None) -> list[int]:
        """The rows where somebody is ending that will have the room, and that no lasting reason rules out."""
        session, rows = self._session, self.rows
        table, columns = session.table, np.array(session.axes.deciding(task.request), dtype=np.intp)
        want = session.ledger.arrays(task.template)[0][columns][:, None]
        future = table.view(rows).future[columns]
        found = (future >= want).all(axis=0) & np.asarray(session.placer.curable(task), dtype=bool)[rows]
        if within is not None:
            found &= within[rows]
        hopeful: list[int] = rows[found].tolist()
        return hopeful

    def _on(self, row: int) -> Sequence[Task]:
        return [task for task in self._session.snapshot.node_tasks[row].values() if task.status is RELEASING]

    @contextmanager
    def _gone(self, tasks: Sequence[Task], row: int) -> Iterator[None]:
        """Within the block ``tasks`` have left ``row`` for all who look at the pods on nodes; no amount changes."""
        self._session.ledger.seem(tasks, row, -1)
        try:
            yield
        finally:
            self._session.ledger.seem(tasks, row, 1)
