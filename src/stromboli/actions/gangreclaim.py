"""gangreclaim: a starving gang takes back room that other queues hold, in one domain and all at once."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.preemption.gang_eviction import GangEviction
from stromboli.preemption.shares import beyond_shares


class GangReclaim(GangEviction):
    """Victims are running tasks of other queues that may be reclaimed."""

    name = "gangreclaim"
    kind = "GangReclaim"
    skips = "reclaim"
    bound = False

    def may_take(self, session: Session, queue: QueueInfo) -> bool:
        """Not while the queue has more than its share."""
        if not session.ask.overused(queue):
            return True
        session.tell("queue_overused", queue=queue.name)
        return False

    def may_ask(self, session: Session, queue: QueueInfo, job: Job, pending: Sequence[Task]) -> bool:
        """Only when the queue's share covers all of it."""
        if session.ask.preemptive(queue, pending):
            return True
        session.tell("gang_reclaim_refused", queue=queue.name, job=job)
        return False

    def may_lose(self, session: Session, job: Job, other: Job) -> bool:
        """Only jobs of other queues, known and reclaimable."""
        queue = session.queues.get(other.queue)
        return other.queue != job.queue and queue is not None and queue.reclaimable

    def beyond_shares(self, session: Session, candidates: Sequence[Task]) -> Sequence[Task]:
        """Queues lose tasks only while they hold more than they deserve in some dimension."""
        return beyond_shares(session, candidates)

    def compare(self, session: Session, job: Job, left: Job, right: Job) -> int:
        """The queue that comes first as a victim of this job's queue loses first."""
        if left.queue == right.queue:
            return 0
        queues = session.queues
        return session.ask.victim_queue_order(queues[left.queue], queues[right.queue], queues[job.queue])
