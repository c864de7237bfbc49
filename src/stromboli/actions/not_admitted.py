"""What a PodGroup says while enqueue refuses it: a condition with every plugin's reason and numbers.

Texts cost far more than refusals, and amounts change all the time while thousands of jobs may wait.  So a condition is
written when another reason refuses the job first, the reasons after it are looked at once in :data:`LOOK_EVERY`
seconds, and numbers are renewed once in :data:`RENEWED_EVERY`.  The session's close takes the condition away from a
PodGroup that is Pending no more.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final
from zlib import crc32

from stromboli.api.scheduling import PodGroupCondition
from stromboli.errors import ManifestError
from stromboli.framework.session.admission import Ballot, First, refusals_text
from stromboli.model import names
from stromboli.model.values.times import seconds

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.model.job import Job

MOST: Final = 256
"""New texts in one cycle; other jobs get theirs in the next ones."""

LEAST_APART: Final = 10
"""Seconds between two writes of a PodGroup's condition at least, however often its reasons change."""

LOOK_EVERY: Final = 60
RENEWED_EVERY: Final = 300
"""Seconds; each job has a second of its own, so that not all are looked at, or renewed, at once."""

LONGEST: Final = 1024
"""Characters of a message."""

COMPARED: Final = 512
"""Characters of the first reason that are compared."""

MEMORY: Final = "stromboli/not-admitted"
"""Where the time of the last cycle that refused a job is kept."""

_AMOUNT: Final = re.compile(r"\d[\w.]*")


class NotAdmitted:
    """The conditions of one cycle's refused jobs."""

    def __init__(self, session: Session, ballot: Ballot) -> None:
        self._session, self._ballot, self._left = session, ballot, MOST
        self._off = session.compat.asks("not-admitted")

    def refused(self, job: Job, first: First) -> None:
        """``job`` has to wait."""
        if self._off or not self._left:
            return
        before = self._before
        known = next((one for one in job.conditions if one.type == names.POD_GROUP_NOT_ADMITTED), None)
        renewed = self._is_due(job, RENEWED_EVERY, before)
        looked_at = renewed or self._is_due(job, LOOK_EVERY, before)
        if known is not None and not (looked_at or self._is_another(known, first)):
            return
        self._left -= 1
        text = refusals_text(self._ballot.refusals(job, first))[:LONGEST]
        if known is not None and _shape(text) == _shape(known.message) and not renewed:
            return
        condition = PodGroupCondition(
            names.POD_GROUP_NOT_ADMITTED, names.CONDITION_TRUE, reason=names.REASON_REFUSED, message=text
        )
        self._session.pod_groups.set_condition(job, condition)

    @cached_property
    def _before(self) -> float:
        """When the last cycle was that refused a job; the present one is noted in its place."""
        memory, now = self._session.memory(MEMORY), self._session.now
        before, memory["at"] = memory.get("at", now), now
        return before

    def _is_another(self, known: PodGroupCondition, first: First) -> bool:
        """Whether the condition begins with another reason, and may be written by now."""
        says = _shape(first.text)[:COMPARED]
        return not _shape(known.message).startswith(says) and self._age(known) >= LEAST_APART

    def _age(self, known: PodGroupCondition) -> float:
        """Seconds between now and when the condition was written, by a clock that may be ahead of ours."""
        try:
            written = seconds(known.last_transition_time, "status.conditions.lastTransitionTime")
        except ManifestError:  # it is not ours, so it may be written over
            return LEAST_APART
        return abs(self._session.now - written)

    def _is_due(self, job: Job, every: int, before: float) -> bool:
        """Whether the job's own second has come since ``before``, the last cycle that refused a job."""
        own = crc32(job.uid.encode()) % every
        return (self._session.now - own) // every > (before - own) // every


def _shape(text: str) -> str:
    """``text`` without its amounts."""
    return _AMOUNT.sub("", text)
