"""Starving jobs, which may take room from others, and the order of their queues and tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.session.session import Session
from stromboli.model.job import FAILED, PENDING, Job
from stromboli.model.names import NEVER_PREEMPTS
from stromboli.model.task import Task
from stromboli.narration.observe import Teller


def never_preempts(job: Job, task: Task) -> bool:
    """Whether the preemption policy of the pod, or of the group it belongs to, lets it evict no other."""
    return task.spec.preemption_policy == NEVER_PREEMPTS or job.group.never_preempts


@dataclass(frozen=True, slots=True)
class Skips:
    """Events of jobs that are skipped; their keys in the catalogue are ``<action>_job_invalid`` and so on."""

    invalid: Teller | None
    missing: Teller | None
    content: Teller | None
    queue_added: Teller | None

    @classmethod
    def of(cls, session: Session, action: str) -> Skips:
        """The tellers of ``action``."""
        missing = "preempt_queue_missing" if action == "preempt" else "queue_missing"
        added = "reclaim_queue_added" if action == "reclaim" else "queue_added"
        keys = (f"{action}_job_invalid", missing, f"{action}_not_starving", added)
        return cls(*map(session.tells, keys))

    @property
    def are_told(self) -> bool:
        """Whether anything listens."""
        return any((self.invalid, self.missing, self.content, self.queue_added))


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
    found, skips = Waiting(), Skips.of(session, action)
    sated = session.hooks.sates_settled and not skips.are_told
    for job in session.jobs.peek():
        if sated and job.settled and job.facts.queue in found.queues and FAILED not in job.index:
            continue  # most jobs, each cycle: it would not be found starving, and its queue is known
        if not _may_try(session, job, skips):
            continue
        if job.queue not in found.queues:
            found.queues[job.queue] = session.queues[job.queue]
            if skips.queue_added:
                skips.queue_added(queue=job.queue, job=job)
        if session.ask.job_starving(job):
            found.jobs.setdefault(job.queue, []).append(session.jobs[job.uid])
        elif skips.content:
            figures = {"ready": job.ready_task_num(), "waiting": job.waiting_task_num()}
            skips.content(job=job, queue=job.queue, min_available=job.min_available, **figures)
    return found


def _may_try(session: Session, job: Job, skips: Skips) -> bool:
    if job.is_pending():
        return False
    if (invalid := session.ask.job_valid(job)) is not None:
        if skips.invalid:
            skips.invalid(job=job, queue=job.queue, reason=invalid[0], message=invalid[1])
        return False
    if job.queue not in session.queues:
        if skips.missing:
            skips.missing(queue=job.queue, job=job)
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
