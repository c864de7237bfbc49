"""Pods that their queue's gate has let in, and how long a part of the queue is kept for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from stromboli.errors import ManifestError
from stromboli.framework.config.argument import is_duration
from stromboli.model.job import PENDING, Job
from stromboli.model.names import QUEUE_ALLOCATION_GATE, QUEUE_ALLOCATION_GATE_REMOVED
from stromboli.model.task import Task
from stromboli.model.values import duration, times

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.plugins.capacity.accounts import Account

EXPIRED: Final = (
    "queue {queue} keeps no part of itself for {count} pods any more, which its gate let in more than {limit} ago "
    "and which have found no node since: others may take their room (gate-timeout of the plugin capacity)"
)


def not_below_zero(text: str) -> str:
    """A check: refuse what is no duration, and one that is negative."""
    return is_duration(text) or ("a timeout is not negative; 0s is for never" if duration.parse(text) < 0 else "")


def opted_in(task: Task) -> bool:
    """Whether the pod asks for a gate that opens when its queue has room."""
    return task.annotations.get(QUEUE_ALLOCATION_GATE) == "true"


def let_in_at(task: Task, now: float) -> float:
    """When the gate was taken off, in seconds since 1970: as the pod says, else when it was created.

    What a pod says of a time before its creation, or after ``now``, is not believed.
    """
    try:
        told = times.seconds(task.annotations.get(QUEUE_ALLOCATION_GATE_REMOVED), "metadata.annotations")
    except ManifestError:
        told = 0
    return told if task.created <= told <= now else task.created


def reserve_parts(session: ClusterView, accounts: Mapping[str, Account], limit: str) -> None:
    """Keep a part of its queue for every pending task that was let in: it opted in, and its gate is off.

    After ``limit`` (a duration; 0 for never) nothing is kept any more, and the task's PodGroup says so.
    """
    seconds = duration.seconds(limit)
    for job in session.active_jobs() if accounts else ():
        expired = 0
        for task in _let_in(job) if job.queue in accounts else ():
            if seconds > 0 and session.now - let_in_at(task, session.now) > seconds:
                expired += 1
                accounts[job.queue].expire(task)
            accounts[job.queue].reserve(task)
        if expired:
            text = EXPIRED.format(queue=job.queue, count=expired, limit=limit)
            session.pod_groups.record_event(job, "Warning", "GateTimeout", text)


def _let_in(job: Job) -> Iterator[Task]:
    return (task for task in job.of(PENDING) if not task.gates and opted_in(task))


__all__ = ["EXPIRED", "let_in_at", "not_below_zero", "opted_in", "reserve_parts"]
