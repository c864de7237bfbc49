"""How allocate places one job: used by allocate itself, and by actions that leave idle room to it."""

from __future__ import annotations

from stromboli.allocation import gradients
from stromboli.allocation.pending_tasks import TaskCursor, Worksheet, by_part, whole
from stromboli.allocation.place_tasks import Placing, TaskPlacer
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import has_topology
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.subjobs import SubJob


def sheet_of(session: Session, job: Job) -> TaskCursor | Worksheet:
    """The tasks of ``job`` still to be placed, by part where it is placed part by part."""
    return by_part(session, job) if gradients.is_split(session, job) else whole(session, job)


def try_job(session: Session, placing: Placing, job: Job, sheet: TaskCursor | Worksheet) -> Statement | None:
    """Place tasks of ``sheet`` until ``job`` is ready, or would be with pipelined ones; None, nothing changed, if not.

    ``sheet`` keeps what is left to place.
    """
    if isinstance(sheet, Worksheet):
        return gradients.place_job(session, placing, job, sheet)
    part = session.sub_jobs(job)[job.uid] if has_topology(job) else SubJob(job, job.uid, job.uid, job.min_available)
    return TaskPlacer(session, placing.events, job, part, sheet, session.hyper_nodes.top).run()
