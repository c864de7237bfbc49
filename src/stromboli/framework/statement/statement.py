"""A transaction: operations that act on the session at once and are committed, kept or reverted together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from stromboli.errors import PlacementError
from stromboli.framework.books.ledger import remember
from stromboli.framework.statement.operation import PLACEMENTS, Allocate, Evict, Operation, Pipeline, Unpipeline
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import Job
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState

Saved = Sequence[Operation]
"""Operations that :meth:`Statement.recover` can repeat once their own statement has been reverted."""


_EVICT: Final = OperationKind.EVICT  # a member is found four times faster so


class Statement:
    """Operations on a session.  Use it in a ``with`` block: what is undecided at its end is reverted.

    ``commit`` puts the operations into the session's plan, ``keep`` leaves their effect in the session without
    committing anything, ``discard`` reverts them, newest first.
    """

    __slots__ = ("operations", "session")

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.operations: list[Operation] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.operations:
            self.discard()

    # ------------------------------------------------------------------ operations

    def evict(self, task: Task, reason: str) -> None:
        """Evict ``task``: it becomes Releasing, and its room future idle.  Raises PlacementError."""
        job, task, row = where(self.session, task, task.node_name, "evicting")
        Evict(job, (task,), (row,), reason).apply(self)

    def evict_run(self, tasks: Sequence[Task], row: int, reason: str) -> None:
        """Evict ``tasks``, known to be on ``row``, in one step; only where no plugin is told of evictions."""
        session, operations = self.session, list[Evict]()
        for task in tasks:
            job = session.jobs[task.job]
            operations.append(Evict(job, (job.tasks[task.uid],), (row,), reason))
        session.ledger.evict_run([(operation.job, operation.tasks[0]) for operation in operations], row)
        self.operations += operations

    def pipeline(self, task: Task, node_name: str, eviction_occurred: bool = False) -> None:
        """Reserve room that is about to become free on ``node_name`` for ``task``.  Raises PlacementError."""
        job, task, row = where(self.session, task, node_name, "pipeline")
        Pipeline(job, (task,), (row,), eviction_occurred).apply(self)

    def allocate(self, task: Task, node: Node) -> None:
        """Place ``task`` on idle room of ``node``.  Raises PlacementError."""
        job, task, row = where(self.session, task, node.name, "binding")
        Allocate(job, (task,), (row,)).apply(self)

    def unpipeline(self, task: Task) -> None:
        """Release the reservation of ``task``, which is Pending until that is reverted.  Raises PlacementError."""
        job, task, row = where(self.session, task, task.node_name, "unpipeline")
        Unpipeline(job, (task,), (row,)).apply(self)

    def place(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], kind: OperationKind) -> None:
        """Place ``tasks`` (one template) on ``rows``; raises PlacementError, nothing changed, if a handler objects.

        A reservation that one of them holds is released first.
        """
        PLACEMENTS[kind](job, tasks, rows).apply(self)

    # ------------------------------------------------------------------ questions

    @property
    def has_evictions(self) -> bool:
        """Whether the statement evicts a task."""
        for operation in self.operations:  # noqa: SIM110 - asked for each task, and any() takes twice as long
            if operation.kind is _EVICT:
                return True
        return False

    @property
    def evicted(self) -> list[Task]:
        """The evicted tasks, in order."""
        return [operation.tasks[0] for operation in self.operations if operation.kind is _EVICT]

    def consists_of(self, kind: OperationKind) -> bool:
        """Whether there are operations, and all of them are of ``kind``."""
        return bool(self.operations) and all(operation.kind is kind for operation in self.operations)

    # ------------------------------------------------------------------ decisions

    def commit(self) -> None:
        """Put everything into the plan, in order: evictions, and allocations as bindings.  Empties the statement."""
        session = self.session
        session.statement_events.decided("committing", self.operations)
        for operation in self.operations:
            for task in operation.tasks:
                task.last = None
            operation.commit(session)
        if (book := session.reservations) is not None:
            book.committed(self.operations)
        hand_over(session)
        self.operations = []

    def keep(self) -> None:
        """Leave everything as it is, neither committed nor reverted.

        It lasts as long as the session, and is held for later ones where reservations outlive a session.
        """
        self.session.statement_events.decided("keeping", self.operations)
        if (book := self.session.reservations) is not None:
            book.kept(self.operations)
        self.operations = []

    def discard(self) -> None:
        """Revert everything, newest first; tasks remember their place for the messages."""
        self.session.statement_events.decided("discarding", self.operations)
        discarded = self.operations.copy()
        for operation in discarded:
            for task in operation.tasks:
                remember(task)
        self.rollback(0)
        for operation in discarded:
            operation.after_discard()

    def checkpoint(self) -> int:
        """A mark to which :meth:`rollback` can return."""
        return len(self.operations)

    def rollback(self, mark: int) -> None:
        """Revert what was recorded after ``mark``, newest first; all of it, even where a handler fails."""
        failure: Exception | None = None
        while len(self.operations) > mark:
            operation = self.operations.pop()
            try:
                operation.revert(self.session)
            except Exception as error:  # noqa: BLE001  # raised below
                failure = failure or error
                self.session.tell(operation.revert_failed, task=operation.tasks[0], error=error)
        if failure is not None:
            raise failure

    def merge(self, *others: Statement) -> None:
        """Take over the operations of ``others``, in order; they are empty afterwards."""
        for other in others:
            self.operations += other.operations
            other.operations = []

    def save(self) -> Saved:
        """The operations as a list, to be repeated by :meth:`recover` after this statement is reverted."""
        return [saved for operation in self.operations for saved in operation.saved()]

    def recover(self, saved: Saved) -> None:
        """Repeat saved operations.  Raises PlacementError at the first that fails; earlier ones stay recorded."""
        for operation in saved:
            operation.apply(self)


def where(session: SessionState, task: Task, node_name: str, step: str) -> tuple[Job, Task, int]:
    """The session's own job and task, and the row of the node; ``step`` names for the log what needs them.

    Raises PlacementError and reports it when the job or the node is not in the session.
    """
    if session.job_of(task) is None:
        session.tell("job_missing", job=task.job, session=session.uid, step=step)
        raise PlacementError(f"failed to find job {task.job} of task {task.key}")
    if (row := session.table.statics.row.get(node_name)) is None:
        session.tell("node_missing", node=node_name, session=session.uid, step=step)
        raise PlacementError(f"failed to find node {node_name} for task {task.key}")
    own = session.jobs[task.job]
    return own, own.tasks[task.uid], row


def hand_over(session: SessionState) -> None:
    """Notify a listening executor that the plan has grown."""
    if say := session.tells("plan.committed"):
        say(plan=session.plan)
