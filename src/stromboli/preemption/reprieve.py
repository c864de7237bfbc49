"""Minimal victims: of the tasks that a statement evicts, those whose room is not needed are reprieved.

The chosen nodes stand.  Each trial repeats the statement with one victim (or one bundle that is evicted only as a
whole) less.  The victims added last are tried first, because they are the ones that should be evicted least.  Room only
shrinks as victims are reprieved, so a victim that was needed once stays needed and is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from stromboli.errors import PlacementError
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation import Evict, Operation, split
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.resources.axes import add_to
from stromboli.model.task import Task
from stromboli.reservations.terminating import takes

Unit = Sequence[Task]
"""Victims that are reprieved together or not at all."""


class Waiting(NamedTuple):
    """A task that waits for room on ``row``; ``evicted`` says whether pods have been evicted for it."""

    task: Task
    row: int
    evicted: bool


class Reprieve:
    """Looks through one statement that evicts pods, and reserves nodes for tasks of ``job``.

    ``quota`` says whether the queue must allow each task when its turn comes.  A task that predicates refuse on its
    node even with all victims gone is not checked by predicates again.
    """

    def __init__(self, session: Session, job: Job, plan: Statement, *, quota: bool) -> None:
        self.session, self.job, self.plan, self.quota = session, job, plan, quota
        self.queue: QueueInfo = session.queues[job.queue]
        self._refused: set[str] | None = None

    def run(self, units: Sequence[Unit], works: Callable[[], bool]) -> None:
        """Remove needless victims from the statement; ``works`` says whether what is reserved is still enough.

        The statement stands in the session before and after.
        """
        for unit in reversed(units):
            if self._has_room(unit):
                self._try_without(unit, works)

    def _try_without(self, unit: Unit, works: Callable[[], bool]) -> None:
        """Repeat the statement without evicting ``unit``; it stays as it was if that does not work."""
        session, plan = self.session, self.plan
        saved = plan.save()
        evictions, placements = split(saved)
        waiting = _waiting(placements)
        plan.rollback(0)
        if self._refused is None:
            self._refused = self._refused_anyway(evictions, waiting)
        with session.statement() as trial:
            trial.recover(_without(evictions, {task.uid for task in unit}))
            if all(self._reserve(trial, each) for each in waiting) and works():
                plan.merge(trial)
        if not plan.operations:
            plan.recover(saved)

    def _refused_anyway(self, evictions: Sequence[Evict], waiting: Sequence[Waiting]) -> set[str]:
        """Tasks that predicates refuse on their nodes even with all victims gone."""
        found: set[str] = set()
        with self.session.statement() as trial:
            trial.recover(evictions)
            for task, row, _ in waiting:
                if not takes(self.session, task, row):
                    found.add(task.uid)
                trial.pipeline(task, self.session.table.statics.names[row])
        return found

    def _has_room(self, unit: Unit) -> bool:
        """Whether the nodes of ``unit`` would hold its tasks in addition to those that wait for room there."""
        table = self.session.table
        back: dict[int, list[int]] = {}
        for task in unit:
            add_to(back.setdefault(table.row(task.node_name), []), task.template.vector)
        for row, amounts in back.items():
            if not table.will_fit(amounts, [column for column, amount in enumerate(amounts) if amount], row):
                return False
        return True

    def _reserve(self, trial: Statement, waiting: Waiting) -> bool:
        """Let a task wait for its node again; False where that is not allowed."""
        task, row, evicted = waiting
        if self.quota and not self.session.ask.allocatable(self.queue, task):
            return False
        if not self._fits(task, row):
            return False
        name = self.session.table.statics.names[row]
        try:
            trial.pipeline(task, name, eviction_occurred=evicted and trial.has_evictions)
        except PlacementError:
            return False
        return True

    def _fits(self, task: Task, row: int) -> bool:
        columns = self.session.axes.deciding(task.request)
        if not self.session.table.will_fit(task.template.vector, columns, row):
            return False
        return task.uid in (self._refused or ()) or takes(self.session, task, row)


def _waiting(placements: Sequence[Operation]) -> list[Waiting]:
    """The placed tasks with their rows, as they are marked now."""
    return [
        Waiting(task, row, task.eviction_occurred)
        for placement in placements
        for task, row in zip(placement.tasks, placement.rows, strict=True)
    ]


def _without(evictions: Sequence[Evict], reprieved: Set[str]) -> list[Evict]:
    return [eviction for eviction in evictions if eviction.tasks[0].uid not in reprieved]
