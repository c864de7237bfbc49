"""Reservations of earlier sessions when a session opens: the valid ones stand, the others are released.

Every plugin has opened with all of them in its sums.  Holders are revalidated one by one, the last in turn first, each
against all reservations that still stand; a released task is taken off its node and is Pending again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stromboli.errors import PlacementError
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.session.topology import violates_topology
from stromboli.framework.statement.operation import take_back
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.reservations.book import Reservations, is_whole
from stromboli.reservations.order import Precedence, left_out

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState

JOB: Final = "job"
NODE: Final = "node"
QUEUE: Final = "queue"
PREDICATE: Final = "predicate"
TOPOLOGY: Final = "topology"
AGE: Final = "timeout"
HIGHER_JOB: Final = "higher_job"
"""Reasons for releasing a reservation, as in log lines and metrics."""


def restore(session: SessionState, book: Reservations | None) -> None:
    """Release the reservations that are no longer valid; ``book`` has the holders afterwards, without one all go.

    A plugin that raises an error is put aside, and the remaining reservations are revalidated.
    """
    held = [task for task in session.snapshot.reserved if task.status is PIPELINED]
    if book is None:
        for task in held:
            _take_off(session, task)
        return
    for task in held:
        if task.job not in session.jobs:
            _orphaned(session, book, task)
    while True:
        try:
            _check(session, book, [task for task in held if task.job in session.jobs])
        except PluginFailed as failure:
            session.put_aside(failure)
            session.recompile()
            continue
        return


def _check(session: SessionState, book: Reservations, held: list[Task]) -> None:
    uids = dict.fromkeys(task.job for task in held)
    holders = {uid: session.jobs[uid] for uid in uids if session.jobs[uid].number(PIPELINED)}
    checks = Checks(session, book)
    for job in reversed(Precedence(session, holders).in_turn()):
        checks.revalidate(job)
    book.holders = {uid: job for uid, job in holders.items() if job.number(PIPELINED)}
    if say := session.tells("metric.pipelined_restored"):
        for job in book.holders.values():
            for _ in filter(book.is_new, book.of(job)):
                say(result="restored")


class Checks:
    """Revalidates one holder after the other."""

    def __init__(self, session: SessionState, book: Reservations) -> None:
        self.session, self.book = session, book
        self._ends: dict[int, int] = {}

    def revalidate(self, job: Job) -> None:
        """Release the reservations of ``job`` that are no longer valid.

        All of them go if the job needs them and they do not suffice, or if one has timed out.
        """
        fault = self._job_fault(job)
        ready = not fault and bool(self.session.ask.job_ready(job))
        verdicts = {**self._check_tasks(job, fault, ready), **self._check_topology(job)}
        if not ready and (AGE in verdicts.values() or not is_whole(self.session, job)):
            first = next(iter(verdicts.values()), JOB)
            for task in self.book.of(job):
                self._reject(task, task.node_name, first)

    def _check_tasks(self, job: Job, fault: str, ready: bool) -> dict[str, str]:
        """Release invalid reservations, last in turn first; the reasons by uid.

        A ``fault`` of the job concerns all of them, and so does a timeout, unless the job is ``ready`` without them.
        """
        held, verdicts = self.book.of(job), dict[str, str]()
        begin = 0 if ready else max(map(self._last_end, held), default=0)  # a gang waits for the slowest of all
        unfounded = set() if fault else self._unfounded(held)
        for task in reversed(held):
            node = task.node_name
            reason = fault or (PREDICATE if task.uid in unfounded else self._fault(job, task, begin))
            if reason:
                verdicts[task.uid] = reason
                self._reject(task, node, reason)
            if reason == AGE:
                self.book.cool_down(job)
                fault = "" if ready else AGE
        return verdicts

    def _check_topology(self, job: Job) -> dict[str, str]:
        """Release the reservations whose nodes are farther apart than they may be; the reasons by uid.

        They are checked only where a plugin does so while tasks are placed.
        """
        session = self.session
        ready = session.snapshot.hyper_nodes_ready and session.hooks.answers.of("hyper_node_gradient_for_job")
        if not (job.facts.is_close and ready and job.number(PIPELINED)):
            return {}
        found = violates_topology(self.session, job)
        rejected = [task for task in self.book.of(job) if task.uid in found]
        for task in rejected:
            self._reject(task, task.node_name, TOPOLOGY)
        return {task.uid: TOPOLOGY for task in rejected}

    def _reject(self, task: Task, node: str, reason: str) -> None:
        _report_rejected(self.session)
        give_up(self.session, self.book, task, node, reason)

    # ------------------------------------------------------------------ the checks

    def _job_fault(self, job: Job) -> str:
        """``JOB`` if the job is not admitted or not valid; jobs without PodGroup or queue are not in the session."""
        return "" if not job.is_pending() and self.session.ask.job_valid(job) is None else JOB

    def _unfounded(self, held: Sequence[Task]) -> set[str]:
        """Uids of the pods whose required neighbours are only each other, or themselves, because the others are gone.

        To find them, all reservations of the job are released, and taken again one after the other.
        """
        if not any(map(_needs_neighbours, held)):
            return set()
        session, row = self.session, self.session.table.statics.row
        places = [(task, task.node_name) for task in held if task.node_name in row]
        found: set[str] = set()
        with session.statement() as gone, session.statement() as again:
            for task, _ in places:
                gone.unpipeline(task)
            for task, name in places:
                if session.ask.predicate_for_preempt(task, session.nodes[name]) is not None:
                    found.add(task.uid)
                    continue
                with suppress(PlacementError):
                    again.pipeline(task, name, task.eviction_occurred)
            again.rollback(0)
            gone.rollback(0)
        return found

    def _fault(self, job: Job, task: Task, begin: int) -> str:
        """Why the reservation of ``task``, whose age counts from ``begin`` at least, is not valid; empty if it is."""
        row = self.session.table.statics.row.get(task.node_name, -1)
        if row < 0 or not self._has_room(task, row):
            return NODE
        if self._is_too_old(task, begin) or (self.book.is_new(task) and self.book.cools_down(job)):
            return AGE  # or it was given up before, but its annotations could not be removed
        if not self._is_taken(task, row):
            return PREDICATE
        return "" if self._is_allowed(job, task) else QUEUE

    def _has_room(self, task: Task, row: int) -> bool:
        """Whether the future idle room of the node covers this task and all others that wait there."""
        future = self.session.table.future_of(row)
        return all(not asked or left >= 0 for asked, left in zip(task.template.vector, future, strict=False))

    def _is_too_old(self, task: Task, begin: int) -> bool:
        """Whether the reservation has timed out; time in which pods may still terminate is excluded, up to a limit."""
        book, age = self.book, self.book.age(task, max(begin, self._last_end(task)))
        return age >= book.timeout or book.lasted(task) >= book.limit

    def _last_end(self, task: Task) -> int:
        """When the last pod that terminates on the node of ``task`` must be gone; 0 if there is none."""
        row = self.session.table.statics.row.get(task.node_name, -1)
        if row not in self._ends:
            tasks = self.session.snapshot.node_tasks[row].values() if row >= 0 else ()
            self._ends[row] = max((task.ends for task in tasks if task.status is RELEASING), default=0)
        return self._ends[row]

    def _is_taken(self, task: Task, row: int) -> bool:
        """Whether predicates may accept the task on its node; if not, the task is Pending afterwards."""
        ask, node = self.session.ask, Node(self.session.table, row)
        return self._without(task, lambda: ask.predicate_for_preempt(task, node) is None)

    def _is_allowed(self, job: Job, task: Task) -> bool:
        """Whether the queue may have the task in addition to what else it holds; if not, it is Pending afterwards.

        The task is first counted twice, which is cheap and enough if allowed; then it is left out of the sums.
        """
        session, queue = self.session, self.session.queues[job.queue]
        if session.ask.allocatable(queue, task):
            return True
        with left_out(session, job, task.template.vector):
            if session.ask.allocatable(queue, task):
                return True
        return self._without(task, lambda: bool(session.ask.allocatable(queue, task)))

    def _without(self, task: Task, holds: Callable[[], bool]) -> bool:
        """Whether a condition ``holds`` that must not fail because of the task's own reservation.

        If it fails with the reservation, it is evaluated again without it, as plugins may have books of their own; if
        it still fails, the task stays Pending.
        """
        if holds():
            return True
        trial = self.session.statement()
        trial.unpipeline(task)
        if not holds():
            return False
        trial.rollback(0)
        return True


def _needs_neighbours(task: Task) -> bool:
    """Whether the pod requires certain other pods near it."""
    affinity = task.spec.affinity
    return bool(affinity and affinity.pod_affinity and affinity.pod_affinity.required)


# ---------------------------------------------------------------------- releasing


def give_up(session: SessionState, book: Reservations, task: Task, node: str, reason: str) -> None:
    """Release what ``task`` holds on ``node``: it is Pending, and its pod is to state nothing."""
    book.reject(task)
    _take_off(session, task)
    report_given_up(session, task, node, reason)


def _take_off(session: SessionState, task: Task) -> None:
    """Take ``task`` off the node that it holds room on, unless that has been done."""
    row = session.table.statics.row.get(task.node_name)
    if task.job not in session.jobs:
        if row is not None:
            session.ledger.remove_orphaned(task, row)
        return
    job = session.jobs[task.job]
    own = job.tasks[task.uid]
    if own.status is PIPELINED and row is not None:
        take_back(session, job, (own,), (row,))
    elif own.status is PIPELINED:
        try:
            session.hooks.handlers.deallocated((own,), ())
        finally:
            session.ledger.remove_unknown(job, own)
    own.eviction_occurred = False


def _orphaned(session: SessionState, book: Reservations, task: Task) -> None:
    """Release the reservation of a pod without a job in the session, as its PodGroup or its queue is gone."""
    _take_off(session, task)
    book.reject(task)
    _report_rejected(session)
    report_given_up(session, task, task.node_name, JOB)


def _report_rejected(session: SessionState) -> None:
    """Report that a reservation was found invalid when the session opened."""
    if say := session.tells("metric.pipelined_restored"):
        say(result="rejected")


def report_given_up(session: SessionState, task: Task, node: str, reason: str) -> None:
    """Report that a reservation has been released."""
    if say := session.tells("metric.pipelined_given_up"):
        say(reason=reason)
    if say := session.tells("reservation_given_up"):
        say(task=task, node=node, reason=reason)
