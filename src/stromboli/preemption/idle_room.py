"""Idle room is left to allocate and backfill if an action that evicts comes before them in the cycle.

A starving job for which there is idle room is bound in this cycle: it needs no evictions, and a reservation would only
delay its start.  So each turn begins with what allocate would do.  What allocate would bind stands until the action
ends, so that later jobs count on other room, and is then reverted for allocate to repeat.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from stromboli.allocation.gradients import is_split
from stromboli.allocation.place_tasks import Placing
from stromboli.allocation.try_job import sheet_of, try_job
from stromboli.errors import PlacementError, PluginError
from stromboli.framework.engine.rows import Bools
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, Job
from stromboli.model.task import Task
from stromboli.reservations.claims import ClaimFromLower
from stromboli.reservations.order import Precedence

ROW = "idle-room"
"""The row of the compatibility table."""
_BINDS: Final = (OperationKind.ALLOCATE, OperationKind.UNPIPELINE)
"""The operations of which a placement without reservations consists: pods that are bound, and room that is yielded."""


class IdleRoom:
    """What allocate and backfill will bind, as far as one run of an action that evicts has checked.

    Use it in a ``with`` block: at its end everything is reverted.
    """

    def __init__(self, session: Session) -> None:
        ours = not session.compat.asks(ROW)
        self.session, self._may_leave = session, ours and "allocate" in session.config.actions
        self.allocates = ours and "allocate" in session.to_come
        self.backfills = ours and "backfill" in session.to_come
        self._placing = Placing(session)
        self._left = session.statement()
        self._claims: tuple[int, ClaimFromLower] | None = None
        """What lower holders may yield, and how many operations stood when that was listed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.session.narrator.mute:
            self._left.rollback(0)  # not discarded: no placement has failed that messages should report

    def serves(self, job: Job) -> bool:
        """Whether ``job`` no longer starves once allocate and backfill have bound what they can.

        What they can bind of it stands from now on, even if that is not enough.
        """
        before, ask = len(self._left.operations), self.session.ask
        with self.session.narrator.mute:
            if self.allocates and self._may_allocate(job):
                self._allocate(job)
            if self.backfills and ask.job_starving(job) and ask.job_ready(job):
                self._backfill(job)
        if len(self._left.operations) == before or ask.job_starving(job):
            return False
        self.session.tell("idle_room_left", job=job)
        return True

    def takes(self, *wanted: tuple[Task, Bools | None]) -> bool:
        """Leave to every one of these tasks idle room, within its rows (None: anywhere), until the action ends.

        False, nothing changed, unless each finds some.
        """
        if not self._may_leave:
            return False
        mark = self._left.checkpoint()
        with self.session.narrator.mute:
            found = all(self._bind(task, within) for task, within in wanted)
            if not found:
                self._left.rollback(mark)
        return found

    def replaces(self, statement: Statement) -> bool:
        """Whether ``statement`` only reserves idle room: then it is empty now, and the room is left as well."""
        if not self._may_leave or not statement.consists_of(OperationKind.PIPELINE):
            return False
        job, saved, table = statement.operations[0].job, statement.save(), self.session.table
        with self.session.narrator.mute:
            statement.rollback(0)
        pairs = (pair for operation in saved for pair in zip(operation.tasks, operation.rows, strict=True))
        if self.takes(*((task, table.mask((row,))) for task, row in pairs)):
            self.session.tell("idle_room_left", job=job)
            return True
        with self.session.narrator.mute:
            statement.recover(saved)
        return False

    # ------------------------------------------------------------------ allocate

    def _may_allocate(self, job: Job) -> bool:
        """Whether what allocate does for ``job`` can be tried: nominations of its parts end by the first try."""
        return not (job.hyper_nodes.nominated and is_split(self.session, job))

    def _allocate(self, job: Job) -> None:
        """Bind tasks of ``job`` as allocate does, until it no longer starves or finds no idle room."""
        session, gates = self.session, len(self.session.plan.gates)
        before = dict(job.fits), job.fit_error_text
        stood = {task.uid: task.last for task in job.of(PENDING)}
        sheet = sheet_of(session, job)
        while len(sheet) and session.ask.job_starving(job):
            found = try_job(session, self._placing, job, sheet)
            if found is None and (found := self._claimed(job)) is not None:
                sheet = sheet_of(session, job)  # the claim was tried with one of its own
            if not self._leaves(job, found):
                break
        job.fits, job.fit_error_text = before  # why it waits is reported when allocate has its turn
        for uid, last in stood.items():
            job.tasks[uid].last = last
        del session.plan.gates[gates:]

    def _leaves(self, job: Job, found: Statement | None) -> bool:
        """Let what allocate has ``found`` stand if it binds tasks of ``job``, which is ready then."""
        if found is None:
            return False
        with found:
            if any(each.kind not in _BINDS for each in found.operations) or not self.session.ask.job_ready(job):
                return False
            self._left.merge(found)
        return True

    def _claimed(self, job: Job) -> Statement | None:
        """``job``, which has found no room, placed on what lower holders of reservations have to yield to it."""
        session, book = self.session, self.session.reservations
        if book is None or not book.holders or job.uid in book.holders:
            return None
        if session.ask.job_ready(job) or session.ask.job_pipelined(job):
            return None
        if self._claims is None or self._claims[0] != len(self._left.operations):
            claims = ClaimFromLower(session, book, Precedence(session, book.holders))
            self._claims = len(self._left.operations), claims
        return self._claims[1].find(job, lambda: try_job(session, self._placing, job, sheet_of(session, job)))[1]

    # ------------------------------------------------------------------ backfill

    def _backfill(self, job: Job) -> None:
        """Bind the best-effort tasks of a ready ``job``."""
        for task in self.session.tasks_in_turn([t for t in job.of(PENDING) if t.best_effort and not t.gates]):
            self._bind(task, None)

    def _bind(self, task: Task, within: Bools | None) -> bool:
        """Place ``task`` on idle room ``within``; False, nothing changed, if it may not, or a handler objects."""
        session, job = self.session, self.session.jobs[task.job]
        if session.ask.pre_predicate(task) is not None:
            return False
        try:
            choice = session.placer.place(task, within, room=not task.best_effort)
            if choice is None or choice.kind is not OperationKind.ALLOCATE:
                return False
            if not task.best_effort and not session.ask.allocatable(session.queues[job.queue], task):
                return False
            self._left.place(job, (task,), choice.rows, choice.kind)
        except (PlacementError, PluginError):
            return False
        return True
