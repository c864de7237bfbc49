"""Which slot of a schedule is due.  Times are whole seconds since 1970."""

from __future__ import annotations

from typing import Final, NamedTuple

from stromboli.api.batch import CronJob
from stromboli.errors import ScheduleError
from stromboli.model.values.cron import HORIZON, Schedule, parse_schedule, zone_named
from stromboli.model.values.times import seconds

MANY: Final = 100
"""Missed slots above which a CronJob is warned that its clock or deadline may be wrong."""


class Due(NamedTuple):
    """What a schedule says: the ``slot`` that is due, None for none; the slot that comes ``next``, None for none.

    ``many``: more than :data:`MANY` slots have been missed.
    """

    slot: int | None
    next: int | None
    many: bool = False


def schedule_of(cron_job: CronJob) -> Schedule:
    """The schedule of a CronJob.  Raises :class:`~stromboli.errors.ScheduleError`."""
    return parse_schedule(cron_job.spec.schedule, cron_job.spec.time_zone or "")


def zone_problem(cron_job: CronJob) -> str:
    """What is wrong with the time zone, empty if nothing is."""
    try:
        zone_named(cron_job.spec.time_zone or "")
    except ScheduleError as error:
        return str(error)
    return ""


def due(cron_job: CronJob, schedule: Schedule, since: int, now: int) -> Due:
    """What is due at ``now`` of the slots after ``since``, or after the last one that was used, or the creation.

    Of several missed slots only the latest is due, and none that is older than ``startingDeadlineSeconds``.
    """
    deadline = cron_job.spec.starting_deadline_seconds
    created = seconds(cron_job.metadata.creation_timestamp, "metadata.creationTimestamp")
    used = seconds(cron_job.status.last_schedule_time, "status.lastScheduleTime")
    begin = max(used or created, since, now - HORIZON)
    slot = schedule.latest(begin, now)
    following = schedule.following(begin if slot is None else slot)
    oldest = begin if deadline is None else max(begin, now - deadline)
    if slot is None or slot <= oldest:
        return Due(None, following)
    return Due(slot, following, _has_missed_many(schedule, oldest, now))


def _has_missed_many(schedule: Schedule, since: int, now: int) -> bool:
    """Whether many slots lie after ``since``, if all are as far apart as the first two: Kubernetes' estimate."""
    first = schedule.following(since)
    second = None if first is None else schedule.following(first)
    return first is not None and second is not None and (now - first) // (second - first) + 1 > MANY
