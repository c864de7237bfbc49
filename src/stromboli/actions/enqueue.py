"""enqueue: admits waiting PodGroups while the cluster and their queues have room for them."""

from __future__ import annotations

from stromboli.actions.not_admitted import NotAdmitted
from stromboli.allocation.fifo import hold_back, is_fifo
from stromboli.api.scheduling import POD_GROUP_INQUEUE
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.extension.action import Action
from stromboli.framework.session.admission import Ballot
from stromboli.framework.session.session import Session
from stromboli.model.job import Job


class Enqueue(Action):
    """Queue after queue, one job a turn; a refused job waits for the next cycle, with those behind it if it is fifo."""

    name = "enqueue"

    def execute(self, session: Session) -> None:
        """Admit every pending job whose minResources all voters accept."""
        queues, jobs = self._collect(session)
        ballot = Ballot(session)
        texts = NotAdmitted(session, ballot)
        if say := session.tells("enqueue_started"):
            say(queues=len(jobs))
        while len(queues):
            queue = queues.pop()
            waiting = jobs.get(queue.name)
            if waiting is None or not len(waiting):
                continue
            if not self._admit(session, waiting.pop(), ballot, texts) and is_fifo(session, queue):
                hold_back(waiting, queue)
            queues.push(queue)

    def _collect(self, session: Session) -> tuple[PriorityQueue[QueueInfo], dict[str, PriorityQueue[Job]]]:
        queues: PriorityQueue[QueueInfo] = session.hooks.orders["queue_order"].priority_queue()
        jobs: dict[str, PriorityQueue[Job]] = {}
        seen: set[str] = set()
        missing, added = session.tells("queue_missing"), session.tells("job_added")
        queue_added = session.tells("queue_added")
        for job in session.active_jobs():
            queue = session.queues.get(job.queue)
            if queue is None:
                if missing:
                    missing(queue=job.queue, job=job)
                continue
            if queue.name not in seen:
                seen.add(queue.name)
                queues.push(queue)
                if queue_added:
                    queue_added(queue=queue.name, job=job)
            if job.is_pending():
                if queue.name not in jobs:
                    jobs[queue.name] = session.hooks.orders["job_order"].priority_queue()
                jobs[queue.name].push(session.jobs[job.uid])
                if added:
                    added(job=job, queue=queue.name)
        return queues, jobs

    def _admit(self, session: Session, job: Job, ballot: Ballot, texts: NotAdmitted) -> bool:
        first = None if job.group.spec.min_resources is None else ballot.refused(job)
        if first is None:
            session.ask.job_enqueued(job)
            job.phase = POD_GROUP_INQUEUE
        else:
            texts.refused(job, first)
        return first is None
