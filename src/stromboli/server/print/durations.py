"""Durations as kubectl's columns show them: ``45s``, ``3m20s``, ``2d5h``, ``400d``."""

from __future__ import annotations

from typing import Final

from stromboli.cluster.body import seconds_of

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_YEAR: Final = 365 * _DAY

_FORMS: Final = (
    (2 * _MINUTE, (("s", 1),)),
    (10 * _MINUTE, (("m", _MINUTE), ("s", 1))),
    (3 * _HOUR, (("m", _MINUTE),)),
    (8 * _HOUR, (("h", _HOUR), ("m", _MINUTE))),
    (2 * _DAY, (("h", _HOUR),)),
    (8 * _DAY, (("d", _DAY), ("h", _HOUR))),
    (2 * _YEAR, (("d", _DAY),)),
    (8 * _YEAR, (("y", _YEAR), ("d", _DAY))),
)
"""Up to which length which units are shown; a second unit of zero is left out."""


def human(seconds: float) -> str:
    """A duration in seconds with one or two units."""
    rest = int(seconds)
    if rest < -1:
        return "<invalid>"
    rest = max(rest, 0)
    units = next((units for limit, units in _FORMS if rest < limit), (("y", _YEAR),))
    shown: list[str] = []
    for suffix, size in units:
        count, rest = divmod(rest, size)
        if count or not shown:
            shown.append(f"{count}{suffix}")
    return "".join(shown)


def age(stamp: str | None, now: float) -> str:
    """How long ago a time was; ``<unknown>`` without one."""
    then = seconds_of(stamp)
    return "<unknown>" if then is None else human(now - then)
