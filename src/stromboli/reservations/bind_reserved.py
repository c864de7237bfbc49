"""Binding tasks on their reserved room once it is free, without looking at any other node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from stromboli.errors import PlacementError
from stromboli.framework.engine.placement import Choice
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.framework.statement.session_ops import has_room
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PIPELINED, Job
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.narration.observe import OnAxes
from stromboli.reservations.book import Reservations
from stromboli.reservations.restore import PREDICATE, give_up

TAKEN, WAITS, LOST = "allocated", "waiting", "released"
"""The results of a reservation when its task has its turn, as in a metric."""


def bind_reserved(session: Session, book: Reservations, statement: Statement, job: Job) -> bool:
    """Place the tasks of ``job`` that hold room on it, in task order, where it is free by now.

    Tasks whose room is not free yet keep waiting: nothing is recorded or written, and no other node is tried.  Returns
    whether a task has lost its reservation and is Pending.
    """
    say, lost, order = session.tells("metric.pipelined_fast_path"), False, _order(job)
    for task in book.of(job):
        result = _bind(session, book, statement, job, task)
        lost |= result is LOST
        if say:
            say(result=result)
    _restore_order(job, order)
    return lost


def move(session: Session, book: Reservations, statement: Statement, job: Job, full: dict[Hashable, int]) -> None:
    """Move tasks of ``job`` that go on waiting to idle room, and release what they held for the next in turn.

    ``full`` maps kinds of tasks to the length of the nodes' journal when there was no idle room for them, or none for
    those of a node once they had left it: where they count as neighbours that depends on the node.
    """
    table, order = session.table, _order(job)
    for task in book.of(job):
        kind = session.placer.kind(task)
        there = kind, task.node_name
        if len(table.journal) in (full.get(kind), full.get(there)):
            continue
        if session.ask.pre_predicate(task) is not None or _idle(session, task) is None:
            full[kind] = len(table.journal)
        elif not _moved(session, statement, job, task):
            full[there] = len(table.journal)
    _restore_order(job, order)


def _order(job: Job) -> Sequence[str]:
    return tuple(job.index.get(PIPELINED, ()))


def _restore_order(job: Job, order: Sequence[str]) -> None:
    """Let tasks that still wait stand as they stood: those that were tried in vain have come to the end meanwhile."""
    if members := job.index.get(PIPELINED):
        job.index[PIPELINED] = {uid: members[uid] for uid in order if uid in members} | members


def _idle(session: Session, task: Task) -> Choice | None:
    """The best node with idle room for ``task``."""
    choice = session.placer.place(task)
    return choice if choice is not None and choice.kind is OperationKind.ALLOCATE else None


def _moved(session: Session, statement: Statement, job: Job, task: Task) -> bool:
    """Allocate ``task`` elsewhere than it holds room; False, nothing changed, if there is none or a handler objects.

    Nodes are evaluated again after the reservation is released, because it must not count as a neighbour of the task.
    """
    mark = statement.checkpoint()
    statement.unpipeline(task)
    if (choice := _idle(session, task)) is not None:
        session.statement_events.binding((task,), choice.rows)
        try:
            statement.place(job, (task,), choice.rows, choice.kind)
        except PlacementError:
            pass
        else:
            session.statement_events.counters.placed(job, 1)
            return True
    statement.rollback(mark)
    return False


def _bind(session: Session, book: Reservations, statement: Statement, job: Job, task: Task) -> str:
    node = Node(session.table, session.table.row(task.node_name))
    if not has_room(task, node, now=True):
        return _waits(session, task, node)
    mark = statement.checkpoint()
    statement.unpipeline(task)  # its own reservation must not exclude it
    refusal: Reason | None = session.ask.pre_predicate(task) or session.ask.predicate(task, node)
    if refusal is None and _take(session, statement, job, task, node):
        return TAKEN
    statement.rollback(mark)
    if refusal is not None and not refusal.resolvable:
        give_up(session, book, task, node.name, PREDICATE)
        return LOST
    return _waits(session, task, node)


def _take(session: Session, statement: Statement, job: Job, task: Task, node: Node) -> bool:
    """Allocate ``task`` on ``node``; False, nothing changed, if a handler objects."""
    if say := session.tells("reservation_redeemed"):
        say(task=task, node=node.name)
    try:
        statement.allocate(task, node)
    except PlacementError:
        return False
    session.statement_events.counters.placed(job, 1)
    return True


def _waits(session: Session, task: Task, node: Node) -> str:
    if say := session.tells("reservation_kept"):
        table = session.table
        idle = OnAxes(session.axes, tuple(table.idle_of(node.row)))
        say(task=task, node=node.name, request=task.request, idle=idle)
    return WAITS
