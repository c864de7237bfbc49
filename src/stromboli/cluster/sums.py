"""Amounts of every queue's jobs, added up once and kept: only jobs that changed are counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from stromboli.api.scheduling import POD_GROUP_INQUEUE, POD_GROUP_RUNNING
from stromboli.model.job import Job
from stromboli.model.jobs.min_resources import elastic, remaining, without_gated
from stromboli.model.resources.axes import Vector, add_to
from stromboli.model.snapshot import QueueSums
from stromboli.model.status import ALLOCATED_STATUS


class Share(NamedTuple):
    """What one job adds to the sums of its queue, by column."""

    queue: str
    allocated: Vector
    held: Vector
    request: Vector
    elastic: Vector
    inqueue: Vector
    admitted: Vector


def share_of(job: Job) -> Share:
    """What ``job`` adds to its queue's sums.

    An admitted job counts what it still needs of its minResources, as does a running one that has its minimum of
    tasks; ``admitted`` counts the whole minResources of the former.
    """
    sums, facts = job.sums, job.facts
    inqueue: Vector = ()
    admitted: Vector = ()
    if facts.min_resources is not None:
        if job.phase == POD_GROUP_INQUEUE:
            inqueue = without_gated(job, remaining(job))
            admitted = without_gated(job, facts.min_vector)
        elif job.phase == POD_GROUP_RUNNING and job.number(*ALLOCATED_STATUS) >= job.min_available:
            inqueue = admitted = without_gated(job, remaining(job))
    amounts = (sums.allocated, sums.held, sums.request, elastic(job), inqueue, admitted)
    return Share(facts.queue, *map(tuple, amounts))


class JobSums:
    """Sums by queue.

    ``dirty`` are the jobs that changed since :meth:`renew`, ``failed`` those that add nothing because they cannot be
    counted, and why.
    """

    __slots__ = ("_queues", "_shares", "dirty", "failed")

    def __init__(self) -> None:
        self._queues: dict[str, QueueSums] = {}
        self._shares: dict[str, Share] = {}
        self.dirty: dict[str, None] = {}
        self.failed: dict[str, str] = {}

    def touch(self, job: Job) -> None:
        """Note that ``job`` changes."""
        self.dirty[job.uid] = None

    def forget(self, job: Job) -> None:
        """Take a job out that is gone."""
        self.dirty.pop(job.uid, None)
        self.failed.pop(job.uid, None)
        share = self._shares.pop(job.uid, None)
        self._count([] if share is None else [share], -1)

    def renew(self, jobs: Mapping[str, Job], some: Sequence[str]) -> None:
        """Count ``some`` of the jobs that changed again."""
        known, fresh, gone = self._shares, {}, []
        for uid in some:
            del self.dirty[uid]
            self.failed.pop(uid, None)
            old, share = known.get(uid), self._share(jobs[uid])
            if share == old:  # as of most that change: a pod that was bound runs, say
                continue
            if old is not None:
                gone.append(known.pop(uid))
            if share is not None:
                fresh[uid] = share
        self._count(gone, -1)
        self._count(list(fresh.values()), 1)
        known |= fresh

    def _share(self, job: Job) -> Share | None:
        """What the job adds; None, and noted, when that cannot be said."""
        try:
            return share_of(job)
        except Exception as error:  # noqa: BLE001  # one job's trouble must not be all others'
            self.failed[job.uid] = f"{type(error).__name__}: {error}"
            return None

    def problems(self) -> Iterator[str]:
        """A text on each job that cannot be counted."""
        return (f"job {uid} cannot be counted: {why}" for uid, why in sorted(self.failed.items()))

    def of(self, queue: str) -> QueueSums:
        """The sums of one queue."""
        return self._queues.get(queue) or QueueSums()

    def _count(self, shares: list[Share], times: int) -> None:
        by_queue: dict[str, list[Share]] = {}
        for share in shares:
            by_queue.setdefault(share.queue, []).append(share)
        for queue, members in by_queue.items():
            sums = self._queues.setdefault(queue, QueueSums())
            sums.jobs += times * len(members)
            for name in Share._fields[1:]:
                columns = zip_longest(*[getattr(share, name) for share in members], fillvalue=0)
                add_to(getattr(sums, name), [sum(column) for column in columns], times)
