"""What is told of a statement's operations: each step, and what is committed, kept or taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from stromboli.framework.observe import AmountRows, Columns, OnAxes, OneOrMany
from stromboli.framework.operation import Entry, Operation
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


class Steps:
    """Tells the lines of statements in a session; what nobody wants costs a comparison."""

    __slots__ = (
        "_allocated", "_allocating", "_binding", "_columns", "_decided", "_names", "_operations", "_pipelined",
        "_removed", "_rows", "_session", "_states", "_table", "_tasks", "_unpipelined",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        def tells(key: str) -> OneOrMany:
            return OneOrMany(session.tells(key), session.tells_all(key))

        self._session, self._table, self._names = session, session.table, session.table.statics.names
        self._binding, self._allocating = tells("binding"), tells("allocating")
        self._allocated, self._pipelined = tells("after_allocated"), tells("after_pipelined")
        self._unpipelined, self._removed = tells("after_unpipelined"), tells("task_removed")
        self._decided = {key: session.tells(key) for key in ("committing", "keeping", "discarding")}
        self._operations = {kind: tells(f"{kind}_operation".lower()) for kind in _RECORDED}
        self._tasks: Sequence[Task] = ()
        self._rows: Sequence[int] = ()
        self._columns: Columns = {}
        self._states: dict[tuple[bytes, bytes, bytes], Mapping[str, OnAxes]] = {}

    # ------------------------------------------------------------------ steps

    def binding(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` are about to take ``rows``."""
        if self._binding:
            self._tell(self._binding, tasks, rows)

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
            if count == 1:
                self._allocating.one()
            else:
                self._allocating.many(count, {})

    def left(self, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        """``tasks``, until now of ``status``, have just left ``rows``."""
        if status is TaskStatus.Pipelined:
            if self._unpipelined:
                self._tell_amounts(self._unpipelined, tasks, rows)
        elif self._removed:
            self._removed.many(len(tasks), {"name": [task.name for task in tasks], "node": self._nodes(rows)})

    # ------------------------------------------------------------------ decisions

    def decided(self, key: str, entries: Sequence[Entry]) -> None:
        """``key``, one of committing, discarding and keeping, and below it every operation that it is about."""
        if say := self._decided[key]:
            say()
            if len(entries) == 1:
                self._tell(self._operations[entries[0].kind], entries[0].tasks, entries[0].rows)
                return
            for kind, same in groupby(entries, attrgetter("kind")):
                of_kind = list(same)
                tasks = [task for entry in of_kind for task in entry.tasks]
                self._tell(self._operations[kind], tasks, [row for entry in of_kind for row in entry.rows])

    # ------------------------------------------------------------------ telling

    def _tell(self, say: OneOrMany, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        if len(rows) == 1:
            say.one(task=tasks[0], node=self._names[rows[0]])
        else:
            say.many(len(rows), self._task_and_node(tasks, rows))

    def _task_and_node(self, tasks: Sequence[Task], rows: Sequence[int]) -> Columns:
        """The columns of ``tasks`` and ``rows``; those of the last tasks are remembered, being told again and again."""
        if tasks is not self._tasks or rows is not self._rows:
            self._columns = {"task": list(map(_KEY, tasks)), "node": self._nodes(rows)}
            self._tasks, self._rows = tasks, rows
        return self._columns

    def _nodes(self, rows: Sequence[int]) -> list[str]:
        return list(map(self._names.__getitem__, rows))

    # ------------------------------------------------------------------ amounts

    def _tell_amounts(
        self, say: OneOrMany, tasks: Sequence[Task], rows: Sequence[int], later: list[int] | None = None
    ) -> None:
        """Tell what the rows held after each task; ``later`` says how many tasks of the same row came after it."""
        if len(rows) == 1:
            say.one(task=tasks[0], node=self._names[rows[0]], **self._of_row(rows[0]))
        else:
            say.many(len(rows), {**self._task_and_node(tasks, rows), **self._of_rows(tasks[0], rows, later)})

    def _of_row(self, row: int) -> Mapping[str, OnAxes]:
        table = self._table
        return self._state(table.alloc[:, row], table.used[:, row], table.releasing[:, row])

    def _state(self, alloc: Ints, used: Ints, releasing: Ints) -> Mapping[str, OnAxes]:
        """What a row holds; nodes of one kind pass through few states, so each is put into words once."""
        state = alloc.tobytes(), used.tobytes(), releasing.tobytes()
        told = self._states.get(state)
        if told is None:
            if len(self._states) >= _STATES:
                self._states.clear()
            axes = self._table.axes
            amounts = {"idle": alloc - used, "used": used, "releasing": releasing}
            told = self._states[state] = {
                name: OnAxes(axes, tuple(amount.tolist())) for name, amount in amounts.items()
            }
        return told

    def _of_rows(self, task: Task, rows: Sequence[int], later: list[int] | None) -> Columns:
        """What rows hold; a gang often spreads over nodes that hold the same, and then one counts for all."""
        table, index = self._table, np.asarray(rows, dtype=np.intp)
        picked = [amounts.take(index, axis=1) for amounts in (table.alloc, table.used, table.releasing)]
        alloc, used, releasing = held = np.concatenate(picked).reshape(3, -1, index.size)
        if later is not None:
            used -= self._session.ledger.arrays(task.template)[0][:, None] * np.array(later, dtype=np.int64)
        if (held == held[:, :, :1]).all():
            state = self._state(alloc[:, 0], used[:, 0], releasing[:, 0])
            return {name: (amount,) for name, amount in state.items()}
        amounts = {"idle": alloc - used, "used": used, "releasing": releasing if releasing.any() else releasing[:, :1]}
        return {name: AmountRows(table.axes, amount.T) for name, amount in amounts.items()}


_RECORDED = tuple(Operation)

_KEY: Final = attrgetter("key")

_STATES: Final = 1 << 12
"""Different states of nodes that are remembered."""


def _later(rows: Sequence[int]) -> list[int] | None:
    """For each place of ``rows`` how often its row comes again after it; None where no row comes twice."""
    if len(rows) == 1 or len(set(rows)) == len(rows):
        return None
    seen: dict[int, int] = {}
    later = []
    for row in reversed(rows):
        later.append(seen.get(row, 0))
        seen[row] = later[-1] + 1
    return later[::-1]
