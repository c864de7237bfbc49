"""Tasks whose PodGroup or queue is gone: plugins pass them over, and say so."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from stromboli.framework.extension.reason import Reason
from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


def known_job(session: ClusterView, plugin: str, task: Task, what: str) -> Job | None:
    """The job of ``task``; of one whose PodGroup is gone ``plugin`` tells that it passes over this ``what``."""
    job = session.jobs.peek_at(task.job)
    if job is None:
        session.tell("orphan_skipped", plugin=plugin, what=what, task=task.key, job=task.job)
    return job


def queue_of(session: ClusterView, plugin: str, task: Task, queues: Container[str]) -> str | Reason:
    """The queue of ``task``, one of ``queues``; else why ``plugin`` cannot say what moving it would change."""
    job = session.job_of(task)
    if job is None:
        what = f"job {task.job} not found in session (orphaned task from deleted PodGroup)"
        return Reason(f"[{plugin}] {what}", resolvable=False)
    if job.queue not in queues:
        return Reason(f"[{plugin}] queue {job.queue} not found", resolvable=False)
    return job.queue
