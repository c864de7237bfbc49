"""The tasks that those of one job might evict: what is in reach of each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from stromboli.framework.books.candidates import NONE, Reach
from stromboli.framework.extension.prefilters import AllAgree
from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.preemption.eviction_policy import EvictionPolicy

ALL_TASKS: Final = "everybody"
"""The key of all tasks that could be evicted if no plugin objected."""


class Reaches:
    """What tasks of ``job`` reach among the jobs for which ``of`` is true, by ``policy``.

    ``among_jobs`` says that for every other job ``of`` is the same with every job of the same queue.  With ``loud`` no
    job is ruled out beforehand, because an observer gets every refusal.
    """

    def __init__(
        self, session: Session, job: Job, policy: EvictionPolicy, of: Callable[[Job], bool], *, among_jobs: bool
    ) -> None:
        self._session, self._job, self._policy, self._among_jobs = session, job, policy, among_jobs
        self._of: Callable[[Job], bool] = lambda other: of(other) and not other.group.evicted_whole
        self._found: dict[Hashable, Reach] = {}

    def of(self, task: Task, *, loud: bool) -> Reach:
        """The tasks that ``task`` might evict, up to date; its ``key`` is all that forms for jobs may read of it."""
        key = task.template.number, task.priority, task.role
        if (found := self._found.get(key)) is not None:
            found.refresh()
            return found
        prefilter = self._session.hooks.job_prefilters.get(self._policy.point)
        best_effort = self._policy.checked and task.template.best_effort
        if prefilter is None or loud:
            return self._find(key, self._of, only_best_effort=best_effort)
        if not (self._among_jobs and isinstance(prefilter, AllAgree) and prefilter.own):
            return self._find(key, lambda job: self._of(job) and prefilter(task, job), only_best_effort=best_effort)
        kept = self._session.candidates.kept((self._policy.point, self._job.queue, self._job.priority, key))
        kept.pop(self._job.uid, None)  # others may reach this job
        could_name = partial(self._could_name, prefilter, kept, task)
        return self._find(key, could_name, only_best_effort=best_effort, kept=kept)

    def all(self) -> Reach:
        """The tasks that could be evicted if no plugin objected."""
        return self._find(ALL_TASKS, self._of, only_best_effort=False)

    def clear(self) -> None:
        """Drop all of them, to be found again: fewer jobs may be within reach by now."""
        self._found.clear()

    def _could_name(self, prefilter: AllAgree, kept: dict[str, int], task: Task, job: Job) -> bool:
        """Whether plugins could name a task of ``job``; if the first tier could, it is ``kept`` until the job moves."""
        if not self._of(job):
            return False
        tier = prefilter.tier(task, job)
        if tier == 0 and job.uid != self._job.uid:
            kept[job.uid] = job.sums.moves
        return tier >= 0

    def _find(
        self,
        key: Hashable,
        of: Callable[[Job], bool],
        *,
        only_best_effort: bool,
        kept: Mapping[str, int] = NONE,
    ) -> Reach:
        found = self._found.get(key)
        if found is None:
            candidates, bound = self._session.candidates, self._policy.bound
            found = candidates.reach(of, bound=bound, only_best_effort=only_best_effort, kept=kept)
            self._found[key] = found
        found.refresh()
        return found
