"""Several schedulers that divide pods and nodes by consistent hashing: MULTI_SCHEDULER_ENABLE."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Final
from zlib import crc32

import msgspec

from stromboli.cluster.decoding.ours import everything
from stromboli.errors import ConfigError

POINTS: Final = 20
"""Points of each member on the ring."""
MOST: Final = 1000
"""Schedulers, at most."""

_ON, _OFF = (
    frozenset({"1", "t", "T", "TRUE", "true", "True"}),
    frozenset({"", "0", "f", "F", "FALSE", "false", "False"}),
)


class Replica(msgspec.Struct, frozen=True):
    """One of ``count`` schedulers, called ``name``; the others' names end in other numbers."""

    name: str
    count: int


class HashRing:
    """Which of the schedulers ``<base>-0`` to ``<base>-<n-1>`` a key belongs to.

    Each has 20 points, the CRC-32 of a number and its name; a key belongs to the first point above its own CRC-32.
    """

    def __init__(self, replica: Replica) -> None:
        self._name, base = replica.name, replica.name.rpartition("-")[0]
        members = (f"{base}-{number}" for number in range(replica.count))
        self._owners = {crc32(f"{point}{name}".encode()): name for name in members for point in range(POINTS)}
        self._points = sorted(self._owners)

    def owner(self, key: str) -> str:
        """The scheduler that a key belongs to."""
        place = bisect_right(self._points, crc32(key.encode()))
        return self._owners[self._points[place % len(self._points)]]

    def owns(self, key: str) -> bool:
        """Whether a key is this scheduler's."""
        return self.owner(key) == self._name


def owned_by(replica: Replica | None) -> Callable[[str], bool]:
    """Which keys a replica looks after; one that divides with none, all."""
    return HashRing(replica).owns if replica else everything


def replica_of(environment: Mapping[str, str]) -> Replica | None:
    """Which replica MULTI_SCHEDULER_ENABLE, SCHEDULER_NUM and SCHEDULER_POD_NAME make of us.  Raises ConfigError."""
    enabled = environment.get("MULTI_SCHEDULER_ENABLE", "")
    if enabled in _OFF:
        return None
    name, number = environment.get("SCHEDULER_POD_NAME", ""), environment.get("SCHEDULER_NUM", "")
    if enabled not in _ON:
        raise ConfigError(f"MULTI_SCHEDULER_ENABLE={enabled[:20]!r} is neither true nor false")
    if not (number.isascii() and number.isdecimal() and len(number) <= 4 and 0 < int(number) <= MOST):
        raise ConfigError(
            f"SCHEDULER_NUM={number[:20]!r}: with MULTI_SCHEDULER_ENABLE a number from 1 to {MOST} is needed"
        )
    base, dash, own = name.rpartition("-")
    if not dash or not base or own not in {str(each) for each in range(int(number))}:
        problem = f"is to be a name and its number below {number}, such as volcano-scheduler-0"
        raise ConfigError(f"SCHEDULER_POD_NAME={name[:80]!r} {problem}")
    return Replica(name, int(number))
