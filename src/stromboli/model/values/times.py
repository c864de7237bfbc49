"""Times as Kubernetes writes them (RFC 3339)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Final

from stromboli.errors import ManifestError

_SHAPE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_ZERO: Final = -62135596800
"""The first second of the year 1, which stands for "no time" in Kubernetes' programs."""


def stamp(seconds: float) -> str:
    """A time, in seconds since 1970, as Kubernetes writes it; fractions are dropped."""
    return _stamp(floor(seconds))


@lru_cache(maxsize=256)
def _stamp(whole: int) -> str:  # what is written at once bears the same times
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> float:
    """Seconds since 1970 of an ISO 8601 time, in UTC unless it says otherwise.  Raises ValueError."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def seconds(text: str | None, path: str) -> int:
    """Whole seconds since 1970 of an RFC 3339 time; 0 for an absent one.

    Raises :class:`~stromboli.errors.ManifestError` naming the field ``path``.
    """
    if not text:
        return 0
    found = _seconds(text)
    if found is None:
        raise ManifestError(f"{text[:40]!r} is not a time; write e.g. 2024-05-01T12:00:00Z", path=path)
    return found


@lru_cache(maxsize=1 << 16)
def _seconds(text: str) -> int | None:
    if not _SHAPE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper()[:19] + _zone(text))
    except ValueError:
        return None
    since = int(moment.timestamp())
    return 0 if since == _ZERO else since


def _zone(text: str) -> str:
    return "+00:00" if text[-1] in "Zz" else text[-6:]
