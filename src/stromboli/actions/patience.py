"""Patience: victims that are slow to end are not told to go at once, since other room often turns up meanwhile.

A job that evicts them would wait for their end anyway.  If it waits a part of that time before, it starts later by at
most that part, and often nobody has to go: one who rents for a while before buying never pays much more than one who
knows how long it will be needed (the ski rental problem).
"""

from __future__ import annotations

from typing import Final

from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import GRACE
from stromboli.model.times import stamp

PATIENCE: Final = 0.5
"""The part of its slowest victim's grace period, beyond the usual one, that a job waits unless told otherwise."""

LOOKS: Final = 64
"""How many jobs that wait look in a cycle, and an action, whether quicker victims have turned up.  Many thousands of
them would hold up everybody else."""


def is_part(value: float) -> str:
    """A check: refuse what is no part of a whole."""
    return "" if 0 <= value <= 1 else f"patience must be from 0 to 1, got {value:g}"


class Patience:
    """How long jobs wait in one run of an action before they evict others.

    ``part`` is for how much of the time by which the slowest of its victims exceeds the usual grace period a job waits,
    counted from the first cycle in which it was about to evict anybody, and never longer than a reservation is kept:
    a pod that gives itself a year to end is told to go all the same.  Without reservations that outlive a session
    nobody waits: room that turned up would not stay the job's own.
    """

    def __init__(self, session: Session, part: float) -> None:
        self.session, self.part, self.book = session, part, session.reservations
        self._looks = 0

    def rests(self, job: Job) -> bool:
        """Whether ``job`` goes on waiting and does not even look who could go: enough of those who wait have looked."""
        excess = self.book.excess_found(job) if self.book is not None else 0.0
        until = self._until(job, excess)
        if until <= self.session.now:
            return False
        self._looks += 1
        if self._looks <= LOOKS:
            return False
        self._wait(job, excess)
        if say := self.session.tells("eviction_not_sought"):
            say(job=job, until=stamp(until), looks=LOOKS)
        return True

    def postpones(self, job: Job, statement: Statement) -> bool:
        """Whether ``job`` does not evict the victims of ``statement`` yet."""
        victims = statement.evicted
        slowest = max((victim.grace for victim in victims), default=GRACE)
        until = self._until(job, slowest - GRACE)
        if until <= self.session.now:
            return False
        self._wait(job, slowest - GRACE)
        if say := self.session.tells("eviction_postponed"):
            say(job=job, victims=len(victims), grace=slowest, until=stamp(until))
        return True

    def waits(self, job: Job) -> bool:
        """Whether ``job`` waits by what this action, or one before it in the session, has said."""
        return self.book is not None and self.book.postpones(job)

    def _until(self, job: Job, excess: float) -> float:
        """Until when ``job`` waits where the slowest victim takes so many seconds more than usual; 0: not at all."""
        if self.book is None or not self.part or excess <= 0:
            return 0.0
        return self.book.asking_since(job) + min(self.part * excess, self.book.timeout)

    def _wait(self, job: Job, excess: float) -> None:
        if self.book is not None:
            self.book.postpone(job, excess)
