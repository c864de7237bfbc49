"""Whether CronJobs may be stored."""

from __future__ import annotations

import re
from typing import Final

from stromboli.api.batch import CronJob
from stromboli.crds.admission.texts import qualified_name
from stromboli.errors import ScheduleError
from stromboli.model.values.cron import parse_schedule, zone_named

LONGEST_NAME: Final = 52
"""Characters of a name: jobs have eleven more."""

_PART: Final = re.compile(r"[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}", re.ASCII)
NAME_TOO_LONG: Final = (
    f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix (max 63 total)"
)


def check_cron_job(cron_job: CronJob) -> list[str]:
    """What is wrong with a CronJob, as one text.  The job that it makes is judged when it is made."""
    spec = " ".join([*_schedule_problem(cron_job.spec.schedule), *_zone_problems(cron_job.spec.time_zone)])
    text = "; ".join(filter(None, (spec, _name_problem(cron_job.metadata.name))))
    return [text] if text else []


def _schedule_problem(schedule: str) -> list[str]:
    if not schedule:
        return ["schedule is required, but got empty"]
    if "TZ" in schedule:
        return ["schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"]
    try:
        parse_schedule(schedule)
    except ScheduleError:
        return ["schedule is not a valid cron expression"]
    return []


def _zone_problems(zone: str | None) -> list[str]:
    if zone is None:
        return []
    if not zone:
        return ["timeZone must be nil or non-empty string, got empty string"]
    bad = [part for part in zone[:256].split("/") if part in (".", "..") or not _PART.fullmatch(part)]
    return ["unknown timeZone"] * len(bad) + _unknown(zone)


def _unknown(zone: str) -> list[str]:
    if zone.lower() == "local":
        return ["timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"]
    try:
        zone_named(zone)
    except ScheduleError:
        return ["invalid timeZone"]
    return []


def _name_problem(name: str) -> str:
    if len(name) > LONGEST_NAME:
        return NAME_TOO_LONG
    problems = "; ".join(qualified_name(name))
    return f'invalid cronJob name "{name}": {problems}' if problems else ""
