"""The status of a job after somebody has looked at it."""

from __future__ import annotations

from msgspec.structs import replace

from stromboli.controllers.jobs.counting import Counts
from stromboli.crds.batch import Job, JobCondition, JobStatus
from stromboli.model.duration import format_duration
from stromboli.model.times import seconds, stamp

NANOSECONDS = 10**9


def status_after(job: Job, counts: Counts, phase: str, now: float) -> JobStatus:
    """The status of ``job`` with its pods as counted, in ``phase``; the time changes only where something else does."""
    old = job.status
    status = replace(
        old,
        min_available=job.spec.min_available,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count=counts.task_states(),
    )
    if phase != old.state.phase:
        status = replace(status, state=replace(old.state, phase=phase), conditions=_conditions(old, phase, now))
    return stamped(job, status, now)


def stamped(job: Job, status: JobStatus, now: float) -> JobStatus:
    """``status`` with the time of its writing, if it differs from the present one."""
    if status == job.status:
        return status
    return replace(status, state=replace(status.state, last_transition_time=stamp(now)))


def _conditions(old: JobStatus, phase: str, now: float) -> tuple[JobCondition, ...]:
    others = tuple(condition for condition in old.conditions if condition.status != phase)
    return (*others, JobCondition(status=phase, last_transition_time=stamp(now)))


def running_duration(job: Job, now: float) -> str:
    """How long a job has been there."""
    created = seconds(job.metadata.creation_timestamp, "metadata.creationTimestamp")
    return format_duration(max(int(now) - created, 0) * NANOSECONDS)
