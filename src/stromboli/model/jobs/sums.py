"""What a job's tasks ask for, added up by what has become of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.model.resources.axes import add_to, minus
from stromboli.model.status import ALLOCATED_STATUS, TaskStatus

COUNTED: Mapping[TaskStatus, frozenset[str]] = {
    **dict.fromkeys(TaskStatus, frozenset[str]()),
    **dict.fromkeys(ALLOCATED_STATUS, frozenset({"allocated", "held", "request"})),
    TaskStatus.Pipelined: frozenset({"held", "request"}),
    TaskStatus.Pending: frozenset({"request"}),
}
"""Which sums of a job count a task, by its state."""


def _shifts(old: TaskStatus, new: TaskStatus) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sums of a job that a task leaves, and those that it enters, on its way from ``old`` to ``new``."""
    return tuple(COUNTED[old] - COUNTED[new]), tuple(COUNTED[new] - COUNTED[old])


SHIFTS = {old: {new: _shifts(old, new) for new in TaskStatus} for old in TaskStatus}


class Sums:
    """Requests of a job's tasks added up, by column (see :data:`~stromboli.model.resources.axes.Vector`).

    allocated  tasks that occupy a node     held     those and the pipelined ones
    request    those and the pending ones   total    all tasks

    ``moves`` grows whenever tasks come, go, or change their state; the last is counted by their job, as some changes
    concern no sum.
    """

    __slots__ = ("allocated", "held", "moves", "request", "total")

    def __init__(self) -> None:
        self.allocated: list[int] = []
        self.held: list[int] = []
        self.request: list[int] = []
        self.total: list[int] = []
        self.moves = 0

    def reserved(self) -> list[int]:
        """What is held and not allocated: only reserved, by column."""
        return minus(self.held, self.allocated)

    def copy(self) -> Sums:
        """The same sums in lists of their own."""
        twin = Sums.__new__(Sums)
        twin.allocated, twin.held = self.allocated.copy(), self.held.copy()
        twin.request, twin.total, twin.moves = self.request.copy(), self.total.copy(), self.moves
        return twin

    def count(self, status: TaskStatus, vector: tuple[int, ...], times: int) -> None:
        """Add ``times`` tasks of ``vector`` in ``status`` (negative: take away)."""
        self.moves += 1
        self.shift(COUNTED[status], vector, times)
        add_to(self.total, vector, times)

    def move(self, old: TaskStatus, new: TaskStatus, vector: tuple[int, ...], times: int) -> None:
        """``times`` tasks of ``vector`` leave ``old`` for ``new``."""
        gone, come = SHIFTS[old][new]
        for name in gone:
            add_to(getattr(self, name), vector, -times)
        for name in come:
            add_to(getattr(self, name), vector, times)

    def shift(self, names: Iterable[str], vector: tuple[int, ...], times: int) -> None:
        """Add ``times * vector`` to the sums named."""
        for name in names:
            add_to(getattr(self, name), vector, times)
