"""Actions that policies put off, and what calls them off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from stromboli.api.batch import ON_EVICTED, ON_FAILED, ON_PENDING, ON_RUNNING, OUT_OF_SYNC
from stromboli.api.bus import (
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    SYNC_JOB,
)
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.world import Key


class Timer(NamedTuple):
    """An action that is due at a time (seconds since 1970), and what it was put off for."""

    due: float
    request: Request


_SAME: Final[dict[str, Callable[[Request, Request], bool]]] = {
    RESTART_TASK: lambda done, late: done.task == late.task,
    RESTART_POD: lambda done, late: done.pod == late.pod,
    RESTART_PARTITION: lambda done, late: (done.task, done.partition) == (late.task, late.partition),
}
"""Whether what was done is at the level of what was put off, for actions that concern a part of the job."""


def _always(done: Request, late: Request) -> bool:  # what concerns the whole job concerns each of its pods
    return done is not late


class Timers:
    """All actions that wait for their time, by job and pod."""

    def __init__(self) -> None:
        self._timers: dict[Key, dict[str, Timer]] = {}

    def add(self, job: Key, request: Request, action: str, due: float) -> bool:
        """Put ``action`` off until ``due``; False when it waits already."""
        of_job = self._timers.setdefault(job, {})
        known = of_job.get(request.pod)
        if known is not None and known.request.action == action:
            return False
        of_job[request.pod] = Timer(due, request._replace(action=action))
        return True

    def heard(self, job: Key, request: Request) -> None:
        """Call off what an event of a pod makes pointless: it is pending no more, or runs again.

        ``OutOfSync`` is no event of a pod's life: the scheduler says why it waits, for instance.
        """
        waiting = self._timers.get(job, {}).get(request.pod)
        if waiting is None or not request.pod or waiting.request.pod_uid != request.pod_uid:
            return
        reason = waiting.request.event
        started = reason == ON_PENDING and request.event not in (ON_PENDING, OUT_OF_SYNC)
        recovered = reason in (ON_FAILED, ON_EVICTED) and request.event == ON_RUNNING
        if started or recovered:
            self._drop(job, request.pod)

    def done(self, job: Key, action: str, request: Request) -> None:
        """Call off what an action has made pointless: all of the same level."""
        if action == SYNC_JOB:
            return
        same = _SAME.get(action, _always)
        for pod, timer in list(self._timers.get(job, {}).items()):
            if same(request, timer.request):
                self._drop(job, pod)

    def _drop(self, job: Key, pod: str) -> None:
        of_job = self._timers.get(job, {})
        of_job.pop(pod, None)
        if not of_job:
            self._timers.pop(job, None)

    def forget(self, job: Key) -> None:
        """A job is gone."""
        self._timers.pop(job, None)

    def due(self, now: float) -> list[tuple[Key, Request]]:
        """Take out what is due, the earliest first."""
        found = sorted(
            (timer.due, job, pod, timer.request)
            for job, timers in self._timers.items()
            for pod, timer in timers.items()
            if timer.due <= now
        )
        for _, job, pod, _ in found:
            self._drop(job, pod)
        return [(job, request) for _, job, _, request in found]

    def next(self) -> float | None:
        """When the next one is due; None when none waits."""
        return min((timer.due for timers in self._timers.values() for timer in timers.values()), default=None)
