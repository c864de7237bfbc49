"""What is told of a session once it is open: what the snapshot holds, and which nodes hold more than they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.statement.underflow import tell_future_short
from stromboli.model.job import PIPELINED
from stromboli.model.resources.axes import add_to
from stromboli.model.task import Task
from stromboli.narration.observe import OnAxes

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState


def tell_opened(session: SessionState) -> None:
    """Tell that the session is open, and what it holds."""
    jobs, queues = len(session.jobs), len(session.queues)
    session.tell("snapshot_taken", jobs=jobs, queues=queues, nodes=len(session.table))
    _tell_jobs(session)
    if say := session.tells("session_opened"):
        say(session=session.uid, jobs=jobs, queues=queues, hyper_nodes_ready=session.snapshot.hyper_nodes_ready)
    _tell_overfull(session)


def _tell_jobs(session: SessionState) -> None:
    missing, priority = session.tells("job_queue_missing"), session.tells("job_priority")
    if missing is None and priority is None:
        return
    if missing:
        for uid, queue in session.snapshot.queueless.items():
            missing(queue=queue, job=uid)
    for job in session.jobs.peek():
        if missing and job.queue not in session.queues:
            missing(queue=job.queue, job=job)
        elif priority:
            priority(job=job, priority_class=job.group.spec.priority_class_name, priority=job.priority)


def _tell_overfull(session: SessionState) -> None:
    """Tell of nodes whose tasks ask for more than the node offers, and of those on which too much is reserved."""
    table, out_of_sync = session.table, session.tells("node_out_of_sync")
    if out_of_sync is None:  # errors are wanted by every log, or by none
        return
    for row in np.flatnonzero((table.used > table.alloc).any(axis=0)).tolist():
        short = np.flatnonzero(table.used[:, row] > table.alloc[:, row]).tolist()
        out_of_sync(node=table.statics.names[row], names=[table.axes.names[column] for column in short])
        _tell_negative(session, row)
    tell_future_short(session, np.flatnonzero((table.future < 0).any(axis=0)).tolist())


def _tell_negative(session: SessionState, row: int) -> None:
    """Tell of each task on ``row`` that asks for what those before it have left none of."""
    if (say := session.tells("idle_negative")) is None:
        return
    axes, idle = session.axes, session.axes.full(session.table.alloc[:, row].tolist())
    for task in _occupying(session, row):
        vector = task.template.vector
        add_to(idle, vector, -1)
        short = [axes.names[column] for column, amount in enumerate(vector) if amount > 0 > idle[column]]
        if short:
            node = session.table.statics.names[row]
            say(node=node, task=task, names=short, idle=OnAxes(axes, tuple(idle)), request=task.request)


def _occupying(session: SessionState, row: int) -> Iterator[Task]:
    tasks = session.snapshot.node_tasks[row] if session.snapshot.node_tasks else {}
    return (task for task in tasks.values() if task.status is not PIPELINED)
