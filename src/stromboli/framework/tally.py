"""Figures that a session sums up and tells once at its end: one by one they would cost more than what they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.framework.observe import Placed
from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


class Tally:
    """Which jobs placed tasks, and whose tasks were handed over for binding.

    Latencies count until they are told, so they are too long by what remains of the session at that moment.
    """

    __slots__ = ("_bound", "_placed", "_say_bound", "_say_placed")

    def __init__(self, session: Session) -> None:
        self._say_placed = session.tells("metric.e2e_job")
        self._say_bound = session.tells("metric.task_latency")
        self._placed: list[Placed] = []
        self._bound: list[float] = []

    def placed(self, job: Job, tasks: int) -> None:
        """So many tasks of ``job`` have got nodes, whatever becomes of them."""
        if self._say_placed:
            self._placed.append(Placed(job.uid, job.queue, job.created, tasks))

    def bound(self, tasks: Sequence[Task]) -> None:
        """``tasks`` are handed over for binding."""
        if self._say_bound:
            self._bound += [task.created for task in tasks]

    def tell(self) -> None:
        """Tell what has come together."""
        if self._say_placed and self._placed:
            self._say_placed(placed=self._placed)
        if self._say_bound and self._bound:
            self._say_bound(stage="Assumed", created=self._bound)
        self._placed, self._bound = [], []
