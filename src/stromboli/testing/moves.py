"""What may happen to tasks in a session, as data: tests draw moves and make them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from stromboli.errors import PlacementError
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.status import PREEMPTABLE_STATUS, TaskStatus
from stromboli.model.table import Node
from stromboli.model.task import Task

VERBS = ("allocate", "pipeline", "unpipeline", "evict", "rollback")


class Move(NamedTuple):
    """Something that a statement does to a task; both numbers count round, so any will do.

    A pending task is allocated or pipelined on node ``node``, a pipelined one let go, a running one evicted;
    ``rollback`` takes back what came after the operation of number ``task``.
    """

    verb: Literal["allocate", "pipeline", "unpipeline", "evict", "rollback"]
    task: int = 0
    node: int = 0


def make(session: Session, statement: Statement, moves: Sequence[Move], spared: Sequence[Task] = ()) -> None:
    """Make ``moves``, impossible ones left out; ``spared`` tasks are not touched."""
    for move in moves:
        if move.verb == "rollback":
            statement.rollback(move.task % (len(statement.operations) + 1))
        elif candidates := [task for task in movable(session, move) if task not in spared]:
            with suppress(PlacementError):
                _make(session, statement, move, candidates[move.task % len(candidates)])


def movable(session: Session, move: Move) -> list[Task]:
    """The tasks that could make the move, job by job."""
    if not len(session.table):
        return []
    tasks = [task for job in session.jobs.values() for task in job.tasks.values()]
    if move.verb == "evict":
        return [t for t in tasks if t.status in PREEMPTABLE_STATUS and t.node_name in session.table.statics.row]
    wanted = TaskStatus.Pipelined if move.verb == "unpipeline" else TaskStatus.Pending
    return [task for task in tasks if task.status is wanted]


def _make(session: Session, statement: Statement, move: Move, task: Task) -> None:
    row = move.node % len(session.table)
    if move.verb == "evict":
        statement.evict(task, "test")
    elif move.verb == "unpipeline":
        statement.unpipeline(task)
    elif move.verb == "allocate":
        statement.allocate(task, Node(session.table, row))
    else:
        statement.pipeline(task, session.table.statics.names[row])
