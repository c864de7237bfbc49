"""The status of a JobFlow: its jobs by phase, the history of each, and where the flow is in its life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from stromboli.api.batch import COMPLETED, COMPLETING, FAILED, PENDING, RUNNING, TERMINATED, TERMINATING, Job
from stromboli.api.flow import (
    FLOW_FAILED,
    FLOW_PENDING,
    FLOW_RUNNING,
    FLOW_SUCCEED,
    FLOW_TERMINATING,
    FlowCondition,
    FlowJobStatus,
    FlowState,
    JobFlow,
    JobFlowStatus,
    RunningHistory,
)
from stromboli.controllers.job_flows.steps import Jobs
from stromboli.errors import DurationError
from stromboli.model.values.duration import seconds as duration
from stromboli.model.values.times import seconds, stamp

FINAL: Final = (FLOW_SUCCEED, FLOW_FAILED, FLOW_TERMINATING)
"""Phases in which a flow makes nothing more."""

MOST_HISTORY: Final = 20
"""Phases of a job that are remembered; of one that is restarted for ever the oldest are forgotten."""

_LISTED: Final = {
    PENDING: "pending_jobs",
    RUNNING: "running_jobs",
    FAILED: "failed_jobs",
    COMPLETED: "completed_jobs",
    TERMINATED: "terminated_jobs",
}
_UNLISTED: Final = (COMPLETING, TERMINATING)


def status_of(flow: JobFlow, jobs: Jobs, now: float) -> JobFlowStatus:
    """The status that follows from the jobs as they stand."""
    known = {one.name: one for one in flow.status.job_status_list}
    rows = {job.metadata.name: _row(job, known.get(job.metadata.name), now) for job in jobs.own}
    listed = _by_phase({name: row.state for name, row in {**_completed(known), **rows}.items()})
    status = replace(
        flow.status,
        **listed,
        job_status_list=tuple({**known, **rows}.values()),
        conditions={job.metadata.name: _condition(job) for job in jobs.own},
    )
    phases = {jobs.phase(one.name) for one in flow.spec.flows}
    return replace(status, state=FlowState(phase=_phase(status, all_done=phases == {COMPLETED})))


def _completed(known: Mapping[str, FlowJobStatus]) -> dict[str, FlowJobStatus]:
    return {name: one for name, one in known.items() if one.state == COMPLETED}


def _by_phase(phases: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The fields of the status that list jobs."""
    fields = {name: _LISTED.get(phase, "" if phase in _UNLISTED else "unknown_jobs") for name, phase in phases.items()}
    return {
        field: tuple(name for name, its in fields.items() if its == field)
        for field in (*_LISTED.values(), "unknown_jobs")
    }


def _phase(status: JobFlowStatus, *, all_done: bool) -> str:
    """The phase that follows the present one; a flow whose jobs run passes through Running before it ends."""
    over = bool(status.failed_jobs or status.terminated_jobs)
    if status.state.phase == FLOW_RUNNING:
        return FLOW_SUCCEED if all_done else FLOW_FAILED if over else FLOW_RUNNING
    if (status.running_jobs or status.completed_jobs) and not status.failed_jobs:
        return FLOW_RUNNING
    return FLOW_FAILED if over else FLOW_PENDING


def _row(job: Job, known: FlowJobStatus | None, now: float) -> FlowJobStatus:
    phase = job.status.state.phase
    created = job.metadata.creation_timestamp
    return FlowJobStatus(
        name=job.metadata.name,
        state=phase,
        start_timestamp=created,
        end_timestamp=_end(job),
        restart_count=job.status.retry_count,
        running_histories=_history(known.running_histories if known else (), phase, now),
    )


def _end(job: Job) -> str | None:
    lasted = job.status.running_duration
    if not lasted:
        return None
    try:
        return stamp(seconds(job.metadata.creation_timestamp, "metadata.creationTimestamp") + duration(lasted))
    except DurationError:  # others may write a job's status
        return None


def _history(known: Iterable[RunningHistory], phase: str, now: float) -> tuple[RunningHistory, ...]:
    rows = list(known)
    if not phase or (rows and rows[-1].state == phase):
        return tuple(rows)
    if rows:
        rows[-1] = replace(rows[-1], end_timestamp=stamp(now))
    return (*rows, RunningHistory(start_timestamp=stamp(now), state=phase))[-MOST_HISTORY:]


def _condition(job: Job) -> FlowCondition:
    return FlowCondition(
        phase=job.status.state.phase,
        create_time=job.metadata.creation_timestamp,
        running_duration=job.status.running_duration,
        task_status_count=job.status.task_status_count,
    )
