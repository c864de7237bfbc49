"""allocate: gives idle room, and room about to become free, to admitted jobs: a whole gang or nothing."""

from __future__ import annotations

from collections.abc import Hashable

from stromboli.actions import gradients
from stromboli.actions.giving_up import Takeover
from stromboli.actions.nominations import end_redeemed
from stromboli.actions.nominations import redeem as redeem_nomination
from stromboli.actions.place_tasks import Lines, TaskPlacer
from stromboli.actions.redeem import move, redeem
from stromboli.actions.worksheet import Tasks, Worksheet, by_part, whole
from stromboli.framework.action import Action
from stromboli.framework.jobs import QueueInfo
from stromboli.framework.precedence import Precedence
from stromboli.framework.reservations import TIMEOUT, Reservations
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.framework.topology import has_topology
from stromboli.framework.turns import Turns
from stromboli.model.job import PENDING, Job
from stromboli.model.subjobs import SubJob
from stromboli.plugin import arg, is_duration


class Allocate(Action):
    """Queue, then job, then task; queue and job are asked anew after every job that was placed."""

    name = "allocate"
    reservation_timeout = arg("reservation-timeout", str, TIMEOUT, is_duration)  # read as the session opens

    def execute(self, session: Session) -> None:
        """Place what fits."""
        Allocation(session).run()


class Allocation:
    """One run of the action: who waits, and what each job still has to place."""

    def __init__(self, session: Session) -> None:
        self.session, self.book = session, session.reservations
        self.holders = self.book.holders if self.book is not None else {}
        self.precedence = Precedence(session, self.holders)
        self.takeover = (
            Takeover(session, self.book, self.precedence) if self.book is not None and self.holders else None
        )
        self.queues: Turns[QueueInfo] = self.precedence.queues()
        self.jobs: dict[str, Turns[Job]] = {}
        self.sheets: dict[str, Tasks | Worksheet] = {}
        self.lines = Lines(session)
        self.full: dict[Hashable, int] = {}
        self.says = {key: session.tells(key) for key in ("allocate_job", "allocate_topology_job", "allocate_job_added")}
        self.admits = "enqueue" not in session.config.actions
        for job in session.peek_unsettled():
            if PENDING in job.index or job.is_pending() or job.uid in self.holders:
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
        sheet = self._sheet(job)
        if not len(sheet) and job.uid not in self.holders:
            return
        if job.queue not in self.jobs:
            self.jobs[job.queue] = self.precedence.jobs()
            self.queues.push(self.session.queues[job.queue])
        if say := self.says["allocate_job_added"]:
            say(job=job, queue=job.queue)
        self.jobs[job.queue].push(job)
        self.sheets[job.uid] = sheet

    def _sheet(self, job: Job) -> Tasks | Worksheet:
        return by_part(self.session, job) if gradients.is_split(self.session, job) else whole(self.session, job)

    # ------------------------------------------------------------------ turns

    def run(self) -> None:
        """Let queues and jobs have their turns until nobody is left."""
        session, queues = self.session, self.queues
        if say := session.tells("allocate_started"):
            say(queues=len(queues))
        overused, empty = session.tells("queue_overused"), session.tells("queue_without_jobs")
        while len(queues):
            queue = queues.pop()
            if self.precedence.is_overused(queue):
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
        """Give ``job`` its turn; True when it was committed and has more to place.

        A ready job of which nothing more can be placed has had its last turn.
        """
        with self.session.statement() as redeemed, self.session.statement() as placed:
            if not self._place(job, redeemed, placed):
                return False
            if not self.session.ask.job_ready(job):
                redeemed.rollback(0)  # a part is of no use yet: it goes on holding all of it
                placed.keep()
                return False
            redeemed.merge(placed)
            end_redeemed(self.session, job, redeemed)
            redeemed.commit()
        sheet = self.sheets[job.uid]
        if isinstance(sheet, Worksheet):
            gradients.settle(self.session, job, sheet)
        return len(sheet) > 0

    def _place(self, job: Job, redeemed: Statement, placed: Statement) -> bool:
        """Redeem what ``job`` holds, and unless that makes it ready place its waiting tasks; False: all in vain."""
        if self.book is not None and job.uid in self.holders:
            self._redeem(self.book, job, redeemed, placed)
            taken = bool(redeemed.entries or placed.entries)
            if not len(self.sheets[job.uid]) or (taken and self.session.ask.job_ready(job)):
                return taken
        sheet = self.sheets[job.uid]
        untouched = sheet.clone() if self.takeover is not None else None
        found = self._attempt(job, sheet)
        if found is None and untouched is not None:
            found = self._take_over(job, untouched)
        if found is not None:
            placed.merge(found)
        return found is not None or bool(redeemed.entries or placed.entries)

    def _redeem(self, book: Reservations, job: Job, redeemed: Statement, placed: Statement) -> None:
        """Take what ``job`` holds and is free by now; unless that makes it ready, move where there is idle room."""
        if redeem(self.session, book, redeemed, job):
            self.sheets[job.uid] = self._sheet(job)
        is_whole = bool(redeemed.entries) and self.session.ask.job_ready(job)
        if not (is_whole or has_topology(job) or gradients.is_split(self.session, job)):
            move(self.session, book, placed, job, self.full)

    def _take_over(self, job: Job, untouched: Tasks | Worksheet) -> Statement | None:
        """``job`` placed with the room that holders strictly after it have reserved; None, nothing changed, if not."""
        if self.takeover is None or self.session.ask.job_ready(job) or self.session.ask.job_pipelined(job):
            return None
        tried = [untouched]

        def attempt() -> Statement | None:
            tried.append(untouched.clone())
            return self._attempt(job, tried[-1])

        placed, losers = self.takeover.place(job, attempt)
        if placed is not None:
            self.sheets[job.uid] = tried[-1]
            self.sheets.update({loser.uid: self._sheet(loser) for loser in losers})
        return placed

    def _attempt(self, job: Job, sheet: Tasks | Worksheet) -> Statement | None:
        session = self.session
        if isinstance(sheet, Worksheet):
            if say := self.says["allocate_topology_job"]:
                say(queue=job.queue, job=job.uid, hyper_node=job.allocated_hyper_node, sub_jobs=len(sheet))
            return gradients.place_job(session, self.lines, job, sheet)
        if say := self.says["allocate_job"]:
            nominated = job.nominated_hyper_nodes.get(job.uid, "")
            say(queue=job.queue, job=job.uid, hyper_node=nominated, tasks=len(sheet))
        part = SubJob(job, job.uid, job.uid, job.min_available)
        if job.nominated_hyper_nodes and (placed := redeem_nomination(session, job, part, sheet, session.top)):
            return placed
        return TaskPlacer(session, self.lines, job, part, sheet, session.top).run()
