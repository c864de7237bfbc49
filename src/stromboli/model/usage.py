"""How loaded nodes are, as a monitoring system measured it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

PERIOD: Final = "10m"
"""The period over which averages are taken."""

FRESH: Final = 300.0
"""Seconds after which a sample says nothing any more."""


class NodeUsage(msgspec.Struct, frozen=True):
    """One sample of a node: when it was taken (seconds since 1970), and average loads in percent by period (``10m``).

    Loads may exceed 100; a period that was not measured is missing.
    """

    time: float
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}

    def is_fresh(self, now: float) -> bool:
        """Whether the sample is at most :data:`FRESH` seconds old."""
        return now - self.time <= FRESH


def usage_of(names: Iterable[str], usage: Mapping[str, NodeUsage]) -> dict[str, NodeUsage]:
    """The samples in ``usage`` of the nodes ``names``, in their order."""
    return {name: usage[name] for name in filter(usage.__contains__, names)} if usage else {}
