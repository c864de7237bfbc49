"""Starving jobs, which may take room from others, and the order of their queues and tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.session.session import Session
from stromboli.model.job import PENDING, Job
from stromboli.model.names import NEVER_PREEMPTS
from stromboli.model.task import Task
from stromboli.preemption.eviction_events import StarvingEvents


def never_preempts(job: Job, task: Task) -> bool:
    """Whether the preemption policy of the pod, or of the group it belongs to, lets it evict no other."""
    return task.spec.preemption_policy == NEVER_PREEMPTS or job.group.never_preempts


@dataclass(slots=True)
class Waiting:
    """Queues of valid, admitted jobs, each with those of its jobs that starve, in the session's order of jobs."""

    queues: dict[str, QueueInfo] = field(default_factory=dict)
    jobs: dict[str, list[Job]] = field(default_factory=dict)

    def of(self, queue: str) -> list[Job]:
        """The jobs of a queue that starve."""
        return self.jobs.get(queue, [])


def waiting(session: Session, action: str) -> Waiting:
    """The jobs that may take room in ``action``: admitted, valid, in a known queue, starving by the plugins' vote."""
    found, events = Waiting(), StarvingEvents(session, action)
    passes_over = session.hooks.sates_settled and not events.hears_any
    # most jobs are settled, each cycle: those that want something are sought, and the first job of each queue
    for job in session.jobs.peek_unsettled() if passes_over else session.jobs.peek():
        if not _may_try(session, job, events):
            continue
        if job.queue not in found.queues:
            found.queues[job.queue] = session.queues[job.queue]
            events.queue_added(job)
        if session.ask.job_starving(job):
            found.jobs.setdefault(job.queue, []).append(session.jobs[job.uid])
        else:
            events.not_starving(job)
    return found


def _may_try(session: Session, job: Job, events: StarvingEvents) -> bool:
    if job.is_pending():
        return False
    if (invalid := session.ask.job_valid(job)) is not None:
        events.invalid(job, invalid)
        return False
    if job.queue not in session.queues:
        events.queue_missing(job)
        return False
    return True


def pending_tasks(session: Session, job: Job) -> list[Task]:
    """Pending tasks of ``job`` without scheduling gates, in task order."""
    return session.tasks_in_turn([task for task in job.of(PENDING) if not task.gates])


def in_turn(session: Session, queues: dict[str, QueueInfo]) -> PriorityQueue[QueueInfo]:
    """A priority queue of ``queues``."""
    waiting: PriorityQueue[QueueInfo] = session.hooks.orders["queue_order"].priority_queue()
    for queue in queues.values():
        waiting.push(queue)
    return waiting


def jobs_in_turn(session: Session, jobs: list[Job]) -> PriorityQueue[Job]:
    """A priority queue of ``jobs``."""
    waiting: PriorityQueue[Job] = session.hooks.orders["job_order"].priority_queue()
    for job in jobs:
        waiting.push(job)
    return waiting
