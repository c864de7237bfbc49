"""overcommit: lets no more PodGroups in than the cluster, taken a little larger than it is, has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model import names
from stromboli.model.axes import PODS, add_to
from stromboli.model.job import Job
from stromboli.model.table import totals
from stromboli.plugin import Plugin, arg, job_enqueueable, job_enqueued

if TYPE_CHECKING:
    from stromboli.framework.session import Session

PERMIT, REJECT = 1, -1

DEFAULT_FACTOR = 1.2


def at_least_one(factor: float) -> str:
    """Refuse a factor that would make the cluster smaller than it is."""
    if factor >= 1.0:
        return ""
    return (
        f"Invalid input {factor:f} for overcommit-factor, reason: overcommit-factor cannot be less than 1,"
        f" using default value: {DEFAULT_FACTOR:f}."
    )


class Overcommit(Plugin):
    """Admits a PodGroup while its minResources, with those admitted before, fit into the idle amount.

    idle = total x ``overcommit-factor`` - used.  Only what a PodGroup asks for is compared.  What was admitted counts
    in full until the job runs, then with the part of its minResources that it still lacks.
    """

    name = "overcommit"
    factor = arg("overcommit-factor", float, DEFAULT_FACTOR, at_least_one)

    def on_session_open(self, session: Session) -> None:
        """Work out what is idle and what admitted jobs will need."""
        self.session, self.axes = session, session.axes
        self.say_best_effort = session.tells("overcommit_best_effort")
        self.say_permitted = session.tells("overcommit_permitted")
        self.say_refused = session.tells("overcommit_refused")
        used = totals(session.table.used)
        total = session.axes.full(session.total)
        self.idle = [amount * self.factor - taken for amount, taken in zip(total, used, strict=True)]
        self.admitted = session.axes.full(())
        for queue in session.queues.values():
            add_to(self.admitted, queue.sums.admitted)
        self._say(session, "overcommit_entered")

    def on_session_close(self, session: Session) -> None:
        """Nothing is kept."""
        self._say(session, "overcommit_left")

    def _say(self, session: Session, key: str) -> None:
        if say := session.tells(key):
            say()

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit or reject; a job without minResources is always let in."""
        if job.facts.min_resources is None:
            if self.say_best_effort:
                self.say_best_effort(job=job.uid)
            return PERMIT
        short = self._short_of(job)
        say = self.say_refused if short else self.say_permitted
        if say:
            say(job=job.uid)
        if not short:
            return PERMIT
        message = "resource in cluster is overused: " + ", ".join(f"overused {name}" for name in short)
        self.session.record_pod_group_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)
        return REJECT

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources, less pods that gates keep back, against later ones."""
        if job.facts.min_resources is not None:
            add_to(self.admitted, job.without_gated(job.facts.min_vector))

    def _short_of(self, job: Job) -> list[str]:
        """Names of what the job asks for and the cluster lacks, in the order of shortages."""
        amounts = zip(job.facts.min_vector, self.admitted, self.idle, strict=False)
        over = [bool(wanted) and taken + wanted > idle for wanted, taken, idle in amounts]
        if True not in over:
            return []
        return [self.axes.names[c] for c in self.axes.order if c < len(over) and over[c] and c != PODS]
