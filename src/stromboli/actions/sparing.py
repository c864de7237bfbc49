"""Minimal victims: of those whom a statement evicts, everybody whose room is not needed is spared.

The nodes chosen stand; what is tried is the same statement with one victim (or one bundle that goes only as a whole)
less.  Tried are those who were added last first: they are the ones who should go least.  Room only shrinks as victims
are spared, so whoever was needed once stays needed, and nobody is tried twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

from stromboli.errors import PlacementError
from stromboli.framework.ending import takes
from stromboli.framework.jobs import QueueInfo
from stromboli.framework.operation import Operation
from stromboli.framework.session import Session
from stromboli.framework.statement import Saved, Statement
from stromboli.model.axes import add_to, fits
from stromboli.model.job import Job
from stromboli.model.task import Task

Unit = Sequence[Task]
"""Victims that are spared together or not at all."""


class Step(NamedTuple):
    """One operation on one task; ``evicted`` says of a reservation whether somebody has gone for it."""

    kind: Operation
    task: Task
    row: int
    reason: str
    evicted: bool


class Sparing:
    """Looks through one statement that evicts, and reserves nodes for tasks of ``job``.

    ``quota`` says whether the queue must be allowed each task as things stand when its turn comes.  Predicates that
    speak against a task on its node with everybody gone cannot be asked to keep silent with somebody spared.
    """

    def __init__(self, session: Session, job: Job, plan: Statement, *, quota: bool) -> None:
        self.session, self.job, self.plan, self.quota = session, job, plan, quota
        self.queue: QueueInfo = session.queues[job.queue]
        self._refused: set[str] | None = None

    def run(self, units: Sequence[Unit], works: Callable[[], bool]) -> None:
        """Take out of the statement whom it does not need; ``works`` says whether what is reserved is still enough.

        The statement stands in the session before and after.
        """
        session, plan = self.session, self.plan
        for unit in reversed(units):
            if not self._has_room(unit):
                continue
            spared, saved = {task.uid for task in unit}, plan.save()
            plan.rollback(0)
            if self._refused is None:
                self._refused = self._refused_anyway(saved)
            with session.statement() as trial:
                if all(self._do(trial, step) for step in _without(saved, spared)) and works():
                    plan.merge(trial)
            if not plan.entries:
                plan.recover(saved)

    def _refused_anyway(self, saved: Saved) -> set[str]:
        """Tasks that predicates refuse on their nodes though everybody is gone."""
        found: set[str] = set()
        with self.session.statement() as trial:
            for step in _without(saved, frozenset()):
                if step.kind is Operation.EVICT:
                    trial.evict(step.task, step.reason)
                    continue
                if not takes(self.session, step.task, step.row):
                    found.add(step.task.uid)
                trial.pipeline(step.task, self.session.table.statics.names[step.row])
        return found

    def _has_room(self, unit: Unit) -> bool:
        """Whether the nodes of ``unit`` would hold its tasks besides those who wait for room there."""
        table = self.session.table
        back: dict[int, list[int]] = {}
        for task in unit:
            add_to(back.setdefault(table.row(task.node_name), []), task.template.vector)
        for row, amounts in back.items():
            room = table.future_of(row)
            if any(amount > room[column] for column, amount in enumerate(amounts) if amount):
                return False
        return True

    def _do(self, trial: Statement, step: Step) -> bool:
        """Do one operation again; whether it may be done."""
        if step.kind is Operation.EVICT:
            trial.evict(step.task, step.reason)
            return True
        if self.quota and not self.session.ask.allocatable(self.queue, step.task):
            return False
        if not self._fits(step.task, step.row):
            return False
        evicted = step.evicted and trial.has_evictions
        try:
            trial.pipeline(step.task, self.session.table.statics.names[step.row], eviction_occurred=evicted)
        except PlacementError:
            return False
        return True

    def _fits(self, task: Task, row: int) -> bool:
        columns = self.session.axes.deciding(task.request)
        if not fits(task.template.vector, self.session.table.future_of(row), columns):
            return False
        return task.uid in (self._refused or ()) or takes(self.session, task, row)


def _without(saved: Saved, spared: Set[str]) -> Iterator[Step]:
    """The saved operations without the evictions of ``spared``.

    Evictions come first: whoever was evicted late may leave room for somebody who was placed early.
    """
    for kind, tasks, rows, reason, evicted in sorted(saved, key=lambda one: one[0] is not Operation.EVICT):
        for task, row, flag in zip(tasks, rows, evicted, strict=True):
            if kind is not Operation.EVICT or task.uid not in spared:
                yield Step(kind, task, row, reason, flag)
