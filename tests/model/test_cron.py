"""Schedules: what they spell, and when they come, where clocks are changed too."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import ScheduleError
from stromboli.model.values.cron import HORIZON, Cron, parse_schedule

NEW_YORK, BERLIN, LORD_HOWE = "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp())


def said(moment: int | None, zone: str) -> str:
    """A moment by the clocks of a zone."""
    return "" if moment is None else datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%m-%d %H:%M%z")


def coming(text: str, zone: str, since: str, count: int) -> list[str]:
    """The next slots, as the clocks of the zone show them."""
    schedule, moment, found = parse_schedule(text, zone), at(since), []
    for _ in range(count):
        moment = schedule.following(moment) or 0
        found.append(said(moment, zone))
    return found


@pytest.mark.parametrize(
    ("text", "zone", "since", "slots"),
    [
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00:00-05:00", ["03-09 02:30-0400", "03-10 02:30-0400"]),  # skipped
        ("0 * * * *", NEW_YORK, "2026-03-08T00:30:00-05:00", ["03-08 01:00-0500", "03-08 03:00-0400"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00:00-04:00",
         ["11-01 01:30-0400", "11-01 01:30-0500", "11-02 01:30-0500"]),  # shown twice
        ("0 * * * *", NEW_YORK, "2026-11-01T00:30:00-04:00",
         ["11-01 01:00-0400", "11-01 01:00-0500", "11-01 02:00-0500"]),
        ("30 2 * * *", BERLIN, "2026-03-28T12:00:00+01:00", ["03-30 02:30+0200"]),
        ("30 2 * * *", BERLIN, "2026-10-24T12:00:00+02:00", ["10-25 02:30+0200", "10-25 02:30+0100"]),
        ("*/30 1-2 * * *", LORD_HOWE, "2026-10-04T00:00:00+10:30",  # clocks jump by half an hour
         ["10-04 01:00+1030", "10-04 01:30+1030", "10-04 02:30+1100"]),
        ("TZ=Asia/Tokyo 0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00+00:00", ["01-02 05:30+0530"]),
        ("CRON_TZ=Asia/Tokyo @daily", "Asia/Tokyo", "2026-01-01T00:00:00+00:00", ["01-02 00:00+0900"]),
        ("0 0 13 * fri", "UTC", "2026-02-01T00:00:00+00:00", ["02-06 00:00+0000", "02-13 00:00+0000"]),  # either
        ("0 0 13 * ?", "UTC", "2026-02-01T00:00:00+00:00", ["02-13 00:00+0000", "03-13 00:00+0000"]),
        ("0 0 */2 * fri", "UTC", "2026-02-01T00:00:00+00:00", ["02-03 00:00+0000", "02-05 00:00+0000"]),
        ("0 0 */1 * fri", "UTC", "2026-02-01T00:00:00+00:00", ["02-06 00:00+0000", "02-13 00:00+0000"]),
        ("10/20 0 1,1 JAN-feb *", "UTC", "2026-01-01T00:00:00+00:00", ["01-01 00:10+0000", "01-01 00:30+0000"]),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00+00:00", ["02-29 00:00+0000"]),
        ("@every 90m", "UTC", "2026-01-01T00:00:07+00:00", ["01-01 01:30+0000", "01-01 03:00+0000"]),
        ("@weekly", "UTC", "2026-01-01T00:00:00+00:00", ["01-04 00:00+0000"]),
    ],
)  # fmt: skip
def test_when_schedules_come(text: str, zone: str, since: str, slots: list[str]) -> None:
    assert coming(text, zone, since, len(slots)) == slots


@pytest.mark.parametrize("zone", [NEW_YORK, BERLIN, LORD_HOWE, "America/Sao_Paulo", "UTC"])
def test_a_year_of_each_zone_has_the_minutes_that_its_clocks_show(zone: str) -> None:
    """What slots are is said once more, minute by minute, over the days on which clocks are changed."""
    schedule = parse_schedule("*/15 1-3 * * 0,6", zone)
    where, moment, end = ZoneInfo(zone), at("2018-01-01T00:00:00+00:00"), at("2019-01-01T00:00:00+00:00")
    shown = [
        minute
        for minute in range(moment, end, 900)
        if (wall := datetime.fromtimestamp(minute, where)).isoweekday() in (6, 7) and 1 <= wall.hour <= 3
    ]
    found = []
    while (moment := schedule.following(moment) or end) < end:
        found.append(moment)
    assert found == shown


@pytest.mark.law("the latest slot of a span is the last that follows its start")
@given(
    st.sampled_from(["*/20 1-3 * * *", "30 2 * * sun", "5 4 31 * *", "@every 50m"]),
    st.sampled_from([NEW_YORK, BERLIN, LORD_HOWE]),
    st.integers(at("2026-01-01T00:00:00+00:00"), at("2027-01-01T00:00:00+00:00")),
    st.integers(0, 40 * 3600),
)
def test_latest_and_following_agree(text: str, zone: str, after: int, long: int) -> None:
    schedule, last, moment = parse_schedule(text, zone), None, after
    while (moment := schedule.following(moment) or HORIZON**2) <= after + long:
        last = moment
    assert schedule.latest(after, after + long) == last


def test_what_never_comes_is_known_within_bounds() -> None:
    schedule = parse_schedule("0 0 31 2 *", NEW_YORK)
    start = at("2026-01-01T00:00:00+00:00")
    assert schedule.following(start) is None
    assert schedule.latest(0, start) is None
    assert parse_schedule(", * * * *").following(start) is None
    assert parse_schedule("@every 200000h").following(start) is None
    assert parse_schedule("* * * * *").following(253_402_300_799 - 30) is None  # the end of all calendars


def test_every_has_a_shortest_time() -> None:
    assert parse_schedule("@every 10ms").following(100) == 101
    assert parse_schedule("@every 2500ms").latest(100, 107) == 106


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 0 * * * *", "expected exactly 5 fields, found 6"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* 5-1 * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/2/3 * * * *", "too many slashes: */2/3"),
        ("x * * * *", "failed to parse int from x"),
        ("١ * * * *", "failed to parse int from ١"),
        ("-1 * * * *", "failed to parse int from "),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every soon", "failed to parse duration @every soon"),
        ("TZ=Nowhere/Land * * * * *", "unknown time zone Nowhere/Land"),
        ("TZ=../../etc/passwd * * * * *", "unknown time zone ../../etc/passwd"),
        ("TZ=UTC", "expected exactly 5 fields, found 1"),
        ("1," * 600 + " * * * *", "it has more than 1024 characters"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, problem: str) -> None:
    with pytest.raises(ScheduleError, match="^" + re.escape(problem)):
        parse_schedule(text)


@given(st.text(alphabet="0123456789*/,-?@ TZ=everyhmsun", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except ScheduleError:
        return
    if isinstance(schedule, Cron):
        assert (schedule.following(at("2026-01-01T00:00:00+00:00")) or HORIZON) % 60 == 0


def test_slots_are_whole_seconds_where_offsets_are_not_whole_minutes() -> None:
    """Liberia's clocks were 44 minutes and 30 seconds behind until 1972."""
    found = parse_schedule("0 12 * * *", "Africa/Monrovia").following(at("1971-06-01T00:00:00+00:00")) or 0
    assert datetime.fromtimestamp(found, UTC) == datetime(1971, 6, 1, 12, 44, 30, tzinfo=UTC)
