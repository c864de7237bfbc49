"""The jobs that snapshots show, kept in their order: a snapshot copies the list, and only what changed is looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping

from stromboli.model.job import Job

Place = tuple[int, str]
"""When a job was created, and its uid: older first."""


class Listing:
    """Jobs with a PodGroup and a queue that exists, older first, for a state that says what changes.

    Most of them are settled, and a job that no session has changed stays so: those of which that is not known are kept
    apart, so that a cycle need not ask every job.
    """

    __slots__ = ("_first", "_listed", "_moved", "_open", "_order", "_places", "_queueless")

    def __init__(self) -> None:
        self._order: list[Place] | None = None
        self._places: dict[str, Place] = {}
        self._moved: dict[str, None] = {}
        self._listed: dict[str, Job] | None = None
        self._queueless: dict[str, str] = {}
        self._open: dict[str, None] = {}
        self._first: dict[str, str] | None = None

    def move(self, uid: str) -> None:
        """The job ``uid`` has come or gone, or has another creation time or queue."""
        self._moved[uid] = None

    def regroup(self) -> None:
        """A queue has come or gone."""
        self._listed = None

    def replace(self, job: Job) -> None:
        """``job`` stands in the place of the one with its uid."""
        if self._listed is not None and job.uid in self._listed:
            self._listed[job.uid] = job
            self._open[job.uid] = None

    def shown(
        self, jobs: Mapping[str, Job], queues: Collection[str], failed: Collection[str]
    ) -> tuple[dict[str, Job], Mapping[str, str]]:
        """The jobs that a snapshot shows, in a dictionary of their own, and those left out for want of their queue.

        The former are all of ``jobs`` in ``queues`` but those that have ``failed`` to be counted; the latter are given
        as the uid and the name of the queue.
        """
        come = self._moves(jobs)
        if self._listed is None:
            self._listed, self._queueless, self._first, come = {}, {}, None, self._order or []
        for _, uid in come:
            if (queue := jobs[uid].facts.queue) in queues:
                self._listed[uid] = jobs[uid]
                self._open[uid] = None
                if self._first is not None:
                    self._first.setdefault(queue, uid)
            elif queue:
                self._queueless[uid] = queue
        listed = {uid: job for uid, job in self._listed.items() if uid not in failed} if failed else self._listed.copy()
        return listed, self._queueless.copy()

    def open_jobs(self) -> list[str]:
        """Of the jobs last shown those that are not known to be settled, and the first of each queue; older first."""
        listed = self._listed or {}
        if self._first is None:
            self._first = {}
            for job in listed.values():
                self._first.setdefault(job.facts.queue, job.uid)
        self._open = {uid: None for uid in self._open if uid in listed and not listed[uid].settled}
        return sorted({*self._open, *self._first.values()}, key=self._places.__getitem__)

    def _moves(self, jobs: Mapping[str, Job]) -> list[Place]:
        """Bring the order up to date; returns those that are last of it since, and are not listed."""
        if self._first and not self._moved.keys().isdisjoint(self._first.values()):
            self._first = None
        order = self._order
        if order is None:
            order, self._moved = [], dict.fromkeys(jobs)
        self._take_out(order)
        come = sorted((jobs[uid].created, uid) for uid in self._moved if uid in jobs)
        self._moved.clear()
        self._places.update((place[1], place) for place in come)
        among = bool(order and come and come[0] < order[-1])
        order += come
        if among:
            order.sort()
            self._listed = None
        self._order = order
        return come

    def _take_out(self, order: list[Place]) -> None:
        """Jobs that have moved leave their places."""
        listed = {} if self._listed is None else self._listed
        for uid in self._moved:
            if (place := self._places.pop(uid, None)) is not None:
                del order[bisect_left(order, place)]
                listed.pop(uid, None)
                self._queueless.pop(uid, None)
