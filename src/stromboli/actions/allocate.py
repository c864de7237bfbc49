"""allocate: gives idle room, and room about to become free, to admitted jobs: a whole gang or nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from stromboli.allocation import gradients
from stromboli.allocation.fifo import hold_back, is_fifo
from stromboli.allocation.nominations import end_used, use_nomination
from stromboli.allocation.pending_tasks import TaskCursor, Worksheet
from stromboli.allocation.place_tasks import Placing
from stromboli.allocation.quota_reasons import tell_overused
from stromboli.allocation.single_tasks import SingleTasks
from stromboli.allocation.try_job import sheet_of, try_job
from stromboli.api.scheduling import POD_GROUP_INQUEUE
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.extension.action import Action
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import has_topology
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, Job
from stromboli.model.subjobs import SubJob
from stromboli.plugin import arg, is_duration
from stromboli.reservations.bind_reserved import bind_reserved, move
from stromboli.reservations.book import LIMIT, TIMEOUT, Reservations
from stromboli.reservations.claims import ClaimFromLower
from stromboli.reservations.order import Precedence

NOT_READY: Final = "hyperNodes are not ready for scheduling"


class Allocate(Action):
    """Queue, then job, then task; queue and job are chosen again after every job that was placed."""

    name = "allocate"
    reservation_limit = arg("reservation-limit", str, LIMIT, is_duration)  # as the next one
    reservation_timeout = arg("reservation-timeout", str, TIMEOUT, is_duration)  # read as the session opens

    def execute(self, session: Session) -> None:
        """Place what fits."""
        Allocation(session).run()


class Allocation:
    """One run of the action: the jobs that wait, and what each of them still has to place."""

    def __init__(self, session: Session) -> None:
        self.session, self.book = session, session.reservations
        self.holders = self.book.holders if self.book is not None else {}
        self.precedence = Precedence(session, self.holders)
        self.claims = (
            ClaimFromLower(session, self.book, self.precedence) if self.book is not None and self.holders else None
        )
        self.is_overused = self.precedence.is_overused if self.holders else session.ask.overused
        self.queues: PriorityQueue[QueueInfo] = self.precedence.queues()
        self.jobs: dict[str, PriorityQueue[Job]] = {}
        self.sheets: dict[str, TaskCursor | Worksheet] = {}
        self.placing = Placing(session)
        self.full: dict[Hashable, int] = {}
        self.says = {key: session.tells(key) for key in ("allocate_job", "allocate_topology_job", "allocate_job_added")}
        self.admits = "enqueue" not in session.config.actions
        self.single = None if self.holders else SingleTasks(session)
        for job in session.active_jobs():
            if PENDING in job.index or job.is_pending() or job.uid in self.holders or session.ledger.second_places.rows:
                self._collect(job)

    # ------------------------------------------------------------------ jobs that wait

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
        if not session.snapshot.hyper_nodes_ready and has_topology(peeked):
            self._skipped(peeked, NOT_READY)
            if not session.compat.asks("hyper-nodes-told"):  # their problems are the first in the list
                session.jobs[peeked.uid].fit_error_text = ": ".join([NOT_READY, *session.snapshot.inconsistencies[:1]])
            return
        self._add(session.jobs[peeked.uid])

    def _admit(self, job: Job) -> bool:
        """Without the enqueue action every pending job is admitted here."""
        if not self.admits:
            self._skipped(job, "job status is pending.")
            return False
        self.session.jobs[job.uid].phase = POD_GROUP_INQUEUE
        if say := self.session.tells("allocate_job_admitted"):
            say(job=job, queue=job.queue)
        return True

    def _skipped(self, job: Job, reason: str) -> None:
        if say := self.session.tells("allocate_job_skipped"):
            say(job=job, queue=job.queue, reason=reason)

    def _add(self, job: Job) -> None:
        sheet = sheet_of(self.session, job)
        if not len(sheet) and job.uid not in self.holders:
            return
        if job.queue not in self.jobs:
            self.jobs[job.queue] = self.precedence.jobs()
            self.queues.push(self.session.queues[job.queue])
        if say := self.says["allocate_job_added"]:
            say(job=job, queue=job.queue)
        self.jobs[job.queue].push(job)
        self.sheets[job.uid] = sheet

    # ------------------------------------------------------------------ turns

    def run(self) -> None:
        """Let queues and jobs have their turns until none is left."""
        try:
            self._take_turns()
        finally:
            if self.single is not None:
                self.single.hand_over()

    def _take_turns(self) -> None:
        session, queues = self.session, self.queues
        if say := session.tells("allocate_started"):
            say(queues=len(queues))
        overused, empty = session.tells("queue_overused"), session.tells("queue_without_jobs")
        while len(queues):
            queue = queues.pop()
            if self.is_overused(queue):
                if overused:
                    overused(queue=queue.name)
                tell_overused(session, self.jobs[queue.name], queue)
                continue
            jobs = self.jobs[queue.name]
            if not len(jobs):
                if empty:
                    empty(queue=queue.name)
                continue
            job = jobs.pop()
            if self._try(job):
                jobs.push(job)
            elif is_fifo(session, queue) and not session.ask.job_ready(job):
                hold_back(jobs, queue)
            queues.push(queue)

    def _try(self, job: Job) -> bool:
        """Give ``job`` its turn; True when it was committed and has more to place.

        A ready job of which nothing more can be placed has had its last turn.
        """
        if self.single is not None and self.single.bind(job, self.sheets[job.uid]):
            return False
        return self._try_holder(job) if job.uid in self.holders else self._try_newcomer(job)

    def _try_newcomer(self, job: Job) -> bool:
        placed = self._place_waiting(job)
        if placed is None:
            return False
        with placed:
            if not self.session.ask.job_ready(job):
                placed.keep()
                return False
            end_used(self.session, job, placed)
            placed.commit()
        return self._has_more(job)

    def _try_holder(self, job: Job) -> bool:
        with self.session.statement() as reserved, self.session.statement() as placed:
            if not self._place(job, reserved, placed):
                return False
            if not self.session.ask.job_ready(job):
                reserved.rollback(0)  # a part is of no use yet: it goes on holding all of it
                placed.keep()
                return False
            reserved.merge(placed)
            end_used(self.session, job, reserved)
            reserved.commit()
        return self._has_more(job)

    def _has_more(self, job: Job) -> bool:
        """Whether there are tasks left to place of ``job``, which was committed."""
        sheet = self.sheets[job.uid]
        if isinstance(sheet, Worksheet):
            gradients.settle(self.session, job, sheet)
        return len(sheet) > 0

    def _place(self, job: Job, reserved: Statement, placed: Statement) -> bool:
        """Bind what ``job`` holds, and unless it is ready then place its waiting tasks; False if nothing is placed."""
        if self.book is not None:
            self._bind_reserved(self.book, job, reserved, placed)
            taken = bool(reserved.operations or placed.operations)
            if not len(self.sheets[job.uid]) or (taken and self.session.ask.job_ready(job)):
                return taken
        found = self._place_waiting(job)
        if found is not None:
            placed.merge(found)
        return found is not None or bool(reserved.operations or placed.operations)

    def _place_waiting(self, job: Job) -> Statement | None:
        sheet = self.sheets[job.uid]
        untouched = sheet.clone() if self.claims is not None else None
        found = self._attempt(job, sheet)
        if found is None and untouched is not None:
            found = self._take_over(job, untouched)
        return found

    def _bind_reserved(self, book: Reservations, job: Job, reserved: Statement, placed: Statement) -> None:
        """Take what ``job`` holds and is free by now; unless that makes it ready, move where there is idle room."""
        if bind_reserved(self.session, book, reserved, job):
            self.sheets[job.uid] = sheet_of(self.session, job)
        is_whole = bool(reserved.operations) and self.session.ask.job_ready(job)
        if not (is_whole or has_topology(job) or gradients.is_split(self.session, job)):
            move(self.session, book, placed, job, self.full)

    def _take_over(self, job: Job, untouched: TaskCursor | Worksheet) -> Statement | None:
        """``job`` placed with the room that holders strictly after it have reserved; None, nothing changed, if not."""
        if self.claims is None or self.session.ask.job_ready(job) or self.session.ask.job_pipelined(job):
            return None
        tried = [untouched]

        def attempt() -> Statement | None:
            tried.append(untouched.clone())
            return self._attempt(job, tried[-1])

        placed, losers = self.claims.place(job, attempt)
        if placed is not None:
            self.sheets[job.uid] = tried[-1]
            self.sheets.update({loser.uid: sheet_of(self.session, loser) for loser in losers})
        return placed

    def _attempt(self, job: Job, sheet: TaskCursor | Worksheet) -> Statement | None:
        session = self.session
        if isinstance(sheet, Worksheet):
            if say := self.says["allocate_topology_job"]:
                say(queue=job.queue, job=job.uid, hyper_node=job.hyper_nodes.allocated, sub_jobs=len(sheet))
        elif say := self.says["allocate_job"]:
            nominated = job.hyper_nodes.nominated.get(job.uid, "")
            say(queue=job.queue, job=job.uid, hyper_node=nominated, tasks=len(sheet))
        if job.hyper_nodes.nominated and isinstance(sheet, TaskCursor):
            part = SubJob(job, job.uid, job.uid, job.min_available)
            if placed := use_nomination(session, job, part, sheet, session.hyper_nodes.top):
                return placed
        return try_job(session, self.placing, job, sheet)
