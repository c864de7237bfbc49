"""What users are told of jobs and pods that wait."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.framework.engine.fits import Fits
from stromboli.model.job import ALLOCATED, PENDING, PIPELINED, Job
from stromboli.model.task import Placement, Task

READY, NOT_READY = "pod group is ready", "pod group is not ready"
SCHEDULABLE, UNSCHEDULABLE = "Schedulable", "Unschedulable"


class SchedulingReason(NamedTuple):
    """Reason and message of a pod's condition, and the node nominated for it (empty: none)."""

    reason: str
    message: str
    nominated_node: str = ""


def scheduling_reason(job: Job, task: Task) -> SchedulingReason:
    """Why ``task`` is not bound: from where it stood before its statement was discarded, else from where it stands."""
    where = task.last or Placement(task.status, task.node_name, task.eviction_occurred)
    if where.status is ALLOCATED:
        text = f"Pod {task.key} can possibly be assigned to {where.node_name}, once minAvailable is satisfied"
        return SchedulingReason(SCHEDULABLE, text)
    if where.status is PIPELINED:
        text = (
            f"Pod {task.key} can possibly be assigned to {where.node_name}, "
            "once resource is released and minAvailable is satisfied"
        )
        return SchedulingReason(UNSCHEDULABLE, text, where.node_name if where.eviction_occurred else "")
    if where.status is PENDING:
        fits = job.fits.get(task.uid)
        return SchedulingReason(UNSCHEDULABLE, fits.text if isinstance(fits, Fits) else job.fit_error_text)
    return SchedulingReason(where.status.name, job.fit_error_text)


def fit_error(job: Job) -> str:
    """Everything about a job that waits in one sentence: its counts, its pending tasks' reasons, the first cause."""
    counts = [f"{len(members)} {status.name}" for status, members in job.index.items()]
    text = READY if job.is_ready() else NOT_READY
    text += ", " + ", ".join(sorted([*counts, f"{job.min_available} minAvailable"]))
    reasons: dict[str, int] = {}
    for task in job.of(PENDING):
        reason = _reason_word(task)
        reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        text += "; Pending: " + ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return text + _origin(job)


def _reason_word(task: Task) -> str:
    status = task.last.status if task.last else task.status
    return SCHEDULABLE if status is ALLOCATED else UNSCHEDULABLE if status in (PENDING, PIPELINED) else status.name


def _origin(job: Job) -> str:
    if job.fit_error_text:
        return f". Origin reason is: {job.fit_error_text}"
    failed = [job.tasks[uid] for uid in job.fits if uid in job.tasks]
    if not failed:
        return ""
    first = min(failed, key=lambda task: (task.created, task.index, task.uid))
    fits = job.fits[first.uid]
    return f". Origin reason is {first.name}: {fits.text}" if isinstance(fits, Fits) else ""
