"""sla: a job that has waited too long gets its turn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.errors import DurationError
from stromboli.framework.extension.order import compare
from stromboli.model import names
from stromboli.model.job import Job
from stromboli.model.values import duration
from stromboli.plugin import Plugin, arg, job_enqueueable, job_order, job_pipelined

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

PERMIT, ABSTAIN = 1, 0

LONGEST_FAULT = 200
"""Characters of a job's own words in the log."""


class Sla(Plugin, trusted=True):
    """Jobs with a deadline, creation plus waiting time, come first; overdue ones may enter and reserve nodes.

    The waiting time is the PodGroup's (annotation ``volcano.sh/sla-waiting-time`` or ``sla-waiting-time``), else the
    argument's.  A permit only spares a job the plugins of later tiers.
    """

    name = "sla"
    depends_on_time = True
    waiting_time = arg("sla-waiting-time", object, None)

    def on_session_open(self, session: ClusterView) -> None:
        """Read the waiting time of jobs that state none."""
        self.now = session.now
        session.tell("sla_entered")
        self.limit = None if self.waiting_time is None else read_global(session, self.waiting_time)
        if say := session.tells("sla_job_unreadable"):
            for job in session.active_jobs():
                if fault := unreadable(job.group.annotations):
                    say(job=job, error=fault)

    def on_session_close(self, session: ClusterView) -> None:
        """Nothing is kept."""
        session.tell("sla_left")

    @job_order
    def earlier_deadline_first(self, left: Job, right: Job) -> int:
        """The earlier deadline first; jobs without one come last."""
        return compare(self.deadline(left), self.deadline(right))

    @job_order.key(own=True)
    def deadline(self, job: Job) -> float:
        """When the job should have started, in seconds since 1970; infinite without a waiting time."""
        wait = self.limit if job.facts.waiting_time is None else job.facts.waiting_time
        return math.inf if wait is None else job.created + wait

    @job_enqueueable
    def may_enter(self, job: Job) -> int:
        """Permit an overdue job, abstain otherwise."""
        return PERMIT if self.now >= self.deadline(job) else ABSTAIN

    @job_pipelined
    def may_reserve(self, job: Job) -> int:
        """Permit an overdue job to keep the nodes it waits for, abstain otherwise."""
        return self.may_enter(job)


def unreadable(annotations: Mapping[str, str]) -> str:
    """What is wrong with the waiting time that a PodGroup states, shortened; empty where nothing is.

    Of the two spellings the first that is there is judged.
    """
    written = annotations.get(names.SLA_WAITING_TIME) or annotations.get(names.SLA_WAITING_TIME_BARE)
    if not written:
        return ""
    try:
        fault = "" if duration.parse(written) > 0 else f"invalid sla waiting time {written}"
    except DurationError as error:
        fault = str(error)
    return fault[:LONGEST_FAULT]


def read_global(session: ClusterView, written: object) -> float | None:
    """Seconds of the argument's duration; None, after telling why, where it is none or not above 0."""
    nanoseconds = 0
    try:
        nanoseconds = duration.parse(written if isinstance(written, str) else "")
    except DurationError as error:
        session.tell("sla_global_unreadable", error=error)
    shown = duration.format_duration(nanoseconds)
    session.tell("sla_global_time" if nanoseconds > 0 else "sla_global_invalid", duration=shown)
    return nanoseconds / duration.SECOND if nanoseconds > 0 else None
