"""Minimums by role: how many tasks of each role a job has, and whether that is enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from stromboli.model.job import ALLOCATED, BINDING, BOUND, PENDING, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.model.status import TaskStatus

READY: Final = (ALLOCATED, BINDING, BOUND, RUNNING, SUCCEEDED)
"""States of the tasks that a role's minimum counts."""


def roles_apply(job: Job) -> bool:
    """Whether minimums by role are checked: there are some, and minAvailable covers them all."""
    facts = job.facts
    return bool(facts.task_min) and facts.min_available >= sum(facts.task_min.values())


def role_counts(job: Job, *statuses: TaskStatus, pending_best_effort: bool = False) -> dict[str, int]:
    """Number of tasks by role in ``statuses``, and pending tasks that ask for nothing if wanted."""
    if job.roles is None:
        job.roles = {status: Counter([task.role for task in members.values()]) for status, members in job.index.items()}
    counts: dict[str, int] = {}
    for status in statuses:
        for role, number in job.roles.get(status, {}).items():
            counts[role] = counts.get(role, 0) + number
    if pending_best_effort and job.best_effort:
        for task in job.of(PENDING):
            if task.best_effort:
                counts[task.role] = counts.get(task.role, 0) + 1
    return counts


def roles_valid(job: Job) -> bool:
    """Whether every role has pods enough; true where minimums do not apply."""
    return not roles_apply(job) or _reach(job, role_counts(job, *READY, PIPELINED, PENDING))


def roles_ready(job: Job) -> bool:
    """Whether every role has its minimum of tasks that run or will; true where minimums do not apply."""
    return not roles_apply(job) or _reach(job, role_counts(job, *READY, pending_best_effort=True))


def roles_pipelined(job: Job) -> bool:
    """Whether every role has its minimum once pipelined tasks have their room; true where minimums do not apply."""
    return not roles_apply(job) or _reach(job, role_counts(job, *READY, PIPELINED, pending_best_effort=True))


def _reach(job: Job, counts: Mapping[str, int]) -> bool:
    return all(counts.get(role, 0) >= least for role, least in job.facts.task_min.items())
