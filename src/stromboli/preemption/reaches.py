"""The tasks that those of one job might evict: what is in reach of each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from stromboli.framework.books.candidates import Reach, Said
from stromboli.framework.extension.prefilters import AllAgree, JobPrefilter
from stromboli.model.job import Job, gives_single_tasks
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.preemption.eviction_policy import EvictionPolicy

ALL_TASKS: Final = "all tasks"
"""The key of all tasks that could be evicted if no plugin objected."""


class Reaches:
    """What tasks of ``job`` reach by ``policy``: among the other jobs for which ``of`` is true, or in ``job`` alone.

    ``of`` says the same of every other job of one queue.  ``prefilter`` rules out jobs of which plugins could name
    no task; without one, all are within reach.
    """

    def __init__(
        self,
        session: Session,
        job: Job,
        policy: EvictionPolicy,
        of: Callable[[Job], bool] | None,
        prefilter: JobPrefilter | None,
    ) -> None:
        self._session, self._job, self._policy, self._of = session, job, policy, of
        self._prefilter = prefilter
        self._found: dict[Hashable, Reach] = {}

    def of(self, task: Task) -> Reach:
        """The tasks that ``task`` might evict, up to date; its ``key`` is all that forms for jobs may read of it."""
        key = task.template.number, task.priority, task.role
        if (found := self._found.get(key)) is not None:
            found.refresh()
            return found
        if (prefilter := self._prefilter) is None:
            uids = self._in_scope()
        else:
            uids = self._in_scope(partial(prefilter.allows_priority, task) if isinstance(prefilter, AllAgree) else None)
            uids = self._could_name(prefilter, task, key, uids)
        return self._find(key, uids, only_best_effort=self._policy.checked and task.template.best_effort)

    def all(self) -> Reach:
        """The tasks that could be evicted if no plugin objected."""
        if (found := self._found.get(ALL_TASKS)) is not None:
            found.refresh()
            return found
        return self._find(ALL_TASKS, self._in_scope(), only_best_effort=False)

    def clear(self) -> None:
        """Drop all of them, to be found again: fewer jobs may be within reach by now."""
        self._found.clear()

    def _in_scope(self, also: Callable[[Job], bool] | None = None) -> Sequence[str]:
        """The uids of the jobs among which tasks are sought.

        Of the other jobs, those of which ``also`` is true, which says the same of all jobs of a queue and a priority.
        """
        session, own, of = self._session, self._job.uid, self._of
        if of is None:
            return [own] if gives_single_tasks(session.snapshot.jobs[own]) else []
        found = list[str]()
        for uids in session.candidates.jobs_by_priority.values():
            first = next((uid for uid in uids if uid != own), None)
            if first is None:
                continue
            (job,) = session.jobs.peek_each([first])
            if of(job) and (also is None or also(job)):
                found += [uid for uid in uids if uid != own]
        return found

    def _could_name(self, prefilter: JobPrefilter, task: Task, key: Hashable, uids: Sequence[str]) -> Sequence[str]:
        """Those of ``uids`` of whose jobs plugins could name tasks."""
        jobs = self._session.jobs.peek_each(uids)
        if self._of is None or not (isinstance(prefilter, AllAgree) and prefilter.own):
            return [job.uid for job in jobs if prefilter(task, job)]
        kept, found = self._session.candidates.kept((self._policy.point, self._job.queue, self._job.priority, key)), []
        for job in jobs:
            said = kept.get(job.uid)
            if said is None or said[0] != job.sums.moves:
                said = _asked(prefilter, task, job, kept)
            if said[1]:
                found.append(job.uid)
        return found

    def _find(self, key: Hashable, uids: Sequence[str], *, only_best_effort: bool) -> Reach:
        candidates, bound = self._session.candidates, self._policy.bound
        found = self._found[key] = candidates.reach_of(uids, bound=bound, only_best_effort=only_best_effort)
        return found


def _asked(prefilter: AllAgree, task: Task, job: Job, kept: Said) -> tuple[int, bool]:
    """Whether plugins could name a task of ``job``; ``kept`` where those decide that promise to say it again."""
    tier = prefilter.tier(task, job)
    said = job.sums.moves, tier >= 0
    if tier == 0 or (tier < 0 and len(prefilter.tiers) <= 1):
        kept[job.uid] = said
    return said
