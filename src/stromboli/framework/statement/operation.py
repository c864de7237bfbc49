"""The operations of a statement: each applies itself to the session, reverts itself and puts itself into the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from stromboli.errors import PlacementError
from stromboli.framework.books.ledger import bind
from stromboli.framework.books.plan import Bind, Eviction
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import ALLOCATED, PIPELINED, Job
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState
    from stromboli.framework.statement.statement import Statement


def take_back(session: SessionState, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
    """Make placed ``tasks`` Pending again; handlers are called while the tasks still know their node."""
    status = tasks[0].status
    try:
        session.hooks.handlers.deallocated(tasks, rows)
    finally:
        session.ledger.remove(job, tasks, rows)
        session.statement_events.left(tasks, rows, status)


class Operation:
    """One operation on ``tasks`` of one template and job, each with its row of the node table.

    ``revert_failed`` is the event reported when a handler fails while the operation is reverted.
    """

    __slots__ = ("job", "rows", "tasks")

    kind: ClassVar[OperationKind]
    revert_failed: ClassVar[str]

    def __init__(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        self.job, self.tasks, self.rows = job, tasks, rows

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(task.key for task in self.tasks)})"

    def run(self, statement: Statement) -> None:
        """Apply the operation and record it in ``statement``."""
        self.apply(statement.session)
        statement.operations.append(self)

    def apply(self, session: SessionState) -> None:
        """Change the session's books and notify the plugins' handlers."""
        raise NotImplementedError

    def revert(self, session: SessionState) -> None:
        """Restore what :meth:`apply` changed and notify the handlers."""
        raise NotImplementedError

    def commit(self, session: SessionState) -> None:
        """Put the operation into the session's plan; most operations leave nothing there."""

    def after_discard(self) -> None:
        """Correct what the tasks remember of their last place once a discarded statement is reverted."""

    def saved(self) -> Iterable[Operation]:
        """Operations that repeat this one after its statement has been reverted."""
        return (self,)


class Evict(Operation):
    """A task is to leave its node: it becomes Releasing, and its room future idle."""

    __slots__ = ("reason",)

    kind = OperationKind.EVICT
    revert_failed = "unevict_failed"

    def __init__(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], reason: str = "") -> None:
        super().__init__(job, tasks, rows)
        self.reason = reason

    def run(self, statement: Statement) -> None:
        """Record the eviction and apply it: if a handler fails, it is reverted with its statement."""
        statement.operations.append(self)
        self.apply(statement.session)

    def apply(self, session: SessionState) -> None:
        """Mark the task as Releasing."""
        session.ledger.evict(self.job, self.tasks[0], self.rows[0])
        session.hooks.handlers.deallocated(self.tasks, self.rows)

    def revert(self, session: SessionState) -> None:
        """Let the task run on."""
        session.ledger.unevict(self.job, self.tasks[0], self.rows[0])
        session.hooks.handlers.allocated(self.tasks, self.rows)

    def commit(self, session: SessionState) -> None:
        """Add the eviction to the plan."""
        task = self.tasks[0]
        session.plan.evictions.append(Eviction(task.uid, task.key, self.job.uid, task.node_name, self.reason))


class Unpipeline(Operation):
    """A task releases its reservation and is Pending."""

    __slots__ = ()

    kind = OperationKind.UNPIPELINE
    revert_failed = "allocate_failed"

    def apply(self, session: SessionState) -> None:
        """Take the task off the node that it waits for."""
        take_back(session, self.job, self.tasks, self.rows)

    def revert(self, session: SessionState) -> None:
        """Restore the reservation; objections of handlers are ignored, because it stood before."""
        session.ledger.place(self.job, self.tasks, self.rows, PIPELINED)
        session.hooks.handlers.allocated(self.tasks, self.rows)

    def after_discard(self) -> None:
        """Forget the last place: the task holds its reservation again, which says more."""
        for task in self.tasks:
            task.last = None


class Placement(Operation):
    """Tasks take their rows: common to :class:`Allocate` and :class:`Pipeline`."""

    __slots__ = ()

    status: ClassVar[TaskStatus]
    step: ClassVar[str]

    def run(self, statement: Statement) -> None:
        """Release earlier reservations of the tasks, then place them; records nothing if a handler objects."""
        mark = statement.checkpoint()
        self.prepare()
        try:
            if self.tasks[0].status is PIPELINED:
                for task in self.tasks:
                    statement.unpipeline(task)
            self.apply(statement.session)
        except PlacementError:
            statement.rollback(mark)
            self.restore()
            raise
        except Exception:  # a handler failed: what is recorded is reverted with the statement
            self.restore()
            raise
        statement.operations.append(self)

    def prepare(self) -> None:
        """Mark the tasks before an earlier reservation of theirs is released."""

    def restore(self) -> None:
        """Take the marks of :meth:`prepare` back."""

    def apply(self, session: SessionState) -> None:
        """Place the tasks; raises PlacementError, nothing changed, if a handler objects."""
        if errors := self.take(session):
            take_back(session, self.job, self.tasks, self.rows)
            raise PlacementError(self._refused(session.table.statics.names[self.rows[0]], len(errors)))

    def take(self, session: SessionState) -> Sequence[object]:
        """Place the tasks and return the objections of handlers; if a handler fails, nothing has changed."""
        session.ledger.place(self.job, self.tasks, self.rows, self.status)
        self._report_placed(session)
        try:
            errors = session.hooks.handlers.allocated(self.tasks, self.rows)
        except Exception:
            take_back(session, self.job, self.tasks, self.rows)
            raise
        if errors:
            session.statement_events.objected(self, self.step, errors)
        else:
            self._report_accepted(session)
        return errors

    def revert(self, session: SessionState) -> None:
        """Make the tasks Pending again, newest first, so that they wait in the same order as after single steps."""
        self.restore()
        take_back(session, self.job, self.tasks[::-1], self.rows[::-1])

    def _report_placed(self, session: SessionState) -> None:
        raise NotImplementedError

    def _report_accepted(self, session: SessionState) -> None:
        pass

    def _refused(self, node: str, errors: int) -> str:
        raise NotImplementedError


class Allocate(Placement):
    """Tasks take idle room."""

    __slots__ = ()

    kind = OperationKind.ALLOCATE
    revert_failed = "unallocate_failed"
    status = ALLOCATED
    step = "allocating"

    def commit(self, session: SessionState) -> None:
        """Hand the tasks over for binding."""
        dispatch(session, self.job, self.tasks)

    def _report_placed(self, session: SessionState) -> None:
        session.statement_events.allocated(self.tasks, self.rows)

    def _report_accepted(self, session: SessionState) -> None:
        session.statement_events.accepted(len(self.tasks))

    def _refused(self, node: str, errors: int) -> str:
        end = f"error and errInfos num is {errors}, allocation has been rolled back"
        return f"Task {self.tasks[0].key} allocate to node {node} {end}"


class Pipeline(Placement):
    """Tasks reserve room that is about to become free.

    ``evicted`` says whether pods have been evicted for the one task; None leaves what its task says.
    """

    __slots__ = ("_before", "evicted")

    kind = OperationKind.PIPELINE
    revert_failed = "unpipeline_failed"
    status = PIPELINED
    step = "pipeline"

    def __init__(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], evicted: bool | None = None) -> None:
        super().__init__(job, tasks, rows)
        self.evicted = evicted
        self._before = False

    def prepare(self) -> None:
        """Mark the task as one for which pods have been evicted, or not."""
        if self.evicted is not None:
            self._before, self.tasks[0].eviction_occurred = self.tasks[0].eviction_occurred, self.evicted

    def restore(self) -> None:
        """Restore the task's mark."""
        if self.evicted is not None:
            self.tasks[0].eviction_occurred = self._before

    def saved(self) -> Iterable[Operation]:
        """One operation for each task, with its mark of this moment."""
        for task, row in zip(self.tasks, self.rows, strict=True):
            yield Pipeline(self.job, (task,), (row,), task.eviction_occurred)

    def _report_placed(self, session: SessionState) -> None:
        session.statement_events.pipelined(self.tasks, self.rows)

    def _refused(self, node: str, errors: int) -> str:
        end = f"error and errInfos num is {errors}, pipeline has been rolled back"
        return f"Task({self.tasks[0].key}) pipeline to node({node}) {end}"


PLACEMENTS: Final[Mapping[OperationKind, type[Placement]]] = {each.kind: each for each in (Allocate, Pipeline)}
"""The operation that places tasks, by the kind that the engine chooses."""


def split(operations: Iterable[Operation]) -> tuple[list[Evict], list[Operation]]:
    """The evictions among ``operations`` and the other operations, each in their order."""
    evictions: list[Evict] = []
    others: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Evict):
            evictions.append(operation)
        else:
            others.append(operation)
    return evictions, others


def dispatch(session: SessionState, job: Job, tasks: Sequence[Task]) -> None:
    """Hand Allocated ``tasks`` of ``job`` over for binding, in order."""
    bind(job, tasks)
    session.statement_events.counters.bound(tasks)
    if session.reservations is not None:
        session.reservations.bound(tasks)
    session.plan.binds += [Bind(task.uid, task.key, job.uid, task.node_name) for task in tasks]
