"""Cron schedules: five fields or a descriptor, in a time zone, with the meaning that Kubernetes' CronJobs give them.

A slot is each moment whose wall clock matches the fields.  A time that the clocks skip has no slot, one that they
show twice has two.  Libraries for Python follow Vixie's cron instead: they move or drop such slots, take ``7`` for
Sunday and read ``*/2`` as an unrestricted day; hence this module.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from stromboli.errors import DurationError, ScheduleError
from stromboli.model.values.duration import parse as parse_duration

LONGEST: Final = 1024
"""Characters of a schedule; longer ones are refused."""

HORIZON: Final = 5 * 366 * 86400
"""Seconds beyond which no slot is looked for: a schedule without one for five years never comes."""

_DAY: Final = 86400
_EVERY: Final = "@every "
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S*)\s+(.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"\+?[0-9]{1,9}", re.ASCII)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Schedule(Protocol):
    """When something is due.  Times are whole seconds since 1970."""

    def following(self, after: int) -> int | None:
        """The first slot after ``after``; None if none comes within :data:`HORIZON`."""

    def latest(self, after: int, until: int) -> int | None:
        """The last slot later than ``after`` and not later than ``until``, ``after`` being a slot or a beginning."""


@dataclass(frozen=True, slots=True)
class Every:
    """A slot each so many seconds, counted from the previous one or from the beginning."""

    seconds: int

    def following(self, after: int) -> int | None:
        """See :meth:`Schedule.following`."""
        return after + self.seconds if self.seconds <= HORIZON else None

    def latest(self, after: int, until: int) -> int | None:
        """See :meth:`Schedule.latest`."""
        times = (until - after) // self.seconds
        return after + times * self.seconds if times > 0 else None


class _Stretch(NamedTuple):
    """The part of a day, by the wall clock, in which clocks are not changed: seconds from ``start`` up to ``end``."""

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class Cron:
    """A slot whenever the wall clock of ``zone`` shows one of ``minutes`` (of the day) on a day that matches.

    Weekdays count from Sunday, 0.  If ``either``, a day matches by its number or its weekday; else it needs both.
    """

    minutes: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    zone: tzinfo = field(default=UTC)

    def following(self, after: int) -> int | None:
        """See :meth:`Schedule.following`."""
        for stretch in self._stretches(after + 1):
            if found := self._slots(stretch, after + 1, stretch.end):
                return found[0]
        return None

    def latest(self, after: int, until: int) -> int | None:
        """See :meth:`Schedule.latest`."""
        for stretch in self._stretches(until, back=True):
            if found := self._slots(stretch, after + 1, until + 1):
                return found[-1]
            if stretch.start <= after:
                break
        return None

    def _slots(self, stretch: _Stretch, low: int, high: int) -> list[int]:
        """All slots of a stretch from ``low`` up to, and without, ``high``."""
        wall = datetime.fromtimestamp(stretch.start + stretch.offset, UTC)
        if not self._is_day(wall):
            return []
        midnight = stretch.start - (wall.hour * 3600 + wall.minute * 60 + wall.second)
        first = -((midnight - max(low, stretch.start)) // 60)
        beyond = -((midnight - min(high, stretch.end)) // 60)
        chosen = self.minutes[bisect_left(self.minutes, first) : bisect_right(self.minutes, beyond - 1)]
        return [midnight + minute * 60 for minute in chosen]

    def _is_day(self, wall: datetime) -> bool:
        by_number, by_weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return wall.month in self.months and (by_number or by_weekday if self.either else by_number and by_weekday)

    def _stretches(self, moment: int, *, back: bool = False) -> Iterator[_Stretch]:
        """The stretches from that of ``moment`` on, or back from it, as far as :data:`HORIZON`."""
        try:
            for _ in range(2 * HORIZON // _DAY):
                stretch = self._stretch(moment)
                yield stretch
                moment = stretch.start - 1 if back else stretch.end
        except (OverflowError, ValueError):  # years that no calendar has
            return

    def _stretch(self, moment: int) -> _Stretch:
        offset = self._offset(moment)
        midnight = moment - (moment + offset) % _DAY
        start, last = self._edge(moment, midnight, offset), self._edge(moment, midnight + _DAY - 1, offset)
        return _Stretch(start, last + 1, offset)

    def _edge(self, moment: int, far: int, offset: int) -> int:
        """The second nearest to ``far`` up to which, from ``moment``, the clocks keep their offset."""
        if self._offset(far) == offset:
            return far
        while abs(far - moment) > 1:
            middle = (far + moment) // 2
            moment, far = (middle, far) if self._offset(middle) == offset else (moment, middle)
        return moment

    def _offset(self, moment: int) -> int:
        delta = datetime.fromtimestamp(moment, self.zone).utcoffset()
        return int(delta.total_seconds()) if delta else 0


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name; UTC for an empty one.  Raises :class:`~stromboli.errors.ScheduleError`."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name[:LONGEST])
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name[:63]}") from None


@lru_cache(maxsize=1024)
def parse_schedule(text: str, zone: str = "") -> Schedule:
    """The schedule that ``text`` spells, by the clocks of ``zone`` unless it begins with ``TZ=`` or ``CRON_TZ=``.

    Raises :class:`~stromboli.errors.ScheduleError` saying what cannot be read.
    """
    if not text:
        raise ScheduleError("empty spec string")
    if len(text) > LONGEST:
        raise ScheduleError(f"it has more than {LONGEST} characters")
    if stated := _ZONE.fullmatch(text):
        zone, text = stated.groups()
    where = zone_named(zone)
    if text.startswith(_EVERY):
        return _every(text)
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    return _fields(_DESCRIPTORS.get(text, text), where)


def _every(text: str) -> Every:
    try:
        nanoseconds = parse_duration(text.removeprefix(_EVERY))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from error
    return Every(max(nanoseconds // 10**9, 1))


def _fields(text: str, zone: tzinfo) -> Cron:
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    read = [_field(part, bounds) for part, bounds in zip(parts, _BOUNDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return Cron(
        tuple(sorted(hour * 60 + minute for hour in hours for minute in minutes)),
        days, months, weekdays, not (any_day or any_weekday), zone,
    )  # fmt: skip


class _Bounds(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = {}


def _named(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_BOUNDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, _named("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Bounds(0, 6, _named("sun mon tue wed thu fri sat", 0)),
)


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """The numbers of a field, and whether it leaves them open."""
    read = [_range(part, bounds) for part in text.split(",") if part]
    return frozenset(number for numbers, _ in read for number in numbers), any(is_open for _, is_open in read)


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, _, rest = text.partition("/")
    low, dash, high = span.partition("-")
    is_open = low in ("*", "?")
    if "-" in high:
        raise ScheduleError(f"too many hyphens: {text}")
    if "/" in rest:
        raise ScheduleError(f"too many slashes: {text}")
    first = bounds.low if is_open else _number(low, bounds)
    last = bounds.high if is_open or (not dash and "/" in text) else _number(high, bounds) if dash else first
    step = _number(rest, _Bounds(0, 0)) if "/" in text else 1
    _check(text, first, last, step, bounds)
    return range(first, last + 1, step), is_open and step == 1


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    if named is not None:
        return named
    if not _NUMBER.fullmatch(text):
        raise ScheduleError(f"failed to parse int from {text}")
    return int(text)


def _check(text: str, first: int, last: int, step: int, at: _Bounds) -> None:
    for holds, problem in (
        (first >= at.low, f"beginning of range ({first}) below minimum ({at.low})"),
        (last <= at.high, f"end of range ({last}) above maximum ({at.high})"),
        (first <= last, f"beginning of range ({first}) beyond end of range ({last})"),
        (step > 0, "step of range should be a positive number"),
    ):
        if not holds:
            raise ScheduleError(f"{problem}: {text}")
