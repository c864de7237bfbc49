"""Amounts of every queue's jobs, added up once and kept: only jobs that changed are counted anew."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from stromboli.model.axes import add_to
from stromboli.model.job import Job
from stromboli.model.snapshot import QueueSums
from stromboli.model.status import ALLOCATED_STATUS


class Share(NamedTuple):
    """What one job adds to the sums of its queue, by column."""

    queue: str
    allocated: list[int]
    held: list[int]
    request: list[int]
    elastic: list[int]
    inqueue: list[int]
    admitted: list[int]


def share_of(job: Job) -> Share:
    """What ``job`` adds to its queue's sums.

    An admitted job counts what it still needs of its minResources, as does a running one that has its minimum of
    tasks; ``admitted`` counts the whole minResources of the former.
    """
    sums, facts = job.sums, job.facts
    inqueue: list[int] = []
    admitted: list[int] = []
    if facts.min_resources is not None:
        if job.phase == "Inqueue":
            inqueue = job.without_gated(job.remaining())
            admitted = job.without_gated(facts.min_vector)
        elif job.phase == "Running" and job.number(*ALLOCATED_STATUS) >= job.min_available:
            inqueue = admitted = job.without_gated(job.remaining())
    return Share(
        facts.queue, sums.allocated.copy(), sums.held.copy(), sums.request.copy(), job.elastic(), inqueue, admitted
    )


class JobSums:
    """Sums by queue.  ``dirty`` are the jobs that changed since :meth:`renew`."""

    __slots__ = ("_queues", "_shares", "dirty")

    def __init__(self) -> None:
        self._queues: dict[str, QueueSums] = {}
        self._shares: dict[str, Share] = {}
        self.dirty: dict[str, None] = {}

    def touch(self, job: Job) -> None:
        """Note that ``job`` changes."""
        self.dirty[job.uid] = None

    def forget(self, job: Job) -> None:
        """Take a job out that is gone."""
        self.dirty.pop(job.uid, None)
        share = self._shares.pop(job.uid, None)
        self._count([] if share is None else [share], -1)

    def renew(self, jobs: Mapping[str, Job]) -> None:
        """Count the jobs that changed anew."""
        self._count([self._shares[uid] for uid in self.dirty if uid in self._shares], -1)
        self._shares.update((uid, share_of(jobs[uid])) for uid in self.dirty)
        self._count([self._shares[uid] for uid in self.dirty], 1)
        self.dirty = {}

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
