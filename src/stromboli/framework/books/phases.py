"""The phases of PodGroups, and which jobs are settled: what a cycle costs should follow from those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from stromboli.api.scheduling import (
    POD_GROUP_COMPLETED,
    POD_GROUP_INQUEUE,
    POD_GROUP_PENDING,
    POD_GROUP_RUNNING,
    POD_GROUP_UNKNOWN,
)
from stromboli.model.job import BINDING, BOUND, FAILED, RELEASING, RUNNING, SUCCEEDED, Job
from stromboli.model.names import CONDITION_TRUE, POD_GROUP_SCHEDULED, REASON_GANG_READY
from stromboli.model.status import SCHEDULED_STATUS

WAITING: Final = (POD_GROUP_UNKNOWN, POD_GROUP_PENDING, POD_GROUP_INQUEUE)
"""Phases whose PodGroups get a warning event at every close."""

DECIDED: Final = frozenset({BINDING, BOUND, RUNNING, SUCCEEDED, FAILED})
"""States of tasks about which nothing is left to decide."""


def scheduled_task_num(job: Job) -> int:
    """Tasks that the cluster has placed, ended ones included."""
    placed = 0
    for status, members in job.index.items():
        if status in SCHEDULED_STATUS:
            placed += len(members)
    return placed


def releasing_scheduled_num(job: Job) -> int:
    """Ending tasks that had a node."""
    return sum(bool(task.node_name) for task in job.of(RELEASING))


def phase_of(job: Job, unschedulable: bool) -> str:
    """The phase that the job's tasks put its PodGroup into."""
    index = job.index
    if unschedulable and RUNNING in index:
        return POD_GROUP_UNKNOWN
    scheduled = scheduled_task_num(job)
    if RELEASING in index:
        scheduled += releasing_scheduled_num(job)
    if scheduled >= job.facts.min_available:
        return POD_GROUP_COMPLETED if scheduled == job.number(FAILED, SUCCEEDED) else POD_GROUP_RUNNING
    return POD_GROUP_INQUEUE if job.phase == POD_GROUP_INQUEUE else POD_GROUP_PENDING


def is_settled(job: Job) -> bool:
    """Whether a job of a snapshot needs nothing as it stands; it is asked each cycle, so the answer is kept.

    Its tasks have ended, run or are being bound, its gang is complete, and the PodGroup's status says all of that: as
    long as no session changes the job, none has anything to decide about it or to write.
    """
    if job.settled is None:
        job.settled = _is_decided(job) and _is_told(job)
    return job.settled


def _is_decided(job: Job) -> bool:
    ready = 0
    for status, members in job.index.items():  # every job is asked whenever it has changed: no sets here
        if status not in DECIDED:
            return False
        ready += 0 if status is FAILED else len(members)
    return bool(job.index) and ready >= job.facts.min_available and not job.is_pending()


def _is_told(job: Job) -> bool:
    """Whether the status says what the session's close would, and what the gang plugin would."""
    index, status = job.index, job.facts.group.status
    if (
        status.running != len(index.get(RUNNING, _NO_TASKS))
        or status.succeeded != len(index.get(SUCCEEDED, _NO_TASKS))
        or status.failed != len(index.get(FAILED, _NO_TASKS))
    ):
        return False
    phase = phase_of(job, unschedulable=False)
    return status.phase == phase and (phase not in WAITING or BINDING in index) and _says_complete(job)


_NO_TASKS: Final[Mapping[str, object]] = {}


def _says_complete(job: Job) -> bool:
    for told in job.conditions:  # every job is asked whenever it has changed: no generators here
        if told.type == POD_GROUP_SCHEDULED:
            return told.status == CONDITION_TRUE and told.reason == REASON_GANG_READY and not told.message
    return False


def unsettled(jobs: Mapping[str, Job], among: Iterable[str] | None = None) -> dict[str, None]:
    """The uids of those of a snapshot's ``jobs`` that are not settled, and of the first of each queue.

    All of these are ``among`` the ones given, in the order of ``jobs``; None: any may be.
    """
    found: dict[str, None] = {}
    queues: set[str] = set()
    for uid in jobs if among is None else among:
        job = jobs[uid]
        if (queue := job.facts.queue) not in queues or not is_settled(job):
            queues.add(queue)
            found[uid] = None
    return found
