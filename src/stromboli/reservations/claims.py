"""A job that finds no room may claim it from holders of reservations that come strictly after it in order.

The job is tried again without their reservations.  They lose as few as it takes to place the job, the last in turn
first, and none at all if it cannot be placed even then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from stromboli.errors import PlacementError
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import has_topology
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, PIPELINED, Job
from stromboli.model.task import Task
from stromboli.reservations.book import Reservations
from stromboli.reservations.order import Precedence
from stromboli.reservations.restore import HIGHER_JOB, report_given_up
from stromboli.reservations.terminating import takes

Attempt = Callable[[], Statement | None]
"""Tries to place the job; returns None, nothing changed, if it finds no room."""


class Claim(NamedTuple):
    """Reservations that are released together: all of a gang, or a single one of a job that is ready without it."""

    job: Job
    tasks: list[Task]
    single: bool = False


class ClaimFromLower:
    """Lets jobs in a run of allocate claim the reservations of lower holders.

    Until the next decision it remembers which reservations there are to claim, and for which demands all of them
    together were not enough.
    """

    def __init__(self, session: Session, book: Reservations, precedence: Precedence) -> None:
        self.session, self.book, self.precedence = session, book, precedence
        self._infeasible: set[object] = set()
        self._listed: list[Claim] | None = None
        self._moment = -1

    def place(self, job: Job, attempt: Attempt) -> tuple[Statement | None, list[Job]]:
        """Place ``job``, which has found no room, on room that lower holders lose; returns these as well."""
        taken, placed = self.find(job, attempt)
        for claim in taken:
            _report_taken(self.session, self.book, claim)
        return placed, [claim.job for claim in taken]

    def find(self, job: Job, attempt: Attempt) -> tuple[list[Claim], Statement | None]:
        """What lower holders must release for ``job``, and the statement that releases it and places the job.

        None, nothing changed, if even all of it is not enough.
        """
        self._catch_up()
        demand = self._demand(job)
        if demand in self._infeasible or not self._may_help(job):
            return [], None
        before = dict(job.fits), job.fit_error_text
        taken, placed = self._least(job, attempt)
        if placed is None:
            job.fits, job.fit_error_text = before  # why it waits is reported as things stand, not as they were tried
            self._infeasible.add(demand)
        return taken, placed

    # ------------------------------------------------------------------ how much must be released

    def _least(self, job: Job, attempt: Attempt) -> tuple[list[Claim], Statement | None]:
        """The fewest claims to release, lowest first, and the statement that releases them and places ``job``."""
        with self.session.statement() as trial:
            claims = _lower(self.precedence, self._claims(), job, trial)
            if not claims or (found := self._placed(job, attempt)) is None:
                return [], None
            found.rollback(0)
        low, high = 0, len(claims)  # without `high` of them it is placed, without `low` it is not
        while high - low > 1:
            middle = (low + high) // 2
            if (statement := self._without(job, claims[:middle], attempt)) is None:
                low = middle
            else:
                statement.rollback(0)
                high = middle
        return claims[:high], self._without(job, claims[:high], attempt)

    def _without(self, job: Job, claims: list[Claim], attempt: Attempt) -> Statement | None:
        """Place the job once ``claims`` are released; None, nothing changed, if it is not placed."""
        with self.session.statement() as released:
            _release(released, claims)
            if (found := self._placed(job, attempt)) is None:
                return None
            statement = self.session.statement()
            statement.merge(released, found)
            return statement

    def _placed(self, job: Job, attempt: Attempt) -> Statement | None:
        """Place the job; None, nothing changed, unless it is ready then, or may hold what it has got."""
        job.fits.clear()  # a role that found no node before may find one now
        found = attempt()
        if found is None or self.session.ask.job_ready(job) or self.book.may_hold(job):
            return found
        found.rollback(0)
        return None

    # ------------------------------------------------------------------ whether to try at all

    def _may_help(self, job: Job) -> bool:
        """Whether a task of ``job`` would have room on one of its eligible nodes if nothing were reserved.

        Other refusals of predicates may be due to the reservations themselves, so they do not count here.
        """
        session, placer = self.session, self.session.placer
        room = session.table.unreserved()
        for task in {placer.kind(task): task for task in job.of(PENDING) if not task.best_effort}.values():
            columns = session.axes.deciding(task.request)
            want = session.ledger.arrays(task.template)[0][columns][:, None]
            if ((room[columns] >= want).all(axis=0) & np.asarray(placer.eligible(task), dtype=bool)).any():
                return True
        return False

    def _demand(self, job: Job) -> object:
        """A key that jobs of one queue with equal needs share: if one of them cannot be placed, the others cannot.

        A job with a network topology or a policy for sub-jobs has a key of its own.
        """
        if has_topology(job) or job.facts.is_split:
            return job.uid
        pending: dict[tuple[Hashable, str], int] = {}
        for task in job.of(PENDING):
            kind = self.session.placer.kind(task), task.role
            pending[kind] = pending.get(kind, 0) + 1
        least = job.min_available, tuple(sorted(job.facts.task_min.items()))
        return job.queue, least, job.ready_task_num(), frozenset(pending.items())

    def _catch_up(self) -> None:
        """Forget what was remembered once something has been decided."""
        decided = len(self.session.plan.binds) + self.book.wished
        if decided != self._moment:
            self._infeasible, self._listed, self._moment = set(), None, decided

    def _claims(self) -> list[Claim]:
        """The claims, in the order in which they are released."""
        if self._listed is None:
            self._listed = _claims(self.session, self.precedence.in_turn()[::-1], self.book.of)
        return self._listed


def _lower(precedence: Precedence, claims: list[Claim], job: Job, trial: Statement) -> list[Claim]:
    """Those of ``claims`` whose holders are strictly below ``job``, in their order; ``trial`` releases all of them.

    Each holder is compared after the claims before it have been released.  A holder that is equal then keeps what it
    holds, and so do the holders of its queue that come before it.
    """
    found: list[Claim] = []
    equal: set[tuple[str, bool]] = set()
    for claim in claims:
        lane = claim.job.queue, claim.single
        if claim.job.uid == job.uid or lane in equal:
            continue
        if precedence.is_above(job, claim.job):
            _release(trial, [claim])
            found.append(claim)
        else:
            equal.add(lane)
    return found


def _claims(session: Session, holders: list[Job], held: Callable[[Job], list[Task]]) -> list[Claim]:
    """What ``holders`` hold according to ``held``: single claims first, then whole gangs, each in their order."""
    single: list[Claim] = []
    whole: list[Claim] = []
    for job in holders:
        tasks = held(job)
        if session.ask.job_ready(job):
            single += [Claim(job, [task], single=True) for task in reversed(tasks)]
        elif tasks:
            whole.append(Claim(job, tasks))
    return single + whole


def _release(statement: Statement, claims: list[Claim]) -> None:
    for claim in claims:
        for task in claim.tasks:
            statement.unpipeline(task)


def _report_taken(session: Session, book: Reservations, claim: Claim) -> None:
    """Give up for a higher job what ``claim`` has held since an earlier session, and report it."""
    for task in claim.tasks:
        task.eviction_occurred = False  # its victims have made room for others now
        if node := book.held_on(task):
            book.reject(task)  # what it gets in its own turn is a new reservation
            report_given_up(session, task, node, HIGHER_JOB)


# ---------------------------------------------------------------------- before evictions

MOST: Final = 64
"""How many of the lowest claims are considered for a job that would otherwise evict pods."""


class YieldBeforeEviction:
    """Lets holders that come strictly after a job yield their reservations before the job evicts pods.

    In allocate all that they hold was not enough for the job; together with some victims it may be, and then there are
    fewer victims.  Holders are taken as they stand when the first job asks: reservations made later in the action do
    not yield, because pods have just been evicted for them.  Without the gate there are no holders.
    """

    def __init__(self, session: Session) -> None:
        self.session, self._book = session, session.reservations

    @cached_property
    def _waiting(self) -> dict[str, list[Task]]:
        return self._book.waiting() if self._book is not None else {}

    @cached_property
    def _precedence(self) -> Precedence:
        return Precedence(self.session, {uid: self.session.jobs[uid] for uid in self._waiting})

    @cached_property
    def _claims(self) -> list[Claim]:
        holders = self._precedence.in_turn()[::-1]
        return _claims(self.session, holders, lambda job: self.session.tasks_in_turn(self._waiting[job.uid]))

    def release(self, statement: Statement, job: Job) -> list[Claim]:
        """Release in ``statement`` what holders strictly after ``job`` hold, and return it."""
        if not self._waiting:
            return []
        standing = (claim for claim in self._claims if all(task.status is PIPELINED for task in claim.tasks))
        return _lower(self._precedence, list(islice(standing, MOST)), job, statement)

    def settle(self, released: Statement, claims: list[Claim], taken: Statement) -> None:
        """Merge ``taken`` into ``released`` and restore the claims that are not in its way, the highest first."""
        rows = {task.uid: each.rows[0] for each in released.operations for task in each.tasks}
        gone: list[Claim] = []
        with self.session.statement() as trial:
            for claim in reversed(claims):
                if not self._restore(trial, claim, rows):
                    gone.insert(0, claim)
        if len(gone) < len(claims):
            saved = taken.save()
            taken.rollback(0)
            released.rollback(0)
            _release(released, gone)
            taken.recover(saved)
        released.merge(taken)
        if self._book is not None:
            for claim in gone:
                _report_taken(self.session, self._book, claim)

    def _restore(self, trial: Statement, claim: Claim, rows: Mapping[str, int]) -> bool:
        """Restore ``claim``; False, nothing changed, if one of its tasks may not wait where it did."""
        session, mark = self.session, trial.checkpoint()
        for task in claim.tasks:
            row = rows[task.uid]
            columns = session.axes.deciding(task.request)
            if not session.table.will_fit(task.template.vector, columns, row) or not self._may(task, row):
                trial.rollback(mark)
                return False
            try:
                trial.pipeline(task, session.table.statics.names[row], task.eviction_occurred)
            except PlacementError:
                trial.rollback(mark)
                return False
        return True

    def _may(self, task: Task, row: int) -> bool:
        session = self.session
        return session.ask.allocatable(session.queues[session.jobs[task.job].queue], task) and takes(session, task, row)
