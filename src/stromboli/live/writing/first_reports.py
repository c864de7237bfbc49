"""Conditions and events of pods that begin to wait, held back for a moment in which the pods may yet be bound.

Pods of a gang are created one after the other, and a queue lets their PodGroup in a cycle later.  Without the moment
each pod would be written about several times, and an autoscaler would see pods that seem to need nodes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from stromboli.errors import in_words
from stromboli.live.scheduler.context import Context
from stromboli.model.task import Task

DELAY: Final = 1.0
"""Seconds that reports are held back: the usual time between two cycles."""
LONGEST: Final = 10.0
"""Seconds after which reports are made even of a gang whose pods still arrive."""

Report = Callable[[], None]


class Sort(Enum):
    """What a report is: of each sort the newest counts."""

    CONDITION = "condition"
    EVENT = "event"


class _Of(NamedTuple):
    sort: Sort
    key: str
    uid: str


@dataclass(slots=True, eq=False)
class _Held:
    """A report that is looked at when it is ``due``; ``missing`` pods of the gang had not arrived when it was put."""

    of: _Of
    report: Report
    end: float
    due: float = field(init=False)
    missing: int = field(init=False)


class FirstReports:
    """Reports on pods of which nothing has been reported, or whose gang is not complete; :meth:`run` makes them.

    A report is dropped where the pod has a node or is gone when it is due; while pods of the gang arrive it waits on.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: dict[_Of, _Held] = {}
        self._queue: deque[_Held] = deque()  # all wait equally long, so they stand in the order in which they are due
        self._ready = asyncio.Event()

    def make(self, sort: Sort, key: str, uid: str, report: Report, *, at_once: bool = False) -> None:
        """Call ``report`` on pod ``key`` of ``uid``: in a moment, where it may be outdated by then, unless ``at_once``.

        The newest of a ``sort`` takes the place of one that is held back.
        """
        of, task = _Of(sort, key, uid), self._context.waiting(key, uid)
        if at_once or task is None or (task.condition is not None and not self._missing(task)):
            self._held.pop(of, None)
            report()
        elif of in self._held:
            self._held[of].report = report
        else:
            held = self._held[of] = _Held(of, report, asyncio.get_running_loop().time() + LONGEST)
            self._wait(held, task)

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

    def _wait(self, held: _Held, task: Task) -> None:
        held.due = asyncio.get_running_loop().time() + DELAY
        held.missing = self._missing(task)
        self._queue.append(held)
        self._ready.set()

    def _look(self, held: _Held) -> None:
        """Report, unless something newer has been, the pod waits no more, or pods of its gang have arrived."""
        if self._held.get(held.of) is not held:
            return
        task = self._context.waiting(held.of.key, held.of.uid)
        if task is not None and held.due < held.end and self._missing(task) < held.missing:
            self._wait(held, task)
            return
        del self._held[held.of]
        if task is not None:
            self._report(held)

    def _report(self, held: _Held) -> None:
        try:
            held.report()
        except Exception as error:  # noqa: BLE001  # one pod's trouble must not be all others'
            self._context.tell("decision_failed", what=held.of.key, error=in_words(error))

    def _missing(self, task: Task) -> int:
        """How many pods are missing of those that the job of ``task`` needs."""
        job = self._context.mirror.state.jobs.get(task.job)
        return 0 if job is None else max(0, job.min_available - len(job.tasks))
