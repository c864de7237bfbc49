"""What is told of a statement's operations: each step, and what is committed, kept or taken back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.observe import AmountRows, BulkTeller, Columns, OnAxes
from stromboli.framework.operation import Entry, Operation
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


class Steps:
    """Tells the lines of statements in a session; what nobody wants costs a comparison."""

    __slots__ = (
        "_allocated", "_allocating", "_binding", "_columns", "_names", "_pipelined", "_removed", "_rows", "_session",
        "_table", "_tasks", "_unpipelined",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self._session, self._table = session, session.table
        self._names = session.table.statics.names
        self._binding, self._allocating = session.tells_all("binding"), session.tells_all("allocating")
        self._allocated, self._pipelined = session.tells_all("after_allocated"), session.tells_all("after_pipelined")
        self._unpipelined, self._removed = session.tells_all("after_unpipelined"), session.tells_all("task_removed")
        self._tasks: Sequence[Task] = ()
        self._rows: Sequence[int] = ()
        self._columns: Columns = {}

    def binding(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` are about to take ``rows``."""
        if self._binding:
            self._binding(len(tasks), self._task_and_node(tasks, rows))

    def come(self, tasks: Sequence[Task], rows: Sequence[int], kind: Operation) -> None:
        """``tasks`` of one template have just taken ``rows``, one after the other."""
        if kind is Operation.ALLOCATE:
            if self._allocated:
                self._tell_amounts(self._allocated, tasks, rows, _later(rows))
        elif self._pipelined:
            self._tell_amounts(self._pipelined, tasks, rows)

    def objected(self, task: Task, row: int, kind: Operation, errors: Sequence[object]) -> None:
        """Handlers have objected to the placement of ``task``."""
        if say := self._session.tells("allocate_callback_failed"):
            step = "allocating" if kind is Operation.ALLOCATE else "pipeline"
            for error in errors:
                say(task=task, node=self._names[row], step=step, session=self._session.uid, error=error)

    def accepted(self, count: int, kind: Operation) -> None:
        """No handler has objected to ``count`` placements."""
        if self._allocating and kind is Operation.ALLOCATE:
            self._allocating(count, {})

    def left(self, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        """``tasks``, until now of ``status``, have just left ``rows``."""
        if status is TaskStatus.Pipelined:
            if self._unpipelined:
                self._tell_amounts(self._unpipelined, tasks, rows)
        elif self._removed:
            self._removed(len(tasks), {"name": [task.name for task in tasks], "node": self._nodes(rows)})

    def decided(self, key: str, entries: Sequence[Entry]) -> None:
        """``key``, one of committing, discarding and keeping, and below it every operation that it is about."""
        if say := self._session.tells(key):
            say()
            for kind, same in groupby(entries, lambda entry: entry.kind):
                self._operations(kind, list(same))

    def _operations(self, kind: Operation, entries: list[Entry]) -> None:
        if say := self._session.tells_all(f"{str(kind).lower()}_operation"):
            tasks = entries[0].tasks if len(entries) == 1 else [task for entry in entries for task in entry.tasks]
            say(len(tasks), self._task_and_node(tasks, [row for entry in entries for row in entry.rows]))

    def _task_and_node(self, tasks: Sequence[Task], rows: Sequence[int]) -> Columns:
        """The columns of ``tasks`` and ``rows``; those of the last tasks are remembered, being told again and again."""
        if tasks is not self._tasks or rows != self._rows:
            self._columns = {"task": [task.key for task in tasks], "node": self._nodes(rows)}
            self._tasks, self._rows = tasks, rows
        return self._columns

    def _nodes(self, rows: Sequence[int]) -> list[str]:
        return list(map(self._names.__getitem__, rows))

    # ------------------------------------------------------------------ amounts

    def _tell_amounts(
        self, say: BulkTeller, tasks: Sequence[Task], rows: Sequence[int], later: list[int] | None = None
    ) -> None:
        """Tell what the rows held after each task; ``later`` says how many tasks of the same row came after it."""
        amounts = self._of_row(rows[0]) if len(rows) == 1 else self._of_rows(tasks[0], rows, later)
        say(len(tasks), {**self._task_and_node(tasks, rows), **amounts})

    def _of_row(self, row: int) -> Columns:
        table = self._table
        used = table.used[:, row]
        amounts = {"idle": table.alloc[:, row] - used, "used": used, "releasing": table.releasing[:, row]}
        return {name: (OnAxes(table.axes, tuple(values.tolist())),) for name, values in amounts.items()}

    def _of_rows(self, task: Task, rows: Sequence[int], later: list[int] | None) -> Columns:
        table, index = self._table, np.asarray(rows, dtype=np.intp)
        used = table.used.take(index, axis=1)
        if later is not None:
            used -= self._session.ledger.arrays(task.template)[0][:, None] * np.array(later, dtype=np.int64)
        releasing = table.releasing.take(index, axis=1)
        return {
            "idle": self._column(table.alloc.take(index, axis=1) - used),
            "used": self._column(used),
            "releasing": self._column(releasing if releasing.any() else releasing[:, :1]),
        }

    def _column(self, amounts: Ints) -> AmountRows:
        return AmountRows(self._table.axes, amounts.T)


def _later(rows: Sequence[int]) -> list[int] | None:
    """For each place of ``rows`` how often its row comes again after it; None where no row comes twice."""
    if len(set(rows)) == len(rows):
        return None
    seen: dict[int, int] = {}
    later = []
    for row in reversed(rows):
        later.append(seen.get(row, 0))
        seen[row] = later[-1] + 1
    return later[::-1]
