"""How long a batch Job waits before it makes pods in the place of failed ones: 10 s, twice as long after each failure.

As Kubernetes has it: failures count since the last success, and at most six minutes are waited for since the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from stromboli.cluster.body import Body, part, seconds_of

FIRST: Final = 10.0
LONGEST: Final = 360.0
"""Seconds."""


class Failures(NamedTuple):
    """How many pods have failed since the last success, and when the last one did, in seconds since 1970."""

    number: int = 0
    last: float = 0.0

    def with_ended(self, pods: Iterable[tuple[bool, Body]], now: float) -> Failures:
        """What they are after ``pods`` have ended, each with whether it has failed."""
        found = self
        for moment, failed in sorted((_end(pod, now), failed) for failed, pod in pods):
            found = Failures(found.number + 1, moment) if failed else Failures()
        return found

    @property
    def over(self) -> float:
        """From when on the Job may have new pods, in seconds since 1970."""
        doubled = min(self.number - 1, 10)  # longer than the longest by then
        return self.last + min(FIRST * 2**doubled, LONGEST) if self.number else 0.0


def _end(pod: Body, now: float) -> float:
    """When a pod's last container has ended, ``now`` where it does not say so."""
    states = (part(one, "state", "terminated") or {} for one in part(pod, "status", "containerStatuses") or ())
    ends = [seconds_of(one.get("finishedAt")) for one in states]
    known = [end for end in ends if end is not None]
    return min(max(known, default=now), now)
