"""The status of a job after a look at it."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from stromboli.api.batch import Job, JobCondition, JobStatus
from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import Change, Json, Patch, builtins, difference
from stromboli.controllers.jobs.counting import Counts
from stromboli.model.values.duration import format_duration
from stromboli.model.values.times import seconds, stamp

NANOSECONDS = 10**9
COUNTS: Final = frozenset({"pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount"})
"""The parts of a status that say how many pods are how."""
COUNTED_WITHIN: Final = 2.0
"""Seconds for which a status may count pods as they were: pods come and start in numbers, and are counted together."""
COUNTED_AT_LATEST: Final = 10.0
"""Seconds after which pods are counted even of a job that still makes some."""
COUNTED_REST: Final = 0.25
"""Seconds for which a job is not looked at again after a look that did nothing but put a count of its pods off."""
WRITTEN: Final = "lastTransitionTime"
"""The part of a status' state that says when it was written."""
LONGEST_MESSAGE: Final = 1024
"""Characters of a message that a status keeps; others' words may stand in it."""


class Obstacle(NamedTuple):
    """What keeps a job from going on: a word and a sentence; both empty when nothing does."""

    reason: str = ""
    message: str = ""


CLEAR: Final = Obstacle()


class _Outdated(NamedTuple):
    """A status that counts pods as they were: when that was seen first, and first while the job made no more pods."""

    status: JobStatus
    first: float
    complete: float | None


class OutdatedCounts:
    """Which statuses of jobs count pods as they were, and since when: a status is not written for each pod."""

    def __init__(self) -> None:
        self._known: dict[str, _Outdated] = {}

    def pause(self, job: Job, patch: Json, now: float, *, makes_pods: bool) -> float:
        """Seconds for which a ``patch`` of the status of ``job`` is put off; 0: it is written, or empty.

        It is put off only if it says how many pods are how, and nothing else; where pods are still to be made, until
        they have come, but not for ever.
        """
        uid = job.metadata.uid
        if not is_count(patch):
            self.forget(uid)
            return 0.0
        known = self._known.get(uid)
        if known is None or known.status != job.status:
            known = _Outdated(job.status, now, None)
        since = now if makes_pods or known.complete is None else known.complete
        self._known[uid] = known._replace(complete=None if makes_pods else since)
        left = min(since + COUNTED_WITHIN, known.first + COUNTED_AT_LATEST) - now
        return left if 0 < left <= COUNTED_WITHIN else 0.0

    def forget(self, uid: str) -> None:
        """The status of the job of ``uid`` is as its pods are, or the job is gone."""
        self._known.pop(uid, None)


def is_count(patch: Json) -> bool:
    """Whether a patch of a status says how many pods are how, and nothing else."""
    state = patch.get("state", {})
    return bool(patch) and patch.keys() <= COUNTS | {"state"} and isinstance(state, dict) and set(state) <= {WRITTEN}


def obstacle_of(job: Job) -> Obstacle:
    """What the status says of it."""
    return Obstacle(job.status.state.reason, job.status.state.message)


def with_obstacle(status: JobStatus, obstacle: Obstacle) -> JobStatus:
    """``status`` with its phase's state and condition saying what keeps the job back."""
    reason, message = obstacle.reason, obstacle.message[:LONGEST_MESSAGE]
    phase = status.state.phase
    conditions = tuple(
        replace(one, reason=reason, message=message) if one.status == phase else one for one in status.conditions
    )
    return replace(status, state=replace(status.state, reason=reason, message=message), conditions=conditions)


def status_after(job: Job, counts: Counts, phase: str, now: float) -> JobStatus:
    """The status of ``job`` with its pods as counted, in ``phase``; the time changes only where something else does."""
    old = job.status
    status = replace(
        old,
        min_available=job.spec.min_available,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count=counts.task_states(),
    )
    if phase != old.state.phase:
        status = replace(status, state=replace(old.state, phase=phase), conditions=_conditions(old, phase, now))
    return stamped(job, status, now)


def stamped(job: Job, status: JobStatus, now: float) -> JobStatus:
    """``status`` with the time of its writing, if it differs from the present one."""
    if status == job.status:
        return status
    return replace(status, state=replace(status.state, last_transition_time=stamp(now)))


def status_change(job: Job, obstacle: Obstacle, now: float) -> list[Change]:
    """What makes the status of ``job`` say what keeps it back, and nothing else; empty when it does."""
    status = stamped(job, with_obstacle(job.status, obstacle), now)
    patch = difference(builtins(job.status), builtins(status))
    meta = job.metadata
    return [Patch(JOBS, meta.namespace, meta.name, {"status": patch}, status=True)] if patch else []


def _conditions(old: JobStatus, phase: str, now: float) -> tuple[JobCondition, ...]:
    others = tuple(condition for condition in old.conditions if condition.status != phase)
    return (*others, JobCondition(status=phase, last_transition_time=stamp(now)))


def running_duration(job: Job, now: float) -> str:
    """How long a job has been there."""
    created = seconds(job.metadata.creation_timestamp, "metadata.creationTimestamp")
    return format_duration(max(int(now) - created, 0) * NANOSECONDS)
