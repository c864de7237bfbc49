"""Reservations of earlier sessions as a session opens: which of them stand, and what becomes of the others.

Every plugin has opened with all of them in its sums.  Holders are looked at one by one, the lowest in turn first, each
beside all reservations that still stand; what does not stand is taken off its node, and its task is Pending again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stromboli.errors import PlacementError
from stromboli.framework.opening import PluginFailed
from stromboli.framework.precedence import Precedence, left_out
from stromboli.framework.reservations import Reservations, is_whole
from stromboli.framework.topology import astray
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session

JOB: Final = "job"
NODE: Final = "node"
QUEUE: Final = "queue"
PREDICATE: Final = "predicate"
TOPOLOGY: Final = "topology"
AGE: Final = "timeout"
HIGHER_JOB: Final = "higher_job"
"""Why a reservation is given up: the words of log lines and metrics."""


def restore(session: Session, book: Reservations | None) -> None:
    """Let the reservations stand that still make sense; ``book`` has the holders afterwards, without one none stands.

    A plugin that raises is put aside, and what has not been rejected by then is looked at again.
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


def _check(session: Session, book: Reservations, held: list[Task]) -> None:
    uids = dict.fromkeys(task.job for task in held)
    holders = {uid: session.jobs[uid] for uid in uids if session.jobs[uid].number(PIPELINED)}
    book.holders = holders
    checks = Checks(session, book)
    for job in reversed(Precedence(session, holders).in_turn()):
        checks.look_at(job)
    book.holders = {uid: job for uid, job in holders.items() if job.number(PIPELINED)}
    if say := session.tells("metric.pipelined_restored"):
        for job in book.holders.values():
            for _ in filter(book.is_new, book.of(job)):
                say(result="restored")


class Checks:
    """Looks at one holder after the other."""

    def __init__(self, session: Session, book: Reservations) -> None:
        self.session, self.book = session, book
        self._ends: dict[int, int] = {}

    def look_at(self, job: Job) -> None:
        """Give up what does not stand of the reservations of ``job``: singly where the job is ready without them."""
        whole = self._job_trouble(job)
        ready = not whole and bool(self.session.ask.job_ready(job))
        first = whole
        held = self.book.of(job)
        begun = 0 if ready else max(map(self._last_end, held), default=0)  # a gang waits for the slowest of all
        unfounded = set() if whole else self._unfounded(held)
        for task in reversed(held):
            node = task.node_name
            if reason := whole or (PREDICATE if task.uid in unfounded else self._trouble(job, task, begun)):
                first = first or reason
                self._reject(task, node, reason)
            if reason == AGE:
                self.book.cool_down(job)
                whole = "" if ready else AGE
        for task in self._astray(job):
            first = first or TOPOLOGY
            self._reject(task, task.node_name, TOPOLOGY)
        if AGE in (first, whole) or not (ready or is_whole(self.session, job)):
            for task in () if ready else self.book.of(job):
                self._reject(task, task.node_name, first or JOB)

    def _reject(self, task: Task, node: str, reason: str) -> None:
        _tell_rejected(self.session)
        give_up(self.session, self.book, task, node, reason)

    # ------------------------------------------------------------------ the checks

    def _job_trouble(self, job: Job) -> str:
        """The job is admitted and valid; one without a PodGroup or a queue is not in the session at all."""
        return "" if not job.is_pending() and self.session.ask.job_valid(job) is None else JOB

    def _unfounded(self, held: Sequence[Task]) -> set[str]:
        """Uids of the reservations of a job that have no neighbours they need but each other, or themselves.

        They were beside somebody who is gone.  All are let go for that, and taken again one after the other.
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

    def _trouble(self, job: Job, task: Task, begun: int) -> str:
        """Why the reservation of ``task``, which ages from ``begun`` on, does not stand; empty if it does."""
        row = self.session.table.statics.row.get(task.node_name, -1)
        if row < 0 or not self._has_room(task, row):
            return NODE
        if self._is_too_old(task, begun) or (self.book.is_new(task) and self.book.cools_down(job)):
            return AGE  # or given up before, and its pod has not heard of it: a clear was refused
        if not self._is_taken(task, row):
            return PREDICATE
        return "" if self._is_allowed(job, task) else QUEUE

    def _has_room(self, task: Task, row: int) -> bool:
        """Whether what the node will have covers this task and all others that wait there."""
        future = self.session.table.future_of(row)
        return all(not asked or left >= 0 for asked, left in zip(task.template.vector, future, strict=False))

    def _is_too_old(self, task: Task, begun: int) -> bool:
        """The time in which somebody who is ending may still be there does not count."""
        return self.book.age(task, max(begun, self._last_end(task))) >= self.book.timeout

    def _last_end(self, task: Task) -> int:
        """When everybody who is ending on the node of ``task`` has to be gone; 0 where nobody is."""
        row = self.session.table.statics.row.get(task.node_name, -1)
        if row not in self._ends:
            tasks = self.session.snapshot.node_tasks[row].values() if row >= 0 else ()
            self._ends[row] = max((task.ends for task in tasks if task.status is RELEASING), default=0)
        return self._ends[row]

    def _is_taken(self, task: Task, row: int) -> bool:
        """Whether predicates leave the task a chance on its node; if not, the task is Pending afterwards."""
        ask, node = self.session.ask, Node(self.session.table, row)
        return self._without(task, lambda: ask.predicate_for_preempt(task, node) is None)

    def _is_allowed(self, job: Job, task: Task) -> bool:
        """Whether the queue may have the task beside what else it holds; if not, the task is Pending afterwards.

        With the task counted twice a yes is a yes; after a no it is left out of the sums, which is mostly enough.
        """
        session, queue = self.session, self.session.queues[job.queue]
        if session.ask.allocatable(queue, task):
            return True
        with left_out(session, job, task.template.vector):
            if session.ask.allocatable(queue, task):
                return True
        return self._without(task, lambda: bool(session.ask.allocatable(queue, task)))

    def _without(self, task: Task, holds: Callable[[], bool]) -> bool:
        """Whether something ``holds`` that the task's own reservation must not speak against.

        With it a yes is a yes.  After a no it is taken out and handlers are told, as plugins may have books of their
        own; if it is a no then, too, the task stays Pending.
        """
        if holds():
            return True
        trial = self.session.statement()
        trial.unpipeline(task)
        if not holds():
            return False
        trial.rollback(0)
        return True

    def _astray(self, job: Job) -> Iterator[Task]:
        """The reservations of a job, or of a part of it, whose nodes do not lie as close together as they must.

        They must where a plugin says so while tasks are placed.
        """
        ready = self.session.hyper_nodes_ready_to_schedule and self.session.answers.of("hyper_node_gradient_for_job")
        if job.facts.is_close and ready and job.number(PIPELINED):
            found = astray(self.session, job)
            yield from (task for task in self.book.of(job) if task.uid in found)


def _needs_neighbours(task: Task) -> bool:
    """Whether the pod may only be where certain others are."""
    affinity = task.spec.affinity
    return bool(affinity and affinity.pod_affinity and affinity.pod_affinity.required)


# ---------------------------------------------------------------------- giving up


def give_up(session: Session, book: Reservations, task: Task, node: str, reason: str) -> None:
    """``task`` holds nothing on ``node`` any more: it is Pending, and its pod is to state nothing."""
    book.reject(task)
    _take_off(session, task)
    tell_given_up(session, task, node, reason)


def _take_off(session: Session, task: Task) -> None:
    """``task`` leaves the node that it holds room on, unless it has left it already."""
    row = session.table.statics.row.get(task.node_name)
    if task.job not in session.jobs:
        if row is not None:
            session.ledger.leave_orphaned(task, row)
        return
    job = session.jobs[task.job]
    own = job.tasks[task.uid]
    if own.status is PIPELINED and row is not None:
        session.take_back(job, (own,), (row,))
    elif own.status is PIPELINED:
        try:
            session.handlers.deallocated((own,), ())
        finally:
            session.ledger.leave_unknown(job, own)
    own.eviction_occurred = False


def _orphaned(session: Session, book: Reservations, task: Task) -> None:
    """A reservation of a pod without a job in the session, be it that its PodGroup is gone or its queue."""
    _take_off(session, task)
    book.reject(task)
    _tell_rejected(session)
    tell_given_up(session, task, task.node_name, JOB)


def _tell_rejected(session: Session) -> None:
    """Tell that a reservation does not stand as the session opens."""
    if say := session.tells("metric.pipelined_restored"):
        say(result="rejected")


def tell_given_up(session: Session, task: Task, node: str, reason: str) -> None:
    """Tell that a reservation has been given up."""
    if say := session.tells("metric.pipelined_given_up"):
        say(reason=reason)
    if say := session.tells("reservation_given_up"):
        say(task=task, node=node, reason=reason)
