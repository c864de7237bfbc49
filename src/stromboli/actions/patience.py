"""Patience: victims that are slow to end are not told to go at once, since other room often turns up meanwhile.

A job that evicts them would wait for their end anyway.  If it waits a part of that time before, it starts later by at
most that part, and often nobody has to go: one who rents for a while before buying never pays much more than one who
knows how long it will be needed (the ski rental problem).
"""

from __future__ import annotations

from typing import Final

from stromboli.framework.operation import Operation
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import GRACE
from stromboli.model.times import stamp

PATIENCE: Final = 0.5
"""The part of its slowest victim's grace period, beyond the usual one, that a job waits unless told otherwise."""


def is_part(value: float) -> str:
    """A check: refuse what is no part of a whole."""
    return "" if 0 <= value <= 1 else f"patience must be from 0 to 1, got {value:g}"


def is_patient(session: Session, job: Job, statement: Statement, part: float) -> bool:
    """Whether ``job`` does not evict the victims of ``statement`` yet.

    It waits for ``part`` of the time by which the slowest of them exceeds the usual grace period, counted from the
    first cycle in which it was about to evict anybody, and never longer than a reservation is kept: a pod that gives
    itself a year to end is told to go all the same.  Without reservations that outlive a session nobody waits: room
    that turned up would not stay the job's own.
    """
    graces = [task.grace for entry in statement.entries if entry.kind is Operation.EVICT for task in entry.tasks]
    slowest = max(graces, default=GRACE)
    book = session.reservations
    if book is None or slowest <= GRACE:
        return False
    until = book.asking_since(job) + min(part * (slowest - GRACE), book.timeout)
    if session.now >= until:
        return False
    if say := session.tells("eviction_postponed"):
        say(job=job, victims=len(graces), grace=slowest, until=stamp(until))
    return True
