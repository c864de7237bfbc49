"""Figures that a session sums up and reports once at its end: singly they would cost more than what they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.narration.observe import Placed

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class Counters:
    """Counts placed tasks by job, and the tasks that were handed over for binding.

    Latencies end when they are reported, so they are too long by what was left of the session after the bind.
    """

    __slots__ = ("_bound", "_placed", "_say_bound", "_say_placed")

    def __init__(self, session: ClusterView) -> None:
        self._say_placed = session.tells("metric.e2e_job")
        self._say_bound = session.tells("metric.task_latency")
        self._placed: list[Placed] = []
        self._bound: list[float] = []

    def placed(self, job: Job, tasks: int) -> None:
        """Count ``tasks`` of ``job`` that have got nodes, even if they lose them again."""
        if self._say_placed:
            self._placed.append(Placed(job.uid, job.queue, job.created, tasks))

    def placed_each(self, jobs: Sequence[Job]) -> None:
        """Count a task of each of ``jobs``, as :meth:`placed` does."""
        if self._say_placed:
            self._placed += [Placed(job.uid, (facts := job.facts).queue, facts.group.created, 1) for job in jobs]

    def bound(self, tasks: Sequence[Task]) -> None:
        """Count ``tasks`` that are handed over for binding."""
        if self._say_bound:
            self._bound += [task.created for task in tasks]

    def report(self) -> None:
        """Report the figures and start again from zero."""
        if self._say_placed and self._placed:
            self._say_placed(placed=self._placed)
        if self._say_bound and self._bound:
            self._say_bound(stage="Assumed", created=self._bound)
        self._placed, self._bound = [], []
