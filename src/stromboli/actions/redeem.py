"""Reserved room that has become free is taken by the task that holds it, without looking at any other node."""

from __future__ import annotations

from collections.abc import Hashable

from stromboli.errors import PlacementError
from stromboli.framework.direct import has_room
from stromboli.framework.observe import OnAxes
from stromboli.framework.operation import Operation
from stromboli.framework.placement import Choice
from stromboli.framework.reason import Reason
from stromboli.framework.reservations import Reservations
from stromboli.framework.restoring import PREDICATE, give_up
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.model.job import Job
from stromboli.model.table import Node
from stromboli.model.task import Task

TAKEN, WAITS, LOST = "allocated", "waiting", "released"
"""What became of a reservation when its task had its turn: the words of a metric."""


def redeem(session: Session, book: Reservations, statement: Statement, job: Job) -> bool:
    """Place the tasks of ``job`` that hold room on it, in their order, where it is free by now.

    Those whose room is not free yet keep waiting: nothing is recorded, written, or looked for elsewhere.  Returns
    whether one of them has lost its reservation, and is Pending.
    """
    say, lost = session.tells("metric.pipelined_fast_path"), False
    for task in book.of(job):
        result = _redeem(session, book, statement, job, task)
        lost |= result is LOST
        if say:
            say(result=result)
    return lost


def move(session: Session, book: Reservations, statement: Statement, job: Job, full: dict[Hashable, int]) -> None:
    """Place the tasks of ``job`` that go on waiting where there is room already, and let go what they held.

    Whoever is next in turn may hold that from now on.  ``full`` says of kinds of tasks how far the nodes' journal had
    come when there was no idle room for them.
    """
    table = session.table
    for task in book.of(job):
        kind = session.placer.kind(task)
        if full.get(kind) == len(table.journal):
            continue
        refused = session.ask.pre_predicate(task) is not None
        if refused or _idle(session, task) is None or not _moved(session, statement, job, task):
            full[kind] = len(table.journal)


def _idle(session: Session, task: Task) -> Choice | None:
    """The best node with idle room for ``task``."""
    choice = session.placer.place(task)
    return choice if choice is not None and choice.kind is Operation.ALLOCATE else None


def _moved(session: Session, statement: Statement, job: Job, task: Task) -> bool:
    """Allocate ``task`` elsewhere than it holds room; False, nothing changed, if there is none or a handler objects.

    Nodes are asked anew once it has let go of its room: what it holds must not count as one of its neighbours.
    """
    mark = statement.checkpoint()
    statement.unpipeline(task)
    if (choice := _idle(session, task)) is not None:
        session.steps.binding((task,), choice.rows)
        try:
            statement.place(job, (task,), choice.rows, choice.kind)
        except PlacementError:
            pass
        else:
            session.tally.placed(job, 1)
            return True
    statement.rollback(mark)
    return False


def _redeem(session: Session, book: Reservations, statement: Statement, job: Job, task: Task) -> str:
    node = Node(session.table, session.table.row(task.node_name))
    if not has_room(task, node, now=True):
        return _waits(session, task, node)
    mark = statement.checkpoint()
    statement.unpipeline(task)  # its own claim is no reason against it
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
    session.tally.placed(job, 1)
    return True


def _waits(session: Session, task: Task, node: Node) -> str:
    if say := session.tells("reservation_kept"):
        table = session.table
        idle = OnAxes(session.axes, tuple((table.alloc[:, node.row] - table.used[:, node.row]).tolist()))
        say(task=task, node=node.name, request=task.request, idle=idle)
    return WAITS
