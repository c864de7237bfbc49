"""The tasks that those of one job might evict: what is in reach of each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from stromboli.framework.books.candidates import Reach, Said
from stromboli.framework.extension.prefilters import AllAgree, JobPrefilter
from stromboli.model.job import Job
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
        numbers = self._in_scope()
        if self._prefilter is not None:
            numbers = self._could_name(self._prefilter, task, key, numbers)
        return self._find(key, numbers, only_best_effort=self._policy.checked and task.template.best_effort)

    def all(self) -> Reach:
        """The tasks that could be evicted if no plugin objected."""
        if (found := self._found.get(ALL_TASKS)) is not None:
            found.refresh()
            return found
        return self._find(ALL_TASKS, self._in_scope(), only_best_effort=False)

    def clear(self) -> None:
        """Drop all of them, to be found again: fewer jobs may be within reach by now."""
        self._found.clear()

    def _in_scope(self) -> Sequence[int]:
        """The numbers of the jobs among which tasks are sought."""
        candidates, of = self._session.candidates, self._of
        if of is None:
            return [candidates.jobs[self._job.uid]] if candidates.gives_single_tasks(self._job) else []
        own, found = candidates.jobs.get(self._job.uid, -1), list[int]()
        for numbers in candidates.by_queue.values():
            others = [number for number in numbers if number != own]
            if others and of(candidates.jobs_at(others[:1])[0]):
                found += others
        return found

    def _could_name(self, prefilter: JobPrefilter, task: Task, key: Hashable, numbers: Sequence[int]) -> Sequence[int]:
        """Those of ``numbers`` of whose jobs plugins could name tasks."""
        candidates = self._session.candidates
        pairs = zip(numbers, candidates.jobs_at(numbers), strict=True)
        if self._of is None or not (isinstance(prefilter, AllAgree) and prefilter.own):
            return [number for number, job in pairs if prefilter(task, job)]
        kept, found = candidates.kept((self._policy.point, self._job.queue, self._job.priority, key)), []
        for number, job in pairs:
            said = kept.get(number)
            if said is None or said[0] != job.sums.moves:
                said = _asked(prefilter, task, job, kept, number)
            if said[1]:
                found.append(number)
        return found

    def _find(self, key: Hashable, numbers: Sequence[int], *, only_best_effort: bool) -> Reach:
        candidates, bound = self._session.candidates, self._policy.bound
        found = self._found[key] = candidates.reach_of(numbers, bound=bound, only_best_effort=only_best_effort)
        return found


def _asked(prefilter: AllAgree, task: Task, job: Job, kept: Said, number: int) -> tuple[int, bool]:
    """Whether plugins could name a task of ``job``; ``kept`` where those decide that promise to say it again."""
    tier = prefilter.tier(task, job)
    said = job.sums.moves, tier >= 0
    if tier == 0 or (tier < 0 and len(prefilter.tiers) <= 1):
        kept[number] = said
    return said
