"""Locks of nodes, which serialise pods with devices: annotations with the time at which they were taken."""

from __future__ import annotations

from typing import Final

from stromboli.errors import ManifestError
from stromboli.model.values.times import seconds

LOCKED_FOR: Final = 300.0
"""Seconds after which a node's lock no longer counts."""
LOCKED: Final = "node {node} has been locked within 5 minutes"


def is_fresh(text: str, now: float) -> bool:
    """Whether a lock taken at ``text`` still counts at ``now`` (seconds since 1970); text that is no time does not."""
    try:
        return now - seconds(text, "") < LOCKED_FOR
    except ManifestError:
        return False
