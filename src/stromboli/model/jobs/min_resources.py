"""How what a job holds compares with its minResources, by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stromboli.model.job import Job
from stromboli.model.resources.axes import add_to
from stromboli.model.task import is_held_back


def elastic(job: Job) -> list[int]:
    """What ``job`` holds beyond its minResources (everything when it states none)."""
    return _beyond(job.sums.held, job.facts.min_vector)


def remaining(job: Job) -> list[int]:
    """What of its minResources ``job`` does not hold yet."""
    return _beyond(job.facts.min_vector, job.sums.held)


def without_gated(job: Job, amounts: Iterable[int]) -> list[int]:
    """``amounts`` less the requests of tasks with a scheduling gate of another owner, never below zero."""
    if not job.gated:
        return list(amounts)
    gated: list[int] = []
    for task in job.tasks.values():
        if is_held_back(task):
            add_to(gated, task.template.vector)
    return _beyond(amounts, gated)


def _beyond(amounts: Iterable[int], less: Sequence[int]) -> list[int]:
    """What each of ``amounts`` is more than ``less``, which may have fewer columns; 0 where it is not."""
    return [max(amount - (less[i] if i < len(less) else 0), 0) for i, amount in enumerate(amounts)]
