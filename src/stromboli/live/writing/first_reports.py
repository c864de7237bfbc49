"""Reports on pods that begin to wait and on gangs that are changing, held back until what they say lasts.

Pods of a gang are created one after the other, and a queue lets their PodGroup in a cycle later.  Without the moment
each pod would be written about several times, and an autoscaler would see pods that seem to need nodes.  The same holds
for the PodGroup: each cycle counts a few more of its pods that have arrived, or that run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from stromboli.errors import in_words
from stromboli.live.scheduler.context import Context
from stromboli.model.job import BINDING, BOUND, PENDING, Job
from stromboli.model.names import POD_GROUP_PENDING

DELAY: Final = 1.0
"""Seconds that reports are held back: the usual time between two cycles."""
LULL: Final = 3.0
"""Seconds without another pod of a gang after which its reports are made although pods are awaited."""
LONGEST: Final = 30.0
"""Seconds after which reports are made even of a gang whose pods still arrive."""

Report = Callable[[], None]


class Sort(Enum):
    """What a report is: of each sort the newest counts."""

    CONDITION = "condition of a pod"
    EVENT = "event of a pod"
    GROUP_STATUS = "status of a PodGroup"
    GROUP_EVENT = "event of a PodGroup that waits"


_OF_GROUPS: Final = (Sort.GROUP_STATUS, Sort.GROUP_EVENT)


class _Of(NamedTuple):
    sort: Sort
    key: str
    uid: str


@dataclass(slots=True, eq=False)
class _Held:
    """A report that is looked at when it is ``due``; ``awaited`` pods were since ``changed``."""

    of: _Of
    report: Report
    awaited: int
    changed: float
    end: float
    due: float = 0.0


class FirstReports:
    """Reports on pods of which nothing has been reported, and on gangs that are changing; :meth:`run` makes them.

    A gang that is let in awaits pods that have not arrived; for the status of its PodGroup, those too that have a node
    and do not run.
    While it awaits fewer and fewer, reports wait.  One is dropped where the pod has a node or is gone when it is due.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: dict[_Of, _Held] = {}
        self._queue: deque[_Held] = deque()  # all wait equally long, so they stand in the order in which they are due
        self._ready = asyncio.Event()

    def make(self, sort: Sort, key: str, uid: str, report: Report, *, at_once: bool = False) -> None:
        """Call ``report`` on pod or PodGroup ``key`` of ``uid``: later, where it may be outdated by then.

        With ``at_once`` it is not held back.  The newest of a ``sort`` takes the place of one that is held back.
        """
        of = _Of(sort, key, uid)
        awaited = None if at_once else self._awaited(of)
        if awaited is None:
            self._held.pop(of, None)
            report()
        elif of in self._held:
            self._held[of].report = report
        elif awaited or self._is_first(of):
            now = asyncio.get_running_loop().time()
            held = self._held[of] = _Held(of, report, awaited, now, now + LONGEST)
            self._wait(held)
        else:
            report()

    def drop(self) -> None:
        """Let go of all reports: the next leader finds the pods as they are."""
        self._queue.clear()
        self._held.clear()

    async def run(self) -> None:
        """Make reports when they are due, until cancelled."""
        while True:
            while not self._queue:
                self._ready.clear()
                await self._ready.wait()
            held = self._queue[0]
            await asyncio.sleep(max(0.0, held.due - asyncio.get_running_loop().time()))  # 0 lets others have a turn
            if self._queue and self._queue[0] is held:
                self._look(self._queue.popleft())

    def _wait(self, held: _Held) -> None:
        held.due = asyncio.get_running_loop().time() + DELAY
        self._queue.append(held)
        self._ready.set()

    def _look(self, held: _Held) -> None:
        """Report, unless something newer has been, the pod waits no more, or its gang is still changing."""
        if self._held.get(held.of) is not held:
            return
        awaited = self._awaited(held.of)
        if awaited is not None and held.due < held.end and self._is_changing(held, awaited):
            self._wait(held)
            return
        del self._held[held.of]
        if awaited is not None:
            self._report(held)

    def _is_changing(self, held: _Held, awaited: int) -> bool:
        """Whether the gang awaits fewer pods than before, of which a cycle will know soon, or did a moment ago."""
        if awaited < held.awaited:
            held.awaited, held.changed = awaited, held.due
            return True
        return awaited > 0 and held.due < held.changed + LULL

    def _report(self, held: _Held) -> None:
        try:
            held.report()
        except Exception as error:  # noqa: BLE001  # one pod's trouble must not be all others'
            self._context.tell("decision_failed", what=held.of.key, error=in_words(error))

    def _is_first(self, of: _Of) -> bool:
        """Whether nothing has been reported of a pod that waits."""
        task = None if of.sort in _OF_GROUPS else self._context.waiting(of.key, of.uid)
        return task is not None and task.condition is None

    def _awaited(self, of: _Of) -> int | None:
        """How many pods the gang awaits; None where the pod or the gang waits no more, or the PodGroup is gone."""
        jobs = self._context.mirror.state.jobs
        if of.sort not in _OF_GROUPS:
            task = self._context.waiting(of.key, of.uid)
            return None if task is None else _missing(jobs.get(task.job))
        job = jobs.get(of.key)
        if job is None or job.group.uid != of.uid:
            return None
        if of.sort is Sort.GROUP_EVENT and job.tasks and not job.number(PENDING):
            return None
        if job.group.status.phase == POD_GROUP_PENDING:  # its pods may be made when it is let in
            return 0
        return _missing(job) + (job.number(BINDING, BOUND) if of.sort is Sort.GROUP_STATUS else 0)


def _missing(job: Job | None) -> int:
    """How many pods are missing of those that a job needs."""
    return 0 if job is None else max(0, job.min_available - len(job.tasks))
