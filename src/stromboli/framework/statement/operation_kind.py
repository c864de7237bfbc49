"""The kinds of operation that a statement records."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

from stromboli.model.task import Task


class OperationKind(IntEnum):
    """Kinds of operation, numbered as the reference numbers them and printed by name."""

    EVICT = 0
    PIPELINE = 1
    ALLOCATE = 2
    UNPIPELINE = 3

    def __str__(self) -> str:
        return self.name.capitalize()

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Recorded(Protocol):
    """An operation as it is reported: its kind, and tasks with their rows of the node table."""

    @property
    def kind(self) -> OperationKind:
        """What kind of operation it is."""
        ...

    @property
    def tasks(self) -> Sequence[Task]:
        """Tasks of one template."""
        ...

    @property
    def rows(self) -> Sequence[int]:
        """The row of each task."""
        ...


def operation_name(number: int) -> str:
    """Printed name of operation ``number``; ``Unknown(<n>)`` for a number that is none."""
    return str(OperationKind(number)) if number in OperationKind._value2member_map_ else f"Unknown({number})"
