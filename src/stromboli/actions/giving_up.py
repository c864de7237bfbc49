"""A job that finds no room may take it from holders of reservations that come strictly after it, and from nobody else.

It is tried again without their reservations; they lose those that it takes to place it, the lowest in turn first, and
nothing at all if it cannot be placed even so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from stromboli.errors import PlacementError
from stromboli.framework.ending import takes
from stromboli.framework.precedence import Precedence
from stromboli.framework.reservations import Reservations
from stromboli.framework.restoring import HIGHER_JOB, tell_given_up
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.framework.topology import has_topology
from stromboli.model.axes import fits
from stromboli.model.job import PENDING, PIPELINED, Job
from stromboli.model.task import Task

Attempt = Callable[[], Statement | None]
"""Tries to place the job; None, nothing changed, if it finds no room."""


class Claim(NamedTuple):
    """Reservations that go together: all of a gang, or a single one of a job that is ready without it."""

    job: Job
    tasks: list[Task]
    single: bool = False


class Takeover:
    """What a run of allocate needs to take reservations from holders.

    It remembers, until something is decided, for which demands everything that could be taken was not enough, and what
    there is to take.
    """

    def __init__(self, session: Session, book: Reservations, precedence: Precedence) -> None:
        self.session, self.book, self.precedence = session, book, precedence
        self._vain: set[object] = set()
        self._known: list[Claim] | None = None
        self._moment = -1

    def place(self, job: Job, attempt: Attempt) -> tuple[Statement | None, list[Job]]:
        """Place ``job``, which has found no room, with the room of lower holders; and those who lost theirs."""
        self._catch_up()
        demand = self._demand(job)
        if demand in self._vain or not self._may_help(job):
            return None, []
        before = dict(job.fits)
        taken, placed = self._least(job, attempt)
        if placed is None:
            job.fits.clear()
            job.fits.update(before)  # why it waits is told as things stand, not as they were tried
            self._vain.add(demand)
            return None, []
        for claim in taken:
            _tell_taken(self.session, self.book, claim)
        return placed, [claim.job for claim in taken]

    # ------------------------------------------------------------------ how much has to go

    def _least(self, job: Job, attempt: Attempt) -> tuple[list[Claim], Statement | None]:
        """The fewest claims, lowest first, without which ``job`` is placed; placed so, their release included."""
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
        """Place the job; None, nothing changed, if it is neither ready then nor may hold what it has."""
        job.fits.clear()  # a role that found no node before may find one now
        found = attempt()
        if found is None or self.session.ask.job_ready(job) or self.book.may_hold(job):
            return found
        found.rollback(0)
        return None

    # ------------------------------------------------------------------ whether to try at all

    def _may_help(self, job: Job) -> bool:
        """Whether any task of ``job`` would have room on a node that is eligible for it if nothing were reserved.

        What else predicates say now may be due to the reservations themselves.
        """
        session, placer = self.session, self.session.placer
        room = session.table.future + session.table.pipelined
        for task in {placer.kind(task): task for task in job.of(PENDING) if not task.best_effort}.values():
            columns = session.axes.deciding(task.request)
            want = session.ledger.arrays(task.template)[0][columns][:, None]
            if ((room[columns] >= want).all(axis=0) & np.asarray(placer.eligible(task), dtype=bool)).any():
                return True
        return False

    def _demand(self, job: Job) -> object:
        """What jobs of one queue have in common that need the same: what was vain for one is vain for the next.

        A job whose parts must lie close together, or come in numbers, needs what no other does.
        """
        if has_topology(job) or job.has_sub_group_policy:
            return job.uid
        pending: dict[tuple[Hashable, str], int] = {}
        for task in job.of(PENDING):
            kind = self.session.placer.kind(task), task.role
            pending[kind] = pending.get(kind, 0) + 1
        least = job.min_available, tuple(sorted(job.facts.task_min.items()))
        return job.queue, least, job.ready_task_num(), frozenset(pending.items())

    def _catch_up(self) -> None:
        """What was remembered counts no longer once something has been decided."""
        decided = len(self.session.plan.binds) + self.book.wished
        if decided != self._moment:
            self._vain, self._known, self._moment = set(), None, decided

    def _claims(self) -> list[Claim]:
        """What there is to take, in the order in which it is taken."""
        if self._known is None:
            self._known = _claims(self.session, self.precedence.in_turn()[::-1], self.book.of)
        return self._known


def _lower(precedence: Precedence, claims: list[Claim], job: Job, trial: Statement) -> list[Claim]:
    """Those of ``claims`` whose holders are strictly below ``job``, in their order; all are released.

    Each is judged with those before it gone: whoever is equal then keeps what it holds, as do those of its queue that
    come before it.
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
    """What ``holders`` hold, as ``held`` says: claims that may go singly first, each list in their order."""
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


def _tell_taken(session: Session, book: Reservations, claim: Claim) -> None:
    """What ``claim`` has held since an earlier session is given up for a higher job."""
    for task in claim.tasks:
        task.eviction_occurred = False  # whoever went for it went for what others have now
        if node := book.held_on(task):
            book.reject(task)  # what it takes in its own turn is new to it
            tell_given_up(session, task, node, HIGHER_JOB)


# ---------------------------------------------------------------------- before anybody is evicted

MOST: Final = 64
"""How many claims, the lowest, are looked at for a job that would else evict somebody."""


class Lenders:
    """Holders as they stand when the first job asks that may evict: those strictly after a job give theirs first.

    All that they hold was not enough for it in allocate; with some victims more it may be, and these are fewer then.
    Who comes to hold room in the action itself gives nothing: somebody has just been evicted for it.  Without the gate
    nobody holds anything.
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
        """Let holders strictly after ``job`` go from what they hold, as operations of ``statement``; what that is."""
        if not self._waiting:
            return []
        standing = (claim for claim in self._claims if all(task.status is PIPELINED for task in claim.tasks))
        return _lower(self._precedence, list(islice(standing, MOST)), job, statement)

    def settle(self, released: Statement, claims: list[Claim], taken: Statement) -> None:
        """Put what ``taken`` does into ``released``, where those alone stay released who stand in its way.

        The highest in turn are looked at first.
        """
        rows = {task.uid: entry.rows[0] for entry in released.entries for task in entry.tasks}
        gone: list[Claim] = []
        with self.session.statement() as trial:
            for claim in reversed(claims):
                if not self._goes_on(trial, claim, rows):
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
                _tell_taken(self.session, self._book, claim)

    def _goes_on(self, trial: Statement, claim: Claim, rows: Mapping[str, int]) -> bool:
        """Let the tasks of ``claim`` wait where they did; False, nothing changed, if one of them may not."""
        session, mark = self.session, trial.checkpoint()
        for task in claim.tasks:
            row = rows[task.uid]
            room = session.table.future_of(row)
            if not fits(task.template.vector, room, session.axes.deciding(task.request)) or not self._may(task, row):
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
        return session.ask.allocatable(session.queues[session.own(task).queue], task) and takes(session, task, row)
