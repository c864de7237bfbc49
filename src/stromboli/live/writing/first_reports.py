"""Conditions and events of pods that begin to wait, held back for a moment in which the pods may yet be bound.

Pods of a gang are created one after the other, and a queue lets their PodGroup in a cycle later.  Without the moment
each pod would be written about several times, and an autoscaler would see pods that seem to need nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from stromboli.errors import in_words
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.pool import Pool
from stromboli.model.job import Job
from stromboli.model.task import Task

DELAY: Final = 1.0
"""Seconds that reports are held back: the usual time between two cycles."""
LONGEST: Final = 10.0
"""Seconds after which reports are made even of a gang whose pods still arrive."""

Report = Callable[[], None]


class _Of(NamedTuple):
    """What is reported: a condition or the reason of an event, and the pod."""

    sort: str
    key: str
    uid: str


class FirstReports:
    """Reports on pods of which nothing has been reported, or whose gang is not complete.

    A report is dropped where the pod has a node or is gone when it is due; while pods of the gang arrive it waits on.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.pool = Pool(1, context.tell)
        self._reports: dict[_Of, Report] = {}

    def are_due_later(self, key: str, uid: str) -> bool:
        """Whether a report on pod ``key`` of ``uid``, if it waits for a node, may be outdated in a moment."""
        task = self._waiting(key, uid)
        return task is not None and (task.condition is None or self._missing(task) > 0)

    def put(self, sort: str, key: str, uid: str, report: Report) -> None:
        """Call ``report`` in a moment; a newer one of the same ``sort`` takes its place until then."""
        of = _Of(sort, key, uid)
        if of not in self._reports:
            self._wait(of, asyncio.get_running_loop().time() + LONGEST)
        self._reports[of] = report

    def replace(self, sort: str, key: str, uid: str) -> None:
        """Let go of what was to be reported: something newer is."""
        self._reports.pop(_Of(sort, key, uid), None)

    def drop(self) -> None:
        """Let go of all that is not due: the next leader finds the pods as they are."""
        self.pool.clear()
        self._reports.clear()

    def _wait(self, of: _Of, end: float) -> None:
        """Look at the report in a moment; all wait equally long, so they stand in the order in which they are due."""
        task = self._waiting(of.key, of.uid)
        if task is None:
            return
        due = asyncio.get_running_loop().time() + DELAY
        work = partial(self._look, of, due, end, self._missing(task))
        self.pool.put(f"{of.sort} of Pod {of.key}", work, partial(self._failed, of.key))

    async def _look(self, of: _Of, due: float, end: float, missing: int) -> None:
        """Report when it is due, unless pods of the gang have arrived since then."""
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))  # 0 lets others have their turn
        report, task = self._reports.get(of), self._waiting(of.key, of.uid)
        if report is not None and task is not None and due < end and self._missing(task) < missing:
            self._wait(of, end)
            return
        self._reports.pop(of, None)
        if report is not None and task is not None:
            report()

    def _waiting(self, key: str, uid: str) -> Task | None:
        task = self._context.mirror.state.tasks.get(key)
        return None if task is None or task.uid != uid or task.own_node else task

    def _missing(self, task: Task) -> int:
        """How many pods are missing of those that the job of ``task`` needs."""
        job: Job | None = self._context.mirror.state.jobs.get(task.job)
        return 0 if job is None else max(0, job.min_available - len(job.tasks))

    def _failed(self, key: str, error: Exception) -> None:
        self._context.tell("decision_failed", what=key, error=in_words(error))
