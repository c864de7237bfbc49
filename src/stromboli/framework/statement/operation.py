"""The operations of a statement: each applies itself to the session, reverts itself and puts itself into the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
    from stromboli.framework.books.second_places import SecondPlaces
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


class Operation(ABC):
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

    @abstractmethod
    def apply(self, statement: Statement) -> None:
        """Change the session's books, record the operation in ``statement`` and notify the plugins' handlers."""

    @abstractmethod
    def revert(self, session: SessionState) -> None:
        """Restore what :meth:`apply` changed and notify the handlers."""

    def commit(self, session: SessionState) -> None:  # noqa: B027 - a default
        """Put the operation into the session's plan; most operations leave nothing there."""

    def after_discard(self) -> None:  # noqa: B027 - a default
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

    def apply(self, statement: Statement) -> None:
        """Mark the task as Releasing; if a handler fails, that is reverted with the statement."""
        session = statement.session
        session.ledger.evict(self.job, self.tasks[0], self.rows[0])
        statement.operations.append(self)
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

    def apply(self, statement: Statement) -> None:
        """Take the task off the node that it waits for."""
        take_back(statement.session, self.job, self.tasks, self.rows)
        statement.operations.append(self)

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

    def apply(self, statement: Statement) -> None:
        """Release earlier reservations of the tasks, then place them.

        Raises PlacementError, nothing changed, if a handler objects.
        """
        session, mark = statement.session, len(statement.operations)
        try:
            if (again := session.ledger.second_places).rows:
                self._take_up(session, again)
            if self.tasks[0].status is PIPELINED:
                for task in self.tasks:
                    statement.unpipeline(task)
            if errors := self.take(session):
                take_back(session, self.job, self.tasks, self.rows)
                raise PlacementError(self._refused(session.table.statics.names[self.rows[0]], len(errors)))
        except PlacementError:
            statement.rollback(mark)
            raise
        statement.operations.append(self)

    def _take_up(self, session: SessionState, again: SecondPlaces) -> None:
        for task, row in zip(self.tasks, self.rows, strict=True):
            if task.uid in again.rows and not again.take_up(self.job, task, row, self.status):
                session.ledger.remove_orphaned(task, row)
                raise PlacementError(f"task <{task.key}> already on node <{row}>")

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
        return errors

    def revert(self, session: SessionState) -> None:
        """Make the tasks Pending again, newest first, so that they wait in the same order as after single steps."""
        take_back(session, self.job, self.tasks[::-1], self.rows[::-1])

    @abstractmethod
    def _report_placed(self, session: SessionState) -> None:
        """Report the event that the tasks have taken their rows."""

    @abstractmethod
    def _refused(self, node: str, errors: int) -> str:
        """The error of a placement to which so many handlers object."""


class Allocate(Placement):
    """Tasks take idle room."""

    __slots__ = ()

    kind = OperationKind.ALLOCATE
    revert_failed = "unallocate_failed"
    status = ALLOCATED
    step = "allocating"

    def take(self, session: SessionState) -> Sequence[object]:
        """Place the tasks and return the objections of handlers; that there are none is an event of its own."""
        errors = super().take(session)
        if not errors:
            session.statement_events.accepted(len(self.tasks))
        return errors

    def commit(self, session: SessionState) -> None:
        """Hand the tasks over for binding."""
        dispatch(session, self.job, self.tasks)

    def _report_placed(self, session: SessionState) -> None:
        session.statement_events.allocated(self.tasks, self.rows)

    def _refused(self, node: str, errors: int) -> str:
        end = f"error and errInfos num is {errors}, allocation has been rolled back"
        return f"Task {self.tasks[0].key} allocate to node {node} {end}"


class Pipeline(Placement):
    """Tasks reserve room that is about to become free.

    ``evicted`` says whether pods have been evicted for each of the tasks; None leaves what they say.
    """

    __slots__ = ("_before", "evicted")

    kind = OperationKind.PIPELINE
    revert_failed = "unpipeline_failed"
    status = PIPELINED
    step = "pipeline"

    def __init__(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], evicted: bool | None = None) -> None:
        super().__init__(job, tasks, rows)
        self.evicted = evicted
        self._before: list[bool] = []

    def apply(self, statement: Statement) -> None:
        """Mark the tasks as those for which pods have been evicted, or not, and reserve their room."""
        if self.evicted is not None:
            self._before = [task.eviction_occurred for task in self.tasks]
            for task in self.tasks:
                task.eviction_occurred = self.evicted
        try:
            super().apply(statement)
        except Exception:
            self._restore()
            raise

    def revert(self, session: SessionState) -> None:
        """Restore the tasks' marks and make the tasks Pending again."""
        self._restore()
        super().revert(session)

    def _restore(self) -> None:
        if self.evicted is not None:
            for task, before in zip(self.tasks, self._before, strict=True):
                task.eviction_occurred = before

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
    handed_over(session, tasks)


def handed_over(session: SessionState, tasks: Sequence[Task]) -> None:
    """Put bindings of ``tasks``, which have become Binding, into the plan, in order."""
    session.statement_events.counters.bound(tasks)
    if session.reservations is not None:
        session.reservations.bound(tasks)
    given = session.ledger
    if not (given.bind_annotations or given.bind_volumes or given.bind_claims or given.bind_locks):
        volumes, claims = given.volume_seconds, given.claim_seconds
        session.plan.binds += [
            Bind(task.uid, task.key, task.job, task.node_name, volume_seconds=volumes, claim_seconds=claims)
            for task in tasks
        ]
        return
    session.plan.binds += [
        Bind(
            task.uid, task.key, task.job, task.node_name,
            dict(given.bind_annotations.get(task.uid, ())), dict(given.bind_volumes.get(task.uid, ())),
            dict(given.bind_claims.get(task.uid, ())), given.volume_seconds,
            given.bind_locks.get(task.uid, ()), given.claim_seconds,
        )
        for task in tasks
    ]  # fmt: skip
