"""Events of a statement: each operation, and what is committed, kept or discarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from stromboli.framework.statement.counters import Counters
from stromboli.framework.statement.operation_kind import OperationKind, Recorded
from stromboli.framework.statement.underflow import tell_future_short
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints
from stromboli.model.task import Task
from stromboli.narration.observe import AmountRows, Columns, OnAxes, OneOrMany

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class StatementEvents:
    """Reports the events of a session's statements; an event without an observer costs one comparison.

    ``counters`` are reported when the session closes.  While the narrator is mute, nothing reaches an observer.
    """

    __slots__ = (
        "_allocated", "_allocating", "_binding", "_columns", "_decided", "_mute", "_names", "_operations",
        "_pipelined", "_removed", "_rows", "_session", "_short", "_states", "_table", "_tasks", "_unpipelined",
        "counters",
    )  # fmt: skip

    def __init__(self, session: ClusterView) -> None:
        def tells(key: str) -> OneOrMany:
            return OneOrMany(session.tells(key), session.narrator.tells_all(key))

        self._session, self._mute = session, session.narrator.mute
        self.counters = Counters(session)
        self._table, self._names = session.table, session.table.statics.names
        self._binding, self._allocating = tells("binding"), tells("allocating")
        self._allocated, self._pipelined = tells("after_allocated"), tells("after_pipelined")
        self._unpipelined, self._removed = tells("after_unpipelined"), tells("task_removed")
        self._short = session.tells("resources_insufficient") is not None
        self._decided = {key: session.tells(key) for key in ("committing", "keeping", "discarding")}
        self._operations = {kind: tells(f"{kind}_operation".lower()) for kind in _RECORDED}
        self._tasks: Sequence[Task] = ()
        self._rows: Sequence[int] = ()
        self._columns: Columns = {}
        self._states: dict[tuple[bytes, bytes, bytes], Mapping[str, OnAxes]] = {}

    @property
    def tells_each(self) -> bool:
        """Whether anything is told of each task that takes idle room."""
        return bool(self._binding or self._allocating or self._allocated)

    # ------------------------------------------------------------------ operations

    def binding(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` are about to take ``rows``."""
        if self._binding:
            self._tell(self._binding, tasks, rows)

    def allocated(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` of one template have just taken idle room of ``rows``, one after the other."""
        if self._allocated:
            self._tell_amounts(self._allocated, tasks, rows, _later(rows))

    def pipelined(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` of one template have just reserved room on ``rows``."""
        if self._pipelined:
            self._tell_amounts(self._pipelined, tasks, rows)
        if self._short and not self._mute.on:
            for row in dict.fromkeys(rows):
                if min(self._table.future_of(row)) < 0:
                    tell_future_short(self._session, rows)
                    return

    def objected(self, placement: Recorded, step: str, errors: Sequence[object]) -> None:
        """Handlers have objected to ``placement``; ``step`` is the word of the log for it."""
        if say := self._session.tells("allocate_callback_failed"):
            task, node = placement.tasks[0], self._names[placement.rows[0]]
            for error in errors:
                say(task=task, node=node, step=step, session=self._session.uid, error=error)

    def accepted(self, count: int) -> None:
        """No handler has objected to ``count`` allocations."""
        if self._allocating:
            if count == 1:
                self._allocating.one()
            else:
                self._allocating.many(count, {})

    def left(self, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        """``tasks``, which had ``status``, have just left ``rows``."""
        if status is TaskStatus.Pipelined:
            if self._unpipelined:
                self._tell_amounts(self._unpipelined, tasks, rows)
        elif self._removed:
            self._removed.many(len(tasks), {"name": [task.name for task in tasks], "node": self._nodes(rows)})

    # ------------------------------------------------------------------ decisions

    def decided(self, key: str, operations: Sequence[Recorded]) -> None:
        """The decision ``key`` (committing, discarding or keeping), followed by its operations."""
        if say := self._decided[key]:
            say()
            if len(operations) == 1:
                self._tell(self._operations[operations[0].kind], operations[0].tasks, operations[0].rows)
                return
            for kind, same in groupby(operations, attrgetter("kind")):
                of_kind = list(same)
                tasks = [task for operation in of_kind for task in operation.tasks]
                self._tell(self._operations[kind], tasks, [row for operation in of_kind for row in operation.rows])

    # ------------------------------------------------------------------ fields

    def _tell(self, say: OneOrMany, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        if len(rows) == 1:
            say.one(task=tasks[0], node=self._names[rows[0]])
        else:
            say.many(len(rows), self._task_and_node(tasks, rows))

    def _task_and_node(self, tasks: Sequence[Task], rows: Sequence[int]) -> Columns:
        """The columns of ``tasks`` and ``rows``; those of the last tasks are cached, as several events report them."""
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
        """Report what the rows held after each task; ``later`` counts the tasks placed on the same row after it."""
        if len(rows) == 1:
            say.one(task=tasks[0], node=self._names[rows[0]], **self._of_row(rows[0]))
        else:
            say.many(len(rows), {**self._task_and_node(tasks, rows), **self._of_rows(tasks[0], rows, later)})

    def _of_row(self, row: int) -> Mapping[str, OnAxes]:
        table = self._table
        return self._state(table.alloc[:, row], table.used[:, row], table.releasing[:, row])

    def _state(self, alloc: Ints, used: Ints, releasing: Ints) -> Mapping[str, OnAxes]:
        """What a row holds; nodes of one kind pass through few states, so the text of each is cached."""
        state = alloc.tobytes(), used.tobytes(), releasing.tobytes()
        amounts_of = self._states.get(state)
        if amounts_of is None:
            if len(self._states) >= _STATES:
                self._states.clear()
            axes = self._table.axes
            amounts = {"idle": alloc - used, "used": used, "releasing": releasing}
            amounts_of = self._states[state] = {
                name: OnAxes(axes, tuple(amount.tolist())) for name, amount in amounts.items()
            }
        return amounts_of

    def _of_rows(self, task: Task, rows: Sequence[int], later: list[int] | None) -> Columns:
        """What rows hold; a gang often spreads over nodes that hold the same, and then one row stands for all."""
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


_RECORDED: Final = tuple(OperationKind)

_KEY: Final = attrgetter("key")

_STATES: Final = 1 << 12
"""How many states of nodes are cached."""


def _later(rows: Sequence[int]) -> list[int] | None:
    """For each position of ``rows`` how often its row is repeated after it; None if no row is repeated."""
    if len(rows) == 1 or len(set(rows)) == len(rows):
        return None
    seen: dict[int, int] = {}
    later = []
    for row in reversed(rows):
        later.append(seen.get(row, 0))
        seen[row] = later[-1] + 1
    return later[::-1]
