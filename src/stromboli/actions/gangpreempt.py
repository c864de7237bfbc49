"""gangpreempt: within a queue, a starving gang takes the room of less important jobs, in one domain and all at once."""

from __future__ import annotations

from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.preemption.gang_eviction import GangEviction


class GangPreempt(GangEviction):
    """Victims are bound or running tasks of jobs of the same queue with a strictly lower priority."""

    name = "gangpreempt"
    kind = "GangPreempt"
    skips = "preempt"
    bound = True

    def may_lose(self, session: Session, job: Job, other: Job) -> bool:
        """Only less important jobs of the same queue."""
        return other.queue == job.queue and other.uid != job.uid and other.priority < job.priority

    def compare(self, session: Session, job: Job, left: Job, right: Job) -> int:
        """The job whose turn would come last loses first."""
        return -session.ask.job_order(left, right)
