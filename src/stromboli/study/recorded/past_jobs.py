"""Jobs of the past, pod by pod, and the other objects that came and went."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from stromboli.cluster.files.written import Manifest
from stromboli.model.podgroup import UPSTREAM, volcano_job

MAKING: Final = 5.0
"""Seconds that controllers may take to make a job's pods; a job that waits longer for them waits for its queue."""
LONE: Final = "pod/"
"""Begins the names of jobs that are one pod without a PodGroup: a PodGroup of the pod's name is another job."""


@dataclass
class Slot:
    """One pod of a job, and those that came in its place after evictions; times are seconds since 1970.

    ``pod`` is its manifest as first seen, with the node that it had last; the last of them had it from ``bound`` until
    ``ended``.  ``waits``: another is to come in the place of one that was evicted.  ``earlier`` is what was before the
    last of them, which came at ``last_came``; None where it is the first one.
    """

    uid: str
    pod: Manifest
    came: float
    bound: float | None = None
    ended: float | None = None
    evictions: int = 0
    waits: bool = False
    earlier: Slot | None = None
    last_came: float = 0.0

    def renew(self, uid: str, now: float) -> None:
        """Let pod ``uid`` take the place of the one that was evicted."""
        self.earlier = replace(self, waits=False, earlier=None)
        self.uid, self.last_came = uid, now
        self.waits, self.bound, self.ended = False, None, None

    @property
    def runtime(self) -> float | None:
        """Seconds from its last bind until its end; None for one that never had a node, or still has it."""
        return None if self.bound is None or self.ended is None else self.ended - self.bound


@dataclass
class PastJob:
    """A job: ``uid`` is its ``namespace/podgroup`` or ``namespace/pod/name``, ``group`` its PodGroup's manifest as
    first seen, ``started`` when ``least`` of its pods had nodes.

    ``admitted`` is when its PodGroup was, before it had pods; None: they did not wait for that.  ``before``: it was
    there when the history began; ``cancelled``: when it went without having started; ``unseen``: a
    part of it happened while nothing was recorded.
    """

    uid: str
    came: float
    group: Manifest
    queue: str
    owner: str
    least: int
    before: bool
    slots: dict[str, Slot] = field(default_factory=dict)
    started: float | None = None
    ended: float | None = None
    cancelled: float | None = None
    unseen: bool = False
    admitted: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended, or pods are to come in the place of evicted ones."""
        return self.ended is None or any(slot.waits for slot in self.slots.values())

    @property
    def evictions(self) -> int:
        """How many of its pods were evicted."""
        return sum(slot.evictions for slot in self.slots.values())


@dataclass
class GroupWithoutPods:
    """A PodGroup as it came, whose first pod has not come yet; when it was admitted, by the time of that cycle."""

    group: Manifest
    came: float | None = None
    admitted: float | None = None

    def made_at_once(self, now: float) -> bool:
        """Whether its pods, the first of which comes ``now``, waited for nothing but to be made."""
        return not self.group or (self.admitted is None and now - (self.came or now) <= MAKING)


@dataclass
class Changed:
    """An object other than a pod or a PodGroup that came, changed or went ``at`` (seconds since 1970)."""

    at: float
    object: Manifest
    stays: bool


def stem(name: str) -> str:
    """A name without the numbers and hashes at its end, as jobs that come again and again are named."""
    parts = volcano_job(name.removesuffix(UPSTREAM)).split("-")
    while len(parts) > 1 and any(sign.isdigit() for sign in parts[-1]):
        parts.pop()
    return "-".join(parts).rstrip("0123456789")
