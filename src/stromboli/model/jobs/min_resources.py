"""How what a job holds compares with its minResources, by column."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.model.job import Job
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.resources.axes import add_to


def elastic(job: Job) -> list[int]:
    """What ``job`` holds beyond its minResources (everything when it states none)."""
    least = job.facts.min_vector
    return [max(have - (least[i] if i < len(least) else 0), 0) for i, have in enumerate(job.sums.held)]


def remaining(job: Job) -> list[int]:
    """What of its minResources ``job`` does not hold yet."""
    have = job.sums.held
    return [max(want - (have[i] if i < len(have) else 0), 0) for i, want in enumerate(job.facts.min_vector)]


def without_gated(job: Job, amounts: Iterable[int]) -> list[int]:
    """``amounts`` less the requests of tasks with a scheduling gate of another owner, never below zero."""
    if not job.gated:
        return list(amounts)
    gated: list[int] = []
    for task in job.tasks.values():
        if task.gates and task.gates != (QUEUE_ALLOCATION_GATE,):
            add_to(gated, task.template.vector)
    return [max(have - (gated[i] if i < len(gated) else 0), 0) for i, have in enumerate(amounts)]
