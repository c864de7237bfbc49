"""backfill: places tasks that ask for nothing, wherever predicates let them."""

from __future__ import annotations

from stromboli.errors import PluginError
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.engine.fits import Fits
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.statement import session_ops
from stromboli.model.job import PENDING, PIPELINED, Job
from stromboli.model.table import Node
from stromboli.model.task import Task


class Backfill(Action):
    """The whole list is made once, queue by queue; each placed task counts, and a ready job is bound as a whole."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Place every pending best-effort task of admitted, valid jobs."""
        for job, tasks in self._collect(session):
            for task in session.tasks_in_turn(tasks):
                if task.status is PIPELINED:
                    self._start_elsewhere(session, job, task)
                else:
                    self._place(session, job, task)

    def _collect(self, session: Session) -> list[tuple[Job, list[Task]]]:
        queues: PriorityQueue[QueueInfo] = session.hooks.orders["queue_order"].priority_queue()
        jobs: dict[str, PriorityQueue[Job]] = {}
        tasks: dict[str, list[Task]] = {}
        for peeked in session.active_jobs():
            if (PENDING not in peeked.index and PIPELINED not in peeked.index) or not self._eligible(session, peeked):
                continue
            job = session.jobs[peeked.uid]
            found = self._tasks(session, job)
            if not found:
                continue
            tasks[job.uid] = found
            if job.queue not in jobs:
                jobs[job.queue] = session.hooks.orders["job_order"].priority_queue()
                queues.push(session.queues[job.queue])
            jobs[job.queue].push(job)
        return _in_turn(queues, jobs, tasks)

    def _eligible(self, session: Session, job: Job) -> bool:
        best_effort = any(task.template.best_effort for task in job.of(PENDING, PIPELINED))
        if not best_effort or job.is_pending():
            return False
        if (invalid := session.ask.job_valid(job)) is not None:
            session.tell("backfill_job_invalid", job=job, queue=job.queue, reason=invalid[0], message=invalid[1])
            return False
        return job.queue in session.queues

    def _tasks(self, session: Session, job: Job) -> list[Task]:
        found = [task for task in job.of(PENDING) if task.template.best_effort and not task.gates]
        for task in [task for task in job.of(PIPELINED) if task.template.best_effort]:
            if session.reservations is None:
                session.statement().unpipeline(task)  # what waits ends with the session in any case
            found.append(task)
        return found

    def _start_elsewhere(self, session: Session, job: Job, task: Task) -> None:
        """Place a task that holds room where it can start now; it goes on holding it when there is no such node."""
        with session.statement() as statement:
            statement.unpipeline(task)
            if self._place(session, job, task):
                statement.commit()

    def _place(self, session: Session, job: Job, task: Task) -> bool:
        """Whether ``task`` has been placed; if it has found no node, why is noted, and objections are logged."""
        refusal: Reason | None = session.ask.pre_predicate(task)
        if refusal is not None:
            session.tell("backfill_pre_predicate_failed", task=task, error=refusal.text)
            job.fits[task.uid] = Fits.everywhere(refusal, len(session.table))
            return False
        try:
            choice = session.placer.place(task, room=False)
        except PluginError as error:
            session.tell("batch_score_failed", error=error)
            return False
        if choice is None:
            job.fits[task.uid] = session.placer.refusals(task, room=False)
            return False
        session.statement_events.binding((task,), choice.rows)
        heeds = not session.compat.asks("backfill-objections")
        return session_ops.allocate(session, task, Node(session.table, choice.rows[0]), heeds=heeds)


def _in_turn(
    queues: PriorityQueue[QueueInfo], jobs: dict[str, PriorityQueue[Job]], tasks: dict[str, list[Task]]
) -> list[tuple[Job, list[Task]]]:
    order: list[tuple[Job, list[Task]]] = []
    while len(queues):
        waiting = jobs[queues.pop().name]
        while len(waiting):
            job = waiting.pop()
            order.append((job, tasks[job.uid]))
    return order
