"""Who finds nodes for tasks: the seam between the actions and the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stromboli.framework.classes import Classes
from stromboli.framework.fits import Fits
from stromboli.framework.placement import Choice, Ties, one, run
from stromboli.framework.refusals import refusals
from stromboli.framework.rows import Bools
from stromboli.model.task import Task


class Placer(Protocol):
    """Finds nodes.  ``within`` limits the search to some rows, shape (nodes,); None means all of them."""

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """The best node for ``task``: idle room first, then room about to become free; None when no node takes it.

        Without ``room`` amounts are not looked at (backfill).
        """

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """Idle nodes for as many of equal ``tasks`` as fit, in order; None when they must be placed one by one."""

    def refusals(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Fits:
        """Why no node takes ``task``."""

    def run_length(self, tasks: Sequence[Task]) -> int:
        """How many of ``tasks``, from the first on, can be placed in one step: every hook sees them alike."""


class Engine:
    """The fast placer: one vector a task class, renewed where placements touch it."""

    __slots__ = ("classes", "ties")

    def __init__(self, classes: Classes, ties: Ties) -> None:
        self.classes, self.ties = classes, ties

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """See :class:`Placer`."""
        return one(self.classes.of(task, room=room), self.ties, within)

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """See :class:`Placer`."""
        return run(self.classes.of(tasks[0]), len(tasks), within)

    def refusals(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Fits:
        """See :class:`Placer`."""
        return refusals(self.classes.of(task, room=room), within, room=room)

    def run_length(self, tasks: Sequence[Task]) -> int:
        """See :class:`Placer`."""
        runs = self.ties.seed is None and self.classes.of(tasks[0]).runs
        return self.classes.run_length(tasks) if runs else 1
