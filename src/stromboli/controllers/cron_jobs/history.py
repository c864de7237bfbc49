"""The jobs of a CronJob: how they are made, and what the status says of those that are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from stromboli.api.batch import COMPLETED, FAILED, CronJob, CronJobStatus, Job, ObjectReference
from stromboli.controllers.changes import Emit, Json, builtins, normal, owned_by, subject, warning
from stromboli.controllers.jobs.states import FINISHED
from stromboli.controllers.pods import JOB_API, JOB_KIND
from stromboli.controllers.world import Jobs
from stromboli.errors import ManifestError
from stromboli.model.names import CRON_JOB_TIMESTAMP
from stromboli.model.values.cron import zone_named
from stromboli.model.values.times import seconds, stamp

KIND: Final = "CronJob"


def job_name(cron_job: CronJob, slot: int) -> str:
    """``<cronjob>-<minutes since 1970>``: one slot has one name, so that no two jobs are made of it."""
    return f"{cron_job.metadata.name}-{slot // 60}"


def job_body(cron_job: CronJob, slot: int) -> Json:
    """The job of a slot; it bears the slot's time by the clocks of the CronJob's time zone."""
    template: Any = cron_job.spec.job_template
    when = datetime.fromtimestamp(slot, zone_named(cron_job.spec.time_zone or "")).isoformat()
    metadata: Json = {
        "name": job_name(cron_job, slot),
        "namespace": cron_job.metadata.namespace,
        "labels": _texts(template.metadata.get("labels")),
        "annotations": {
            **_texts(template.metadata.get("annotations")),
            CRON_JOB_TIMESTAMP: when.removesuffix("+00:00") + "Z" if when.endswith("+00:00") else when,
        },
        "ownerReferences": [owned_by(subject(KIND, cron_job.metadata))],
    }
    return {"apiVersion": JOB_API, "kind": JOB_KIND, "metadata": metadata, "spec": builtins(template.spec)}


def _texts(stated: object) -> Json:
    return dict(stated) if isinstance(stated, Mapping) else {}


class History(NamedTuple):
    """What follows from the jobs that are there: the status, events about it, and the jobs that are too many."""

    status: CronJobStatus
    events: list[Emit]
    surplus: list[Job]


def history(cron_job: CronJob, jobs: Jobs, now: int) -> History:
    """What follows for a CronJob from ``jobs``.

    A job of a slot belongs to ``active`` from when it is there: whether the status was written when it was made makes
    no difference.
    """
    own = jobs.of_owner(cron_job)
    events: list[Emit] = []
    active = [one for one in cron_job.status.active if _stays(cron_job, one, jobs, events)]
    known = {one.uid for one in cron_job.status.active}
    unknown = [job for job in own if job.metadata.uid not in known and not is_finished(job)]
    new = [job for job in unknown if slot_of(cron_job, job, now)]
    events += [_told(cron_job, job) if job in new else _orphan(cron_job, job) for job in unknown]
    status = replace(
        cron_job.status,
        active=(*active, *map(_reference, new)),
        last_schedule_time=_latest(cron_job.status.last_schedule_time, [slot_of(cron_job, job, now) for job in own]),
        last_successful_time=_latest(cron_job.status.last_successful_time, map(_completed_at, own)),
    )
    return History(status, events, _surplus(cron_job, own))


def _latest(known: str | None, times: Iterable[int]) -> str | None:
    latest = max([seconds(known, "status"), *times])
    return stamp(latest) if latest else None


def is_finished(job: Job) -> bool:
    """Whether a job has come to its end."""
    return job.status.state.phase in FINISHED


def slot_of(cron_job: CronJob, job: Job, now: int) -> int:
    """The slot, not later than ``now``, that a job was made for; 0 if it was not made by the schedule."""
    try:
        slot = seconds(job.metadata.annotations.get(CRON_JOB_TIMESTAMP), CRON_JOB_TIMESTAMP)
    except ManifestError:
        return 0
    return slot if slot <= now and job.metadata.name == job_name(cron_job, slot) else 0


def _completed_at(job: Job) -> int:
    state = job.status.state
    return seconds(state.last_transition_time, "status.state") if state.phase == COMPLETED else 0


def _stays(cron_job: CronJob, active: ObjectReference, jobs: Jobs, events: list[Emit]) -> bool:
    """Whether an entry of ``active`` still names a job that has not finished; if not, an event says why."""
    about, job = subject(KIND, cron_job.metadata), jobs.get(active.namespace, active.name)
    if job is None:
        text = f'Active job "{active.name}" no longer exists (UID: {active.uid})'
        events.append(warning(about, "StaleReference", text))
    elif job.metadata.uid != active.uid:
        uids = f"expected: {active.uid}, actual: {job.metadata.uid}"
        text = f'Active job reference "{active.name}" points to a different UID ({uids})'
        events.append(warning(about, "StaleReference", text))
    elif is_finished(job):
        events.append(normal(about, "SawCompletedJob", f"Saw completed job: {active.name} in active, remove"))
    else:
        return True
    return False


def _told(cron_job: CronJob, job: Job) -> Emit:
    about = subject(KIND, cron_job.metadata)
    text = f"Created job {job.metadata.name} for CronJob {about.namespace}/{about.name}"
    return normal(about, "SuccessfulCreate", text)


def _orphan(cron_job: CronJob, job: Job) -> Emit:
    named = f"{job.metadata.name} (UID: {job.metadata.uid})"
    text = f"Detected orphaned job forgotten or not managed by controller: {named}"
    return warning(subject(KIND, cron_job.metadata), "OrphanedJob", text)


def _reference(job: Job) -> ObjectReference:
    meta = job.metadata
    return ObjectReference(
        api_version=JOB_API, kind=JOB_KIND, name=meta.name, namespace=meta.namespace, uid=meta.uid,
        resource_version=meta.resource_version,
    )  # fmt: skip


def _surplus(cron_job: CronJob, own: list[Job]) -> list[Job]:
    """The completed and failed jobs beyond the history limits, the oldest ones."""
    limits = {
        COMPLETED: cron_job.spec.successful_jobs_history_limit,
        FAILED: cron_job.spec.failed_jobs_history_limit,
    }
    found: list[Job] = []
    for phase, limit in limits.items():
        ended = [job for job in own if job.status.state.phase == phase and not job.metadata.deletion_timestamp]
        ended.sort(key=lambda job: (job.metadata.creation_timestamp or "", job.metadata.name))
        found += ended[: len(ended) - limit] if limit is not None and limit < len(ended) else []
    return found
