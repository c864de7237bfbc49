"""Event handlers: plugins that want to be told of every task that takes or leaves a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stromboli.model.task import Task


@dataclass(slots=True)
class TaskEvent:
    """What a handler receives; it may set ``err`` to object to an allocation."""

    task: Task
    err: object = None


One = Callable[[TaskEvent], None]
Many = Callable[[Task, Sequence[int]], None]


@dataclass(frozen=True, slots=True)
class Handler:
    """One handler: for a single task, and perhaps for a run of equal tasks at once."""

    one: One | None = None
    many: Many | None = None


class Handlers:
    """All handlers of a session, in the order of registration."""

    __slots__ = ("allocate", "deallocate")

    def __init__(self) -> None:
        self.allocate: list[Handler] = []
        self.deallocate: list[Handler] = []

    @property
    def take_runs(self) -> bool:
        """Whether every handler can be told of a run of equal tasks at once."""
        return all(handler.many is not None for handler in (*self.allocate, *self.deallocate))

    def allocated(self, tasks: Sequence[Task], rows: Sequence[int]) -> list[object]:
        """Call every handler for ``tasks`` that have taken ``rows``; returns the objections."""
        return _tell(self.allocate, tasks, rows) if self.allocate else []

    def deallocated(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """``tasks`` have left ``rows``: call every handler; no rows: the node of a single task is gone itself."""
        if self.deallocate:
            _tell(self.deallocate, tasks, rows)


def _tell(handlers: list[Handler], tasks: Sequence[Task], rows: Sequence[int]) -> list[object]:
    """Every handler is called even when one fails: sums that miss one event are wrong from then on."""
    event = TaskEvent(tasks[0])
    failure: Exception | None = None
    for handler in handlers:
        try:
            if handler.many is not None and (len(tasks) > 1 or handler.one is None):
                handler.many(tasks[0], rows)
            elif handler.one is not None:
                handler.one(event)
        except Exception as error:  # noqa: BLE001  # raised below
            failure = failure or error
    if failure is not None:
        raise failure
    return [event.err] if event.err is not None else []
