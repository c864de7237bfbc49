"""Room that a gang action has freed for a part of a job, taken by that part in later cycles.

The nomination names a hypernode, the pods' nominatedNodeName their nodes in it.  While victims are still ending the
tasks wait on these nodes again; once they fit they are placed there and the nomination ends.
"""

from __future__ import annotations

from stromboli.allocation.pending_tasks import TaskCursor
from stromboli.errors import PlacementError
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import nominate
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task

FIRST = float("inf")
"""Score of a hypernode in which room was freed for the part: no other comes before it."""


def use_nomination(
    session: Session, job: Job, part: SubJob, tasks: TaskCursor, within: HyperNodeInfo
) -> Statement | None:
    """Place all ``tasks`` of ``part`` on the nodes nominated for them, and empty ``tasks``.

    Returns None if nothing is nominated below ``within``, or if a task cannot be placed, which ends the nomination.
    """
    name = job.hyper_nodes.nominated.get(part.uid, "")
    if not name:
        return None
    place = session.hyper_nodes.get(name)
    if place is not None and not set(place.rows) <= set(within.rows):
        return None
    with session.statement() as trial:
        if place is not None and all(_take(session, trial, job, task, place) for task in tasks.waiting):
            tasks.next = len(tasks.tasks)
            session.tell("sub_job_from_nomination", sub_job=part.uid, hyper_node=name)
            statement = session.statement()
            statement.merge(trial)
            return statement
    nominate(session, job, {part.uid: ""})
    for task in tasks.waiting:
        task.nominated_node = ""
    return None


def _take(session: Session, statement: Statement, job: Job, task: Task, place: HyperNodeInfo) -> bool:
    """Place ``task`` on its nominated node, on idle room or on room that becomes free."""
    row = session.table.statics.row.get(task.nominated_node, -1)
    if row not in place.rows or not session.ask.allocatable(session.queues[job.queue], task):
        return False
    if session.ask.pre_predicate(task) is not None:
        return False
    choice = session.placer.place(task, session.table.mask([row]))
    if choice is None:
        return False
    try:
        statement.place(job, (task,), choice.rows, choice.kind)
    except PlacementError:
        return False
    return True


def end_used(session: Session, job: Job, statement: Statement) -> None:
    """Nominations of the parts that ``statement`` places have served their purpose."""
    if job.hyper_nodes.nominated:
        placed = {task.uid for operation in statement.operations for task in operation.tasks}
        parts = session.sub_jobs(job).values()
        used = [part.uid for part in parts if not placed.isdisjoint(part.task_uids)]
        nominate(session, job, {uid: "" for uid in used if uid in job.hyper_nodes.nominated})
