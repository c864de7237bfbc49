"""What annotations and labels of pods and PodGroups say about how they are to be treated.

Values are read as Volcano's programs read them; what cannot be read counts as not said, as each function tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from stromboli.errors import DurationError
from stromboli.model.names import (
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    SLA_WAITING_TIME,
    SLA_WAITING_TIME_BARE,
)
from stromboli.model.values import duration

Texts = Mapping[str, str]

BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""Truth values by their texts, as Go's programs read them."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
ANY_ZONE: Final = "*"
"""What an annotation for a revocable zone says; other values count as none."""


def read_bool(text: str) -> bool | None:
    """A truth value as Go's programs read it (``1 t T TRUE true True`` and their opposites); None for other texts."""
    return BOOLEANS.get(text)


def read_int(text: str, bits: int) -> int | None:
    """A signed decimal number of so many bits; None for other texts."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def preemptable_of(annotations: Texts, labels: Texts, default: bool) -> bool:
    """Whether others may take this one's place: annotation, else label, else ``default``; unreadable means no."""
    text = annotations.get(PREEMPTABLE)
    if text is None:
        text = labels.get(PREEMPTABLE)
    return default if text is None else read_bool(text) is True


def revocable_zone_of(annotations: Texts) -> str:
    """``*`` when the annotation says so, or is absent while the annotation for preemptable says yes; else empty."""
    zone = annotations.get(REVOCABLE_ZONE)
    if zone is not None:
        return ANY_ZONE if zone == ANY_ZONE else ""
    return ANY_ZONE if read_bool(annotations.get(PREEMPTABLE, "")) else ""


def budget_of(annotations: Texts) -> tuple[str, str]:
    """(min available, max unavailable) of a job's disruption budget as written; the first one given wins."""
    if JDB_MIN_AVAILABLE in annotations:
        return annotations[JDB_MIN_AVAILABLE], ""
    return "", annotations.get(JDB_MAX_UNAVAILABLE, "")


def waiting_time_of(annotations: Texts) -> float | None:
    """Seconds after which a waiting job is to be served; None when neither spelling gives a positive duration."""
    for key in (SLA_WAITING_TIME, SLA_WAITING_TIME_BARE):
        try:
            waiting = duration.seconds(annotations.get(key, "0"))
        except DurationError:
            continue
        if waiting > 0:
            return waiting
    return None
