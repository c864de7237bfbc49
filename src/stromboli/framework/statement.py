"""A transaction: operations that act on the session at once and are committed, kept or taken back together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stromboli.errors import PlacementError
from stromboli.framework.ledger import bind, remember
from stromboli.framework.operation import Entry, Operation
from stromboli.framework.plan import Bind, Eviction
from stromboli.model.job import ALLOCATED, PIPELINED, Job
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session

Saved = list[tuple[Operation, list[Task], list[int], str, list[bool]]]
"""A detached list of operations that can be replayed on another statement."""


class Statement:
    """Operations on a session.  Use it in a ``with`` block: what is undecided at its end is taken back.

    ``commit`` puts the operations into the session's plan, ``keep`` leaves their effect in the session without
    committing anything, ``discard`` takes them back in reverse order.
    """

    __slots__ = ("entries", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.entries: list[Entry] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.entries:
            self.discard()

    # ------------------------------------------------------------------ operations

    def evict(self, task: Task, reason: str) -> None:
        """Take ``task`` off its node: it becomes Releasing, and its room future idle."""
        job, task, row = where(self.session, task, task.node_name)
        self.session.ledger.evict(job, task, row)
        self.entries.append(Entry(Operation.EVICT, job, (task,), (row,), reason))
        self.session.handlers.deallocated((task,), (row,))

    def pipeline(self, task: Task, node_name: str, eviction_occurred: bool = False) -> None:
        """Place ``task`` on room that is about to become free on ``node_name``.  Raises PlacementError."""
        job, task, row = where(self.session, task, node_name)
        self._pipeline(job, task, row, eviction_occurred)

    def _pipeline(self, job: Job, task: Task, row: int, evicted: bool) -> None:
        before, task.eviction_occurred = task.eviction_occurred, evicted
        try:
            self.place(job, (task,), (row,), Operation.PIPELINE)
        except PlacementError:
            task.eviction_occurred = before
            raise
        self.entries[-1].evicted_before = before

    def allocate(self, task: Task, node: Node) -> None:
        """Place ``task`` on idle room of ``node``.  Raises PlacementError."""
        job, task, row = where(self.session, task, node.name)
        self.place(job, (task,), (row,), Operation.ALLOCATE)

    def unpipeline(self, task: Task) -> None:
        """Let ``task`` go from its reservation: it is Pending until that is undone.  Raises PlacementError."""
        job, task, row = where(self.session, task, task.node_name)
        self.session.take_back(job, (task,), (row,))
        self.entries.append(Entry(Operation.UNPIPELINE, job, (task,), (row,)))

    def place(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], kind: Operation) -> None:
        """Place ``tasks`` (one template) on ``rows``; raises PlacementError, nothing changed, if a handler objects.

        A reservation that one of them holds elsewhere, or there, is let go first.
        """
        session, mark = self.session, len(self.entries)
        if tasks[0].status is PIPELINED:
            for task in tasks:
                self.unpipeline(task)
        if errors := come(session, job, tasks, rows, kind):
            session.take_back(job, tasks, rows)
            self.rollback(mark)
            raise PlacementError(_refused(tasks[0], session.table.statics.names[rows[0]], kind, len(errors)))
        self.entries.append(Entry(kind, job, tasks, rows))

    # ------------------------------------------------------------------ endings

    @property
    def operations(self) -> list[Entry]:
        """What has been recorded so far, in order."""
        return self.entries

    @property
    def has_evictions(self) -> bool:
        """Whether anybody is evicted."""
        return any(entry.kind is Operation.EVICT for entry in self.entries)

    @property
    def evicted(self) -> list[Task]:
        """Who is evicted, in order."""
        return [entry.tasks[0] for entry in self.entries if entry.kind is Operation.EVICT]

    def commit(self) -> None:
        """Put everything into the plan, in order: evictions, and allocations as bindings.  Empties the statement."""
        self.session.steps.decided("committing", self.entries)
        plan = self.session.plan
        for entry in self.entries:
            for task in entry.tasks:
                task.last = None
            if entry.kind is Operation.EVICT:
                task = entry.tasks[0]
                plan.evictions.append(Eviction(task.uid, task.key, entry.job.uid, task.node_name, entry.reason))
            elif entry.kind is Operation.ALLOCATE:
                dispatch(self.session, entry.job, entry.tasks)
        if (book := self.session.reservations) is not None:
            book.committed(self.entries)
        hand_over(self.session)
        self.entries = []

    def keep(self) -> None:
        """Leave everything as it is, neither committed nor taken back.

        It lasts as long as the session, and is held for later ones where reservations outlive a session.
        """
        self.session.steps.decided("keeping", self.entries)
        if (book := self.session.reservations) is not None:
            book.kept(self.entries)
        self.entries = []

    def discard(self) -> None:
        """Take everything back, newest first; tasks remember where they stood, for the messages."""
        self.session.steps.decided("discarding", self.entries)
        for entry in self.entries:
            for task in entry.tasks:
                remember(task)
        let_go = [task for entry in self.entries if entry.kind is Operation.UNPIPELINE for task in entry.tasks]
        self.rollback(0)
        for task in let_go:
            task.last = None  # it holds its reservation again: where it stands says more than where it stood

    def checkpoint(self) -> int:
        """A mark to which :meth:`rollback` can return."""
        return len(self.entries)

    def rollback(self, mark: int) -> None:
        """Take back what was recorded after ``mark``, newest first; all of it, even where a handler fails."""
        failure: Exception | None = None
        while len(self.entries) > mark:
            try:
                undo(self.session, self.entries.pop())
            except Exception as error:  # noqa: BLE001  # raised below
                failure = failure or error
        if failure is not None:
            raise failure

    def merge(self, *others: Statement) -> None:
        """Take over the operations of ``others``, in order; they are empty afterwards."""
        for other in others:
            self.entries += other.entries
            other.entries = []

    def save(self) -> Saved:
        """The operations as a list, to be replayed by :meth:`recover` after this statement is discarded."""
        return [(e.kind, [*e.tasks], [*e.rows], e.reason, [t.eviction_occurred for t in e.tasks]) for e in self.entries]

    def recover(self, saved: Saved) -> None:
        """Do saved operations again.  Raises PlacementError at the first that fails; earlier ones stay recorded."""
        for kind, tasks, rows, reason, evicted in saved:
            if kind is Operation.EVICT:
                self.evict(tasks[0], reason)
                continue
            if kind is Operation.UNPIPELINE:
                self.unpipeline(tasks[0])
                continue
            job = self.session.own(tasks[0])
            if kind is Operation.ALLOCATE:
                self.place(job, tasks, rows, kind)
                continue
            for task, row, flag in zip(tasks, rows, evicted, strict=True):
                self._pipeline(job, task, row, flag)


def where(session: Session, task: Task, node_name: str) -> tuple[Job, Task, int]:
    """The session's own job and task, and the row of the node; PlacementError when one of them is not there."""
    if session.job_of(task) is None:
        raise PlacementError(f"failed to find job {task.job} of task {task.key}")
    if node_name not in session.table.statics.row:
        raise PlacementError(f"failed to find node {node_name} for task {task.key}")
    own = session.own(task)
    return own, own.tasks[task.uid], session.table.row(node_name)


def come(session: Session, job: Job, tasks: Sequence[Task], rows: Sequence[int], kind: Operation) -> Sequence[object]:
    """Let ``tasks`` (one template) take ``rows``, recorded nowhere; returns what handlers object.

    When a handler fails, everything is as before.
    """
    session.ledger.come(job, tasks, rows, ALLOCATED if kind is Operation.ALLOCATE else PIPELINED)
    session.steps.come(tasks, rows, kind)
    try:
        errors = session.handlers.allocated(tasks, rows)
    except Exception:
        session.take_back(job, tasks, rows)
        raise
    if errors:
        session.steps.objected(tasks[0], rows[0], kind, errors)
    else:
        session.steps.accepted(len(tasks), kind)
    return errors


def _refused(task: Task, node: str, kind: Operation, errors: int) -> str:
    end = f"error and errInfos num is {errors}"
    if kind is Operation.ALLOCATE:
        return f"Task {task.key} allocate to node {node} {end}, allocation has been rolled back"
    return f"Task({task.key}) pipeline to node({node}) {end}, pipeline has been rolled back"


def undo(session: Session, entry: Entry) -> None:
    """The reverse of one operation, handlers told."""
    if entry.evicted_before is not None:
        entry.tasks[0].eviction_occurred = entry.evicted_before
    if entry.kind is Operation.EVICT:
        session.ledger.unevict(entry.job, entry.tasks[0], entry.rows[0])
        session.handlers.allocated(entry.tasks, entry.rows)
    elif entry.kind is Operation.UNPIPELINE:
        session.ledger.come(entry.job, entry.tasks, entry.rows, PIPELINED)
        session.handlers.allocated(entry.tasks, entry.rows)  # it is what was: nobody may object
    else:
        # newest first within a run, too: who waits stands in the same order as after single steps
        session.take_back(entry.job, entry.tasks[::-1], entry.rows[::-1])


def hand_over(session: Session) -> None:
    """Tell an executor that listens that the plan has grown."""
    if say := session.tells("plan.committed"):
        say(plan=session.plan)


def dispatch(session: Session, job: Job, tasks: Sequence[Task]) -> None:
    """Hand Allocated ``tasks`` of ``job`` over for binding, in order."""
    bind(job, tasks)
    session.tally.bound(tasks)
    if session.reservations is not None:
        session.reservations.bound(tasks)
    session.plan.binds += [Bind(task.uid, task.key, job.uid, task.node_name) for task in tasks]
