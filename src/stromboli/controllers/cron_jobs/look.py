"""One look at a CronJob: its status, its history, and the job that is due."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from stromboli.api.batch import FORBID, REPLACE, CronJob, CronJobStatus, Job
from stromboli.api.kinds import CRON_JOBS, JOBS
from stromboli.controllers.changes import (
    Create,
    Delete,
    Outcome,
    Patch,
    builtins,
    difference,
    normal,
    subject,
    warning,
)
from stromboli.controllers.cron_jobs.due import due, schedule_of, zone_problem
from stromboli.controllers.cron_jobs.history import KIND, history, is_finished, job_body, job_name
from stromboli.controllers.world import Key, World, key_of
from stromboli.errors import ScheduleError

PADDING: Final = 0.1
"""Seconds after a slot at which it is looked for: clocks differ a little."""

LOOK_AGAIN: Final = 3600.0
"""Seconds after which a CronJob is looked at in any case: clocks are set, and events forgotten."""

MADE_AGAIN: Final = 1.0
"""Seconds after which it is seen whether the job that was made is ours."""

GIVEN_UP: Final = 60.0
"""Seconds after which the next attempt is made where a job could not be made so often that the look was given up."""

TOO_MANY: Final = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
NEVER: Final = "no time within five years matches"


class CronJobController:
    """Looks at CronJobs; it remembers since when each has had its schedule, as far as it has seen it change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._schedules: dict[Key, tuple[tuple[str, str, str | None], int]] = {}

    def look(self, key: Key, now: float) -> Outcome:
        """What is to be done about the CronJob of that key."""
        cron_job = self._world.cron_jobs.get(*key)
        if cron_job is None:
            self._schedules.pop(key, None)
            return Outcome()
        if cron_job.metadata.deletion_timestamp is not None:
            return Outcome()
        return Look(cron_job, self._world, self._since(cron_job, int(now)), now).outcome()

    def _since(self, cron_job: CronJob, now: int) -> int:
        """Only slots after this time count: those that a changed schedule would have had before do not."""
        spelled = (cron_job.metadata.uid, cron_job.spec.schedule, cron_job.spec.time_zone)
        before, since = self._schedules.get(key_of(cron_job), (spelled, 0))
        if before != spelled:
            since = now if before[0] == spelled[0] else 0
        self._schedules[key_of(cron_job)] = spelled, since
        return since


class Look:
    """What one look leads to; ask :meth:`outcome` once."""

    def __init__(self, cron_job: CronJob, world: World, since: int, now: float) -> None:
        self._cron_job, self._jobs, self._since, self._now = cron_job, world.jobs, since, now
        self._about = subject(KIND, cron_job.metadata)
        self._outcome = Outcome()

    def outcome(self) -> Outcome:
        """The status as it should be, then what is too old, then what is due."""
        found = history(self._cron_job, self._jobs, int(self._now))
        self._write(found.status)
        self._outcome.then(*found.events)
        self._delete(found.surplus)
        if not self._cron_job.spec.suspend:
            self._make_due()
        return self._outcome

    def _write(self, status: CronJobStatus) -> None:
        """Write the status, and have what follows see it."""
        meta = self._cron_job.metadata
        patch = difference(builtins(self._cron_job.status), builtins(status))
        if patch:
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": patch}
            self._outcome.then(Patch(CRON_JOBS, meta.namespace, meta.name, body, status=True))
        self._cron_job = replace(self._cron_job, status=status)

    def _delete(self, jobs: list[Job]) -> None:
        for job in jobs:
            meta = job.metadata
            self._outcome.then(Delete(JOBS, meta.namespace, meta.name, meta.uid))
            self._outcome.then(normal(self._about, "SuccessfulDelete", f'Deleted job "{meta.name}"'))

    def _warn(self, reason: str, text: str) -> None:
        self._outcome.then(warning(self._about, reason, text))

    # -- What is due -------------------------------------------------------------------------------------------------

    def _make_due(self) -> None:
        self._outcome.after = LOOK_AGAIN
        spec = self._cron_job.spec
        if problem := zone_problem(self._cron_job):
            self._warn("InvalidTimeZone", f'Invalid time zone "{spec.time_zone}": {problem}')
            return
        try:
            schedule = schedule_of(self._cron_job)
        except ScheduleError as error:
            text = f"unparseable schedule for cronjob: {spec.schedule[:100]}: {error}"
            self._warn("UnParseableCronJobSchedule", text)
            return
        if "TZ" in spec.schedule:
            self._warn("UnsupportedSchedule", _ZONE_INSIDE.format(schedule=spec.schedule))
        found = due(self._cron_job, schedule, self._since, int(self._now))
        if found.next is not None:
            self._outcome.after = min(max(found.next + PADDING - self._now, PADDING), LOOK_AGAIN)
        elif found.slot is None:
            self._warn("InvalidSchedule", f"Error getting schedule time: {NEVER}")
        if found.slot is not None and not self._is_made(found.slot):
            if found.many:
                self._warn("TooManyMissedTimes", TOO_MANY)
            self._make(found.slot)

    def _is_made(self, slot: int) -> bool:
        """Whether a job has the slot's name; one that is not ours is told."""
        meta = self._cron_job.metadata
        job = self._jobs.get(meta.namespace, job_name(self._cron_job, slot))
        if job is None:
            return False
        owner = next((owner for owner in job.metadata.owner_references if owner.controller), None)
        if owner is None or owner.uid != meta.uid:
            named = owner.name if owner else "none"
            text = f"Job {job.metadata.name} exists but is not owned by this CronJob (current owner: {named})"
            self._warn("ForeignJob", text)
        return True

    def _make(self, slot: int) -> None:
        policy, active = self._cron_job.spec.concurrency_policy, self._cron_job.status.active
        if active and policy == FORBID:
            self._warn("ForbidConcurrent", "Skipping job creation because another job is already running")
            return
        if active and policy == REPLACE:
            self._replace()
        body = job_body(self._cron_job, slot)
        self._outcome.then(Create(JOBS, self._cron_job.metadata.namespace, body))
        self._outcome.after = min(self._outcome.after or MADE_AGAIN, MADE_AGAIN)

    def _replace(self) -> None:
        self._warn("ReplaceConcurrent", "Replacing active job for CronJob")
        named = [self._jobs.get(one.namespace, one.name) for one in self._cron_job.status.active]
        self._delete([job for job in named if job is not None and not is_finished(job)])
        meta = self._cron_job.metadata
        self._outcome.then(Patch(CRON_JOBS, meta.namespace, meta.name, {"status": {"active": None}}, status=True))


_ZONE_INSIDE: Final = (
    'CRON_TZ or TZ in the schedule "{schedule}" is not officially supported. If set, the TimeZone field will be '
    "ignored during execution."
)
