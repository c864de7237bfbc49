"""What a statement records: the kinds of operation, and one entry for each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from stromboli.model.job import Job
from stromboli.model.task import Task


class Operation(IntEnum):
    """Kinds of operation, numbered as the reference numbers them and printed by name."""

    EVICT = 0
    PIPELINE = 1
    ALLOCATE = 2
    UNPIPELINE = 3

    def __str__(self) -> str:
        return self.name.capitalize()

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def operation_name(number: int) -> str:
    """Printed name of operation ``number``; ``Unknown(<n>)`` for a number that is none."""
    return str(Operation(number)) if number in Operation._value2member_map_ else f"Unknown({number})"


class Entry:
    """One recorded operation: ``tasks`` of one template and job, each with its row of the node table.

    ``evicted_before`` is whether somebody had been evicted for the one task before; None where that did not change.
    """

    __slots__ = ("evicted_before", "job", "kind", "reason", "rows", "tasks")

    def __init__(self, kind: Operation, job: Job, tasks: Sequence[Task], rows: Sequence[int], reason: str = "") -> None:
        self.kind, self.job, self.tasks, self.rows, self.reason = kind, job, tasks, rows, reason
        self.evicted_before: bool | None = None

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(task.key for task in self.tasks)})"
