"""Delayed evictions: a job whose victims terminate slowly waits before evicting them, as room may turn up meanwhile.

A job that evicts them would have to wait until they have terminated.  If it waits a part of that time first, it starts
later by at most that part, and often no pod has to be evicted (the ski rental problem: renting for a while before
buying never costs much more than knowing in advance how long the skis are needed).
"""

from __future__ import annotations

from typing import Final

from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import GRACE
from stromboli.preemption.eviction_events import DelayEvents
from stromboli.reservations.book import Reservations
from stromboli.reservations.memory import Delay

PATIENCE: Final = 0.5
"""The default of ``patience``: the part of its slowest victim's extra grace period that a job waits."""

MAX_RECHECKS: Final = 64
"""How many waiting jobs an action checks in a cycle for victims that terminate sooner: checking many thousands would
delay all other jobs."""


def is_part(value: float) -> str:
    """Validate ``patience``: a number from 0 to 1."""
    return "" if 0 <= value <= 1 else f"patience must be from 0 to 1, got {value:g}"


class EvictionDelay:
    """How long jobs wait in one run of an action before they evict pods.

    A job waits the given ``part`` of the time by which its slowest victim's grace period exceeds the usual one, counted
    from the first cycle in which it was about to evict pods, but never longer than a reservation is kept.  Without
    reservations that outlive a session jobs do not wait, because room that turned up would not be kept for them.
    """

    def __init__(self, session: Session, part: float) -> None:
        self.session, self.events = session, DelayEvents(session)
        self._delays = None if session.reservations is None else Delays(session.reservations, session.now)
        self.part = 0.0 if session.compat.asks("patience") else part
        self._rechecks = 0

    def rests(self, job: Job) -> bool:
        """Whether ``job`` goes on waiting without a search, because enough waiting jobs have been checked."""
        excess = self._delays.known_excess(job) if self._delays is not None else 0.0
        until = self._until(job, excess)
        if until <= self.session.now:
            return False
        self._rechecks += 1
        if self._rechecks <= MAX_RECHECKS:
            return False
        self._postpone(job, excess)
        self.events.not_sought(job, until, MAX_RECHECKS)
        return True

    def postpones(self, job: Job, statement: Statement) -> bool:
        """Whether ``job`` does not evict the victims of ``statement`` yet."""
        victims = statement.evicted
        slowest = max((victim.grace for victim in victims), default=GRACE)
        until = self._until(job, slowest - GRACE)
        if until <= self.session.now:
            return False
        self._postpone(job, slowest - GRACE)
        self.events.postponed(job, len(victims), slowest, until)
        return True

    def waits(self, job: Job) -> bool:
        """Whether ``job`` has postponed an eviction in this session, in this action or an earlier one."""
        return self._delays is not None and self._delays.is_postponed(job)

    def _until(self, job: Job, excess: float) -> float:
        """Until when ``job`` waits if its slowest victim takes ``excess`` seconds more than usual; 0: it does not."""
        if self._delays is None or not self.part or excess <= 0:
            return 0.0
        return self._delays.since(job) + min(self.part * excess, self._delays.book.timeout)

    def _postpone(self, job: Job, excess: float) -> None:
        if self._delays is not None:
            self._delays.postpone(job, excess)


class Delays:
    """The delays of jobs as ``book`` remembers them from earlier sessions and notes them in this one."""

    def __init__(self, book: Reservations, now: float) -> None:
        self.book, self._now = book, now

    def since(self, job: Job) -> float:
        """Since when ``job`` has been about to evict pods; from now on after a restart, or if the clock goes back."""
        known = self.book.memory.delays.get(job.uid, Delay()).since
        since = self._now if known is None else min(self._now, known)
        self.book.delays[job.uid] = self._noted(job)._replace(since=since)
        return since

    def postpone(self, job: Job, excess: float) -> None:
        """Note that ``job`` postpones an eviction; of several actions the one with the least ``excess`` counts."""
        noted = self._noted(job)
        least = excess if noted.excess is None else min(excess, noted.excess)
        self.book.delays[job.uid] = noted._replace(excess=least)

    def is_postponed(self, job: Job) -> bool:
        """Whether ``job`` has postponed an eviction in this session."""
        return self._noted(job).excess is not None

    def known_excess(self, job: Job) -> float:
        """The ``excess`` that was noted for ``job`` in an earlier session; 0 if there is none."""
        return self.book.memory.delays.get(job.uid, Delay()).excess or 0.0

    def _noted(self, job: Job) -> Delay:
        return self.book.delays.get(job.uid, Delay())
