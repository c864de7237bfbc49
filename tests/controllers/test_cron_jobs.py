"""CronJobs in virtual time: slots, policies, history, deadlines, and events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from stromboli.api.batch import CronJob, Job
from stromboli.api.kinds import CRON_JOBS, JOBS
from stromboli.api.read import read
from stromboli.controllers.changes import Create, Delete, Patch
from stromboli.controllers.cron_jobs.due import due, schedule_of
from stromboli.controllers.cron_jobs.history import _surplus
from stromboli.controllers.cron_jobs.look import LOOK_AGAIN, Look
from stromboli.controllers.manager import Settings
from stromboli.controllers.work import About, Work
from stromboli.model.values.times import seconds, stamp
from tests.controllers.cluster import Broken, Cluster, Manifest, task

MINUTE, HOUR, DAY = 60, 3600, 86400
ONLY = Settings(looks=frozenset({About.cron_job}))


def at(text: str) -> int:
    return seconds(text, "test")


def cron_job(schedule: str = "0 * * * *", **spec: Any) -> Manifest:
    """A CronJob as it is stored, defaults filled in."""
    template = {"metadata": {"labels": {"app": "it"}, "annotations": {"own": "mark"}}, "spec": {"tasks": [task()]}}
    defaults = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    return {"metadata": {"name": "c", "namespace": "ns"},
            "spec": {"schedule": schedule, "jobTemplate": template, **defaults, **spec}}  # fmt: skip


class Clock(Cluster):
    """A cluster with one CronJob, from a time on; jobs do only what the test says."""

    def __init__(self, start: str, schedule: str = "0 * * * *", **spec: Any) -> None:
        super().__init__(ONLY)
        self.now = float(at(start))
        self.store(CRON_JOBS, cron_job(schedule, **spec))
        self.settle()

    def names(self) -> list[str]:
        """Names of the jobs."""
        return sorted(name for _, name in self.objects.get(JOBS, {}))

    def slots(self) -> list[str]:
        """The slots of all jobs that were ever made."""
        made: list[Any] = [change.body["metadata"] for change in self.writes if isinstance(change, Create)]
        return [meta["annotations"]["volcano.sh/cronjob-scheduled-timestamp"] for meta in made]

    def end(self, name: str, phase: str = "Completed") -> None:
        """A job has come to its end."""
        self.change(JOBS, name, {"status": {"state": {"phase": phase, "lastTransitionTime": stamp(self.now)}}})
        self.settle()

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.objects[CRON_JOBS]["ns", "c"].get("status", {})
        return found

    def active(self) -> list[str]:
        return [one["name"] for one in self.status().get("active", [])]

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


def named(text: str) -> str:
    return f"c-{at(text) // 60}"


def test_a_job_is_made_at_each_slot_and_says_so() -> None:
    clock = Clock("2026-01-01T00:30:00Z", timeZone="Asia/Kolkata", schedule="30 * * * *")
    clock.wait(at("2026-01-01T00:59:59Z"))
    assert clock.names() == []
    clock.wait(at("2026-01-01T01:00:10Z"))
    name = named("2026-01-01T01:00:00Z")
    job = clock.objects[JOBS]["ns", name]
    assert job["metadata"]["labels"] == {"app": "it"}
    stated = {"own": "mark", "volcano.sh/cronjob-scheduled-timestamp": "2026-01-01T06:30:00+05:30"}
    assert job["metadata"]["annotations"] == stated
    [owner] = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "c", True)
    assert job["spec"]["tasks"][0]["replicas"] == 2
    assert clock.status()["lastScheduleTime"] == "2026-01-01T01:00:00Z"
    [reference] = clock.status()["active"]
    assert (reference["kind"], reference["name"], reference["uid"]) == ("Job", name, job["metadata"]["uid"])
    clock.end(name)
    assert clock.active() == []
    assert clock.status()["lastSuccessfulTime"] == "2026-01-01T01:00:10Z"
    assert [event.message for event in clock.events] == [
        f"Created job {name} for CronJob ns/c", f"Saw completed job: {name} in active, remove",
    ]  # fmt: skip
    assert {event.about.kind for event in clock.events} == {"CronJob"}


@pytest.mark.parametrize(
    ("zone", "schedule", "skipped", "twice"),
    [
        ("America/New_York", "30 2 * * *", "2026-03-08", ""),
        ("America/New_York", "30 1 * * *", "", "2026-11-01"),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", "2026-10-25"),
    ],
)
def test_a_year_of_days(zone: str, schedule: str, skipped: str, twice: str) -> None:
    """Each day has its job, but for one whose time the clocks skip; a time that they show twice has two."""
    clock = Clock("2026-01-01T12:00:00Z", schedule, timeZone=zone)
    where = ZoneInfo(zone)
    for day in range(364):
        clock.wait(at("2026-01-01T12:00:00Z") + (day + 1) * DAY)
        for name in clock.active():
            clock.end(name)
    made = [datetime.fromisoformat(slot) for slot in clock.slots()]
    assert {moment.astimezone(where).strftime("%H:%M") for moment in made} == {"0" + ":".join(schedule.split()[1::-1])}
    days = [moment.date().isoformat() for moment in made]
    assert len(set(days)) == 364 - bool(skipped)
    assert skipped not in days
    assert [day for day in set(days) if days.count(day) == 2] == ([twice] if twice else [])
    assert len(clock.names()) == 3, "what is older than the history is deleted"


@pytest.mark.parametrize(
    ("policy", "running", "told"),
    [
        ("Allow", ["01:00", "01:05", "01:10"], set()),
        ("Forbid", ["01:00"], {"ForbidConcurrent"}),
        ("Replace", ["01:10"], {"ReplaceConcurrent", "SuccessfulDelete"}),
    ],
)
def test_concurrency_policies(policy: str, running: list[str], told: set[str]) -> None:
    clock = Clock("2026-01-01T00:59:00Z", "*/5 1 * * *", concurrencyPolicy=policy)
    clock.wait(at("2026-01-01T01:12:00Z"))
    assert clock.active() == clock.names() == [named(f"2026-01-01T{slot}:00Z") for slot in running]
    assert set(clock.reasons()) - {"SuccessfulCreate"} == told
    if policy == "Forbid":
        assert clock.status()["lastScheduleTime"] == "2026-01-01T01:00:00Z"


def test_a_forbidden_slot_starts_late_once_the_running_job_has_ended() -> None:
    clock = Clock("2026-01-01T00:59:00Z", concurrencyPolicy="Forbid")
    clock.wait(at("2026-01-01T02:20:00Z"))
    clock.end(named("2026-01-01T01:00:00Z"))
    assert clock.active() == [named("2026-01-01T02:00:00Z")]
    late = Clock("2026-01-01T00:59:00Z", concurrencyPolicy="Forbid", startingDeadlineSeconds=600)
    late.wait(at("2026-01-01T02:20:00Z"))
    late.end(named("2026-01-01T01:00:00Z"))
    assert late.active() == []


@pytest.mark.parametrize(
    ("schedule", "deadline", "away", "made", "many"),
    [
        ("0 * * * *", None, 10 * HOUR, "10:00", False),
        ("* * * * *", None, 10 * HOUR, "10:30", True),
        ("* * * * *", 3600, 10 * HOUR, "10:30", False),
        ("0 * * * *", 600, 10 * HOUR, "", False),
        ("0 * * * *", 3600, 10 * HOUR, "10:00", False),
        ("* * * * *", None, 40 * 365 * DAY, "00:30", True),
    ],
)
def test_missed_slots(schedule: str, deadline: int | None, away: int, made: str, many: bool) -> None:
    """Of all missed slots the latest one runs, unless it is too late for it; a hundred missed ones are reported."""
    clock = Clock("2026-01-01T00:30:00Z", schedule, suspend=True, startingDeadlineSeconds=deadline)
    clock.wait(clock.now + away)
    clock.change(CRON_JOBS, "c", {"spec": {"suspend": False}})
    clock.settle()
    assert [slot[11:16] for slot in clock.slots()] == ([made] if made else [])
    assert ("TooManyMissedTimes" in clock.reasons()) == many


def test_history_limits_and_zero() -> None:
    clock = Clock("2026-01-01T00:30:00Z", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    for hour in range(1, 7):
        clock.wait(at(f"2026-01-01T0{hour}:00:10Z"))
        clock.end(named(f"2026-01-01T0{hour}:00:00Z"), "Failed" if hour % 2 else "Completed")
    assert clock.names() == [named("2026-01-01T04:00:00Z"), named("2026-01-01T06:00:00Z")]
    clock.wait(at("2026-01-01T06:59:00Z"))
    assert len(clock.slots()) == 6, "a job that history has deleted is not made again"
    assert clock.reasons().count("SuccessfulDelete") == 4


def test_a_changed_schedule_does_not_run_what_it_would_have_run_before() -> None:
    clock = Clock("2026-01-01T00:00:30Z", "0 0 * * *")
    clock.wait(at("2026-01-02T15:00:00Z"))
    clock.change(CRON_JOBS, "c", {"spec": {"schedule": "0 12 * * *"}})
    clock.wait(at("2026-01-03T11:00:00Z"))
    assert [slot[:13] for slot in clock.slots()] == ["2026-01-02T00"]
    clock.wait(at("2026-01-03T12:00:01Z"))
    assert [slot[:13] for slot in clock.slots()] == ["2026-01-02T00", "2026-01-03T12"]


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({"schedule": "61 * * * *"}, "UnParseableCronJobSchedule", "unparseable schedule for cronjob: 61 * * * *: end"),
        ({"timeZone": "Moon/Base"}, "InvalidTimeZone", 'Invalid time zone "Moon/Base": unknown time zone Moon/Base'),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule", "Error getting schedule time: no time within five years"),
    ],
)
def test_a_schedule_that_can_never_run_is_told(spec: dict[str, Any], reason: str, text: str) -> None:
    clock = Clock("2026-01-01T00:30:00Z", **spec)
    clock.wait(at("2026-01-01T03:00:00Z"))
    assert clock.names() == []
    assert set(clock.reasons()) == {reason}
    assert clock.events[0].message.startswith(text)
    clock.change(CRON_JOBS, "c", {"spec": {"schedule": "0 * * * *", "timeZone": None}})
    clock.wait(at("2026-01-01T04:00:10Z"))
    assert clock.names() == [named("2026-01-01T04:00:00Z")]


def test_a_zone_in_the_schedule_wins_and_is_told() -> None:
    clock = Clock("2026-01-01T00:30:00Z", "TZ=Asia/Tokyo 0 12 * * *", timeZone="Europe/Berlin")
    clock.wait(at("2026-01-01T03:00:10Z"))
    assert clock.slots() == ["2026-01-01T04:00:00+01:00"]
    assert "UnsupportedSchedule" in clock.reasons()


def test_every_half_minute_runs_once_a_minute() -> None:
    """The names of jobs have minutes, as the reference's."""
    clock = Clock("2026-01-01T00:00:00Z", "@every 30s", successfulJobsHistoryLimit=9)
    clock.wait(at("2026-01-01T00:03:10Z"))
    assert len(clock.names()) == 4


def test_jobs_of_others_and_stale_entries_are_told() -> None:
    clock = Clock("2026-01-01T00:30:00Z")
    other = {"name": "o", "kind": "Deployment", "uid": "u", "apiVersion": "apps/v1", "controller": True}
    name = named("2026-01-01T01:00:00Z")
    clock.store(JOBS, {"metadata": {"name": name, "namespace": "ns", "ownerReferences": [other]}, "spec": {}})
    clock.wait(at("2026-01-01T01:00:10Z"))
    assert f"Job {name} exists but is not owned by this CronJob (current owner: o)" in clock.told("ForeignJob")
    clock.wait(at("2026-01-01T02:00:10Z"))
    second = named("2026-01-01T02:00:00Z")
    assert clock.active() == [second]
    uid = clock.objects[JOBS]["ns", second]["metadata"]["uid"]
    clock.remove(JOBS, second)
    clock.settle()
    assert clock.active() == []
    assert list(clock.told("StaleReference")) == [f'Active job "{second}" no longer exists (UID: {uid})']
    mine = {"name": "c", "kind": "CronJob", "uid": clock.objects[CRON_JOBS]["ns", "c"]["metadata"]["uid"],
            "apiVersion": "batch.volcano.sh/v1alpha1", "controller": True}  # fmt: skip
    clock.store(JOBS, {"metadata": {"name": "by-hand", "namespace": "ns", "ownerReferences": [mine]}, "spec": {}})
    clock.settle()
    assert "by-hand" in next(clock.told("OrphanedJob"))
    assert clock.active() == []


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
@pytest.mark.parametrize("broken", [Create, Patch, Delete])
def test_a_failed_write_is_made_good(policy: str, broken: type[Any]) -> None:
    """A write that fails, or a controller that restarts in the middle, makes no second job and forgets none."""
    clock = Clock("2026-01-01T00:59:00Z", concurrencyPolicy=policy)
    clock.breaking[broken] = 1
    clock.wait(at("2026-01-01T01:00:30Z"))
    clock.breaking[broken] = 1
    clock.wait(at("2026-01-01T02:00:30Z"))
    expected = ["01:00"] if policy == "Forbid" else ["02:00"] if policy == "Replace" else ["01:00", "02:00"]
    assert clock.active() == clock.names() == [named(f"2026-01-01T{slot}:00Z") for slot in expected]


def test_no_two_jobs_are_made_of_a_slot_wherever_a_controller_ends() -> None:
    """A controller is killed after each of its writes in turn; the next one sees what is stored, and nothing else."""
    whole = _writes_until_killed(10**6)
    assert whole > 8
    for writes in range(whole):
        _writes_until_killed(writes)


def _writes_until_killed(writes: int) -> int:
    clock = Clock("2026-01-01T00:59:00Z", concurrencyPolicy="Replace", successfulJobsHistoryLimit=0)
    stored, mortal = clock.apply, iter(range(writes))

    def apply(change: Any) -> None:
        if isinstance(change, Create | Patch | Delete) and next(mortal, None) is None:
            clock.apply = stored  # type: ignore[method-assign]
            successor = Cluster(ONLY)
            clock.manager, clock.later = successor.manager, {}
            for resource in (CRON_JOBS, JOBS):
                for found in list(clock.objects.get(resource, {}).values()):
                    clock.store(resource, found)
            raise Broken
        stored(change)

    clock.apply = apply  # type: ignore[method-assign]
    for hour in (1, 2, 3):
        clock.wait(at(f"2026-01-01T0{hour}:00:30Z"))
        if hour == 2 and clock.active():
            clock.end(clock.active()[0])
    clock.wait(at("2026-01-01T03:30:00Z"))
    slots = [slot[11:16] for slot in clock.slots()]
    assert sorted(set(slots)) == ["01:00", "02:00", "03:00"]
    assert clock.active() == clock.names() == [named("2026-01-01T03:00:00Z")]
    return sum(isinstance(change, Create | Patch | Delete) for change in clock.writes)


def test_a_terminating_cron_job_makes_nothing_and_a_gone_one_is_forgotten() -> None:
    clock = Clock("2026-01-01T00:30:00Z")
    clock.change(CRON_JOBS, "c", {"metadata": {"deletionTimestamp": stamp(clock.now)}})
    clock.wait(at("2026-01-01T01:30:00Z"))
    assert clock.names() == []
    clock.remove(CRON_JOBS, "c")
    assert clock.run(Work(About.cron_job, ("ns", "c"))).changes() == []


def test_slots_of_jobs_are_not_believed_when_they_lie_in_the_future() -> None:
    clock = Clock("2026-01-01T00:30:00Z")
    clock.wait(at("2026-01-01T01:00:10Z"))
    late = at("2036-01-01T00:00:00Z")
    first = clock.objects[JOBS]["ns", named("2026-01-01T01:00:00Z")]["metadata"]
    marks = {"volcano.sh/cronjob-scheduled-timestamp": datetime.fromtimestamp(late, UTC).isoformat()}
    meta = {
        "name": f"c-{late // 60}",
        "namespace": "ns",
        "annotations": marks,
        "ownerReferences": first["ownerReferences"],
    }
    clock.store(JOBS, {"metadata": meta, "spec": {}})
    clock.wait(at("2026-01-01T02:00:10Z"))
    assert clock.status()["lastScheduleTime"] == "2026-01-01T02:00:00Z"


def stored(schedule: str = "* * * * *", **spec: Any) -> CronJob:
    value = cron_job(schedule, **spec)
    return read(CronJob, {**value, "metadata": {**value["metadata"], "creationTimestamp": stamp(0)}})


@pytest.mark.parametrize(
    ("since", "now", "slot", "many"),
    [(0, 59, None, False), (0, 60, 60, False), (60, 119, None, False), (0, 6000, 6000, False), (0, 6060, 6060, True)],
)
def test_the_latest_slot_after_a_time_is_due(since: int, now: int, slot: int | None, many: bool) -> None:
    found = due(one := stored(), schedule_of(one), since, now)
    assert (found.slot, found.many) == (slot, many)


@pytest.mark.parametrize(("deadline", "slot"), [(29, None), (30, None), (31, 600)])
def test_a_slot_as_old_as_the_deadline_is_missed(deadline: int, slot: int | None) -> None:
    one = stored("*/10 * * * *", startingDeadlineSeconds=deadline)
    assert due(one, schedule_of(one), 0, 630).slot == slot


def test_a_status_says_nothing_of_times_that_have_not_come() -> None:
    clock = Clock("2026-01-01T00:59:00Z")
    assert set(clock.objects[CRON_JOBS]["ns", "c"].get("status", {})) == set()
    clock.wait(at("2026-01-01T01:00:01Z"))
    status = clock.objects[CRON_JOBS]["ns", "c"]["status"]
    assert (status["lastScheduleTime"], "lastSuccessfulTime" in status) == ("2026-01-01T01:00:00Z", False)
    [name] = clock.names()
    body = clock.objects[JOBS]["ns", name]
    meta = {"name": "by-hand", "namespace": "ns", "ownerReferences": body["metadata"]["ownerReferences"]}
    clock.store(JOBS, {"metadata": meta, "spec": body["spec"]})
    clock.manager.ready[Work(About.cron_job, ("ns", "c"))] = None
    clock.settle()
    assert [text for text in clock.told("OrphanedJob") if "by-hand" in text]
    assert clock.objects[CRON_JOBS]["ns", "c"]["status"]["lastScheduleTime"] == "2026-01-01T01:00:00Z"
    clock.end(name)
    clock.manager.ready[Work(About.cron_job, ("ns", "c"))] = None
    clock.settle()
    assert clock.objects[CRON_JOBS]["ns", "c"]["status"]["lastSuccessfulTime"] == "2026-01-01T01:00:01Z"


def test_of_ended_jobs_the_oldest_go_in_whatever_order_they_are_told() -> None:
    clock = Clock("2026-01-01T00:00:30Z", suspend=True, successfulJobsHistoryLimit=1)
    uid = clock.objects[CRON_JOBS]["ns", "c"]["metadata"]["uid"]
    owners = [
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "name": "c", "uid": uid, "controller": True}
    ]
    for created, name in ((30, "late"), (10, "b"), (10, "a"), (20, "between")):
        meta = {"name": name, "namespace": "ns", "creationTimestamp": stamp(created), "ownerReferences": owners}
        state = {"phase": "Completed", "lastTransitionTime": stamp(created)}
        clock.store(JOBS, {"metadata": meta, "spec": {"tasks": [task()]}, "status": {"state": state}})
    clock.settle()
    assert [one.name for one in clock.writes if isinstance(one, Delete)] == ["a", "b", "between"]
    assert clock.names() == ["late"]


@pytest.mark.parametrize("spec", [{"schedule": "x"}, {"timeZone": "x"}])
def test_what_cannot_be_planned_is_looked_at_again(spec: dict[str, Any]) -> None:
    clock = Clock("2026-01-01T00:00:30Z", **spec)
    [when] = clock.later.values()
    assert when - clock.now == LOOK_AGAIN


@pytest.mark.parametrize("stamped", ["soon", "", None])
def test_a_job_whose_time_cannot_be_read_was_not_made_by_the_schedule(stamped: str | None) -> None:
    clock = Clock("2026-01-01T00:59:00Z")
    clock.wait(at("2026-01-01T01:00:10Z"))
    [name] = clock.names()
    body = clock.objects[JOBS]["ns", name]
    notes = {} if stamped is None else {"volcano.sh/cronjob-scheduled-timestamp": stamped}
    owners = body["metadata"]["ownerReferences"]
    meta = {"name": f"{name}0", "namespace": "ns", "annotations": notes, "ownerReferences": owners}
    clock.store(JOBS, {"metadata": meta, "spec": body["spec"]})
    clock.settle()
    assert [text for text in clock.told("OrphanedJob") if f"{name}0" in text]
    assert clock.active() == [name]


def test_an_entry_that_names_a_job_made_again_is_dropped_and_told() -> None:
    clock = Clock("2026-01-01T00:59:00Z")
    clock.wait(at("2026-01-01T01:00:10Z"))
    [name] = clock.names()
    status = clock.objects[CRON_JOBS]["ns", "c"]["status"]
    actual, entry = status["active"][0]["uid"], {**status["active"][0], "uid": "old"}
    clock.change(CRON_JOBS, "c", {"status": {"active": [entry]}})
    clock.settle()
    text = f'Active job reference "{name}" points to a different UID (expected: old, actual: {actual})'
    assert list(clock.told("StaleReference")) == [text]
    assert [one["uid"] for one in clock.status()["active"]] == [actual]


def test_a_job_of_the_slots_name_without_an_owner_stands_in_the_way() -> None:
    clock = Clock("2026-01-01T00:59:30Z")
    slot = at("2026-01-01T01:00:00Z")
    name = named("2026-01-01T01:00:00Z")
    clock.store(JOBS, {"metadata": {"name": name, "namespace": "ns"}, "spec": {"tasks": [task()]}})
    clock.wait(slot + 1.0)
    assert set(clock.told("ForeignJob")) == {
        f"Job {name} exists but is not owned by this CronJob (current owner: none)"
    }
    assert not [one for one in clock.writes if isinstance(one, Create)]


def test_a_job_that_has_ended_hinders_none_of_the_slot_at_which_that_is_seen() -> None:
    clock = Clock("2026-01-01T00:59:59Z", concurrencyPolicy="Forbid")
    clock.wait(at("2026-01-01T01:00:10Z"))
    [first] = clock.names()
    clock.now = float(at("2026-01-01T02:00:00Z"))
    clock.end(first)
    assert clock.names() == [first, named("2026-01-01T02:00:00Z")]
    assert "ForbidConcurrent" not in clock.reasons()


@pytest.mark.parametrize(
    ("now", "after"),
    [("2026-01-01T00:30:00Z", 1800.1), ("2026-01-01T00:59:59Z", 1.1), ("2026-01-01T01:00:00Z", 1.0)],
)
def test_the_next_look_is_a_moment_after_the_slot_or_soon_after_a_job_was_made(now: str, after: float) -> None:
    made = cron_job()
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:10:00Z"}
    found = Look(read(CronJob, made), Cluster(ONLY).manager.world, 0, float(at(now))).outcome()
    assert found.after == pytest.approx(after)


def test_the_oldest_jobs_beyond_a_limit_are_surplus_whatever_their_order() -> None:
    def ended(name: str, created: str) -> Job:
        meta = {"name": name, "namespace": "ns", "creationTimestamp": created}
        return read(Job, {"metadata": meta, "status": {"state": {"phase": "Completed"}}})

    hours = {"new": "03", "b": "01", "a": "01", "old": "00"}
    own = [ended(name, f"2026-01-01T{hour}:00:00Z") for name, hour in hours.items()]
    for limit, names in ((3, ["old"]), (2, ["old", "a"]), (4, [])):
        found = _surplus(read(CronJob, cron_job(successfulJobsHistoryLimit=limit)), own)
        assert [job.metadata.name for job in found] == names
