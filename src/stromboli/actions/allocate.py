"""allocate: gives idle room, and room about to become free, to admitted jobs: a whole gang or nothing."""

from __future__ import annotations

from stromboli.actions import gradients
from stromboli.actions.place_tasks import Lines, TaskPlacer
from stromboli.actions.worksheet import Tasks, Worksheet, by_part, whole
from stromboli.framework.action import Action
from stromboli.framework.jobs import QueueInfo
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.framework.topology import has_topology
from stromboli.framework.turns import Turns
from stromboli.model.job import PENDING, Job
from stromboli.model.subjobs import SubJob
from stromboli.plugin import arg


class Allocate(Action):
    """Queue, then job, then task; queue and job are asked anew after every job that was placed."""

    name = "allocate"
    error_cache = arg("predicateErrorCacheEnable", bool, True)

    def execute(self, session: Session) -> None:
        """Place what fits."""
        Allocation(session).run()


class Allocation:
    """One run of the action: who waits, and what each job still has to place."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.queues: Turns[QueueInfo] = session.orders["queue_order"].turns()
        self.jobs: dict[str, Turns[Job]] = {}
        self.sheets: dict[str, Tasks | Worksheet] = {}
        self.lines = Lines(session)
        self.says = {key: session.tells(key) for key in ("allocate_job", "allocate_topology_job", "allocate_job_added")}
        self.admits = "enqueue" not in session.config.actions
        for job in session.peek_jobs():
            if PENDING in job.index or job.is_pending():
                self._collect(job)

    # ------------------------------------------------------------------ who waits

    def _collect(self, peeked: Job) -> None:
        session = self.session
        if peeked.is_pending() and not self._admit(peeked):
            return
        if (invalid := session.ask.job_valid(peeked)) is not None:
            if say := session.tells("allocate_job_invalid"):
                say(job=peeked, queue=peeked.queue, reason=invalid[0], message=invalid[1])
            return
        if peeked.queue not in session.queues:
            if say := session.tells("allocate_queue_missing"):
                say(job=peeked, queue=peeked.queue)
            return
        if not session.hyper_nodes_ready_to_schedule and has_topology(peeked):
            self._skipped(peeked, "hyperNodes are not ready for scheduling")
            return
        self._add(session.jobs[peeked.uid])

    def _admit(self, job: Job) -> bool:
        """Without the enqueue action every pending job is admitted here."""
        if not self.admits:
            self._skipped(job, "job status is pending.")
            return False
        self.session.jobs[job.uid].phase = "Inqueue"
        if say := self.session.tells("allocate_job_admitted"):
            say(job=job, queue=job.queue)
        return True

    def _skipped(self, job: Job, reason: str) -> None:
        if say := self.session.tells("allocate_job_skipped"):
            say(job=job, queue=job.queue, reason=reason)

    def _add(self, job: Job) -> None:
        sheet = by_part(self.session, job) if gradients.is_split(self.session, job) else whole(self.session, job)
        if not len(sheet):
            return
        if job.queue not in self.jobs:
            self.jobs[job.queue] = self.session.orders["job_order"].turns()
            self.queues.push(self.session.queues[job.queue])
        if say := self.says["allocate_job_added"]:
            say(job=job, queue=job.queue)
        self.jobs[job.queue].push(job)
        self.sheets[job.uid] = sheet

    # ------------------------------------------------------------------ turns

    def run(self) -> None:
        """Let queues and jobs have their turns until nobody is left."""
        session, queues = self.session, self.queues
        if say := session.tells("allocate_started"):
            say(queues=len(queues))
        overused, empty = session.tells("queue_overused"), session.tells("queue_without_jobs")
        while len(queues):
            queue = queues.pop()
            if session.ask.overused(queue):
                if overused:
                    overused(queue=queue.name)
                continue
            jobs = self.jobs[queue.name]
            if not len(jobs):
                if empty:
                    empty(queue=queue.name)
                continue
            job = jobs.pop()
            if self._try(job):
                jobs.push(job)
            queues.push(queue)

    def _try(self, job: Job) -> bool:
        """Give ``job`` its turn; True when it was committed and has more to place."""
        sheet = self.sheets[job.uid]
        with self._attempt(job, sheet) as statement:
            if not self.session.ask.job_ready(job):
                statement.keep()
                return False
            statement.commit()
        return len(sheet) > 0

    def _attempt(self, job: Job, sheet: Tasks | Worksheet) -> Statement:
        session = self.session
        if isinstance(sheet, Worksheet):
            if say := self.says["allocate_topology_job"]:
                say(queue=job.queue, job=job.uid, hyper_node=job.allocated_hyper_node, sub_jobs=len(sheet))
            return gradients.place_job(session, self.lines, job, sheet) or session.statement()
        if say := self.says["allocate_job"]:
            say(queue=job.queue, job=job.uid, hyper_node="", tasks=len(sheet))
        part = SubJob(job, job.uid, job.uid, job.min_available)
        return TaskPlacer(session, self.lines, job, part, sheet, session.top).run() or session.statement()
