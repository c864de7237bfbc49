"""The jobs that snapshots show, kept in their order: only what changed is looked at.

Snapshots share one dictionary as long as nothing changes; the first change after a snapshot copies it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from typing import NamedTuple

from stromboli.model.job import Job, gives_single_tasks
from stromboli.model.snapshot import Holdings, JobsByPriority

Place = tuple[int, str]
"""When a job was created, and its uid: older first."""
Group = tuple[str, int]
"""The queue and the priority of jobs of which single tasks may be evicted."""


class Shown(NamedTuple):
    """What a snapshot shows: ``jobs``, what each of them has ``held``, and the jobs left out for want of a queue.

    The first two are by uid and never change; ``queueless`` names the queue that does not exist.
    """

    jobs: dict[str, Job]
    held: Holdings
    queueless: Mapping[str, str]


class Listing:
    """Jobs with a PodGroup and a queue that exists, older first, for a state that says what changes.

    Most of them are settled, and a job that no session has changed stays so: those of which that is not known are kept
    apart, so that a cycle need not ask every job.
    """

    __slots__ = (
        "_changed", "_first", "_group_of", "_groups", "_held", "_lent", "_listed", "_moved", "_open", "_order",
        "_places", "_queueless",
    )  # fmt: skip

    def __init__(self) -> None:
        self._order: list[Place] | None = None
        self._places: dict[str, Place] = {}
        self._moved: dict[str, None] = {}
        self._listed: dict[str, Job] | None = None
        self._held: Holdings = {}
        self._lent = False
        self._queueless: dict[str, str] = {}
        self._open: dict[str, None] = {}
        self._first: dict[str, str] | None = None
        self._groups: JobsByPriority = {}
        self._group_of: dict[str, Group] = {}
        self._changed: dict[str, None] = {}

    def move(self, uid: str) -> None:
        """The job ``uid`` has come or gone, or has another creation time or queue."""
        self._moved[uid] = None

    def regroup(self) -> None:
        """A queue has come or gone."""
        self._listed = None

    def replace(self, job: Job) -> None:
        """``job`` stands in the place of the one with its uid."""
        if self._listed is not None and job.uid in self._listed:
            self._list(self._writable(self._listed), job)

    def _list(self, listed: dict[str, Job], job: Job) -> None:
        listed[job.uid], self._held[job.uid] = job, job.sums.held
        self._open[job.uid] = self._changed[job.uid] = None

    def _writable(self, listed: dict[str, Job]) -> dict[str, Job]:
        """The dictionary of jobs listed, which no snapshot shares from now on."""
        if self._lent:
            self._listed, self._held, self._lent = listed.copy(), self._held.copy(), False
        return self._listed if self._listed is not None else listed

    def shown(self, jobs: Mapping[str, Job], queues: Collection[str], failed: Collection[str]) -> Shown:
        """What a snapshot shows: all of ``jobs`` in ``queues`` but those that have ``failed`` to be counted."""
        come = self._moves(jobs)
        if self._listed is None:
            self._held, self._lent, self._queueless, self._first = {}, False, {}, None
            self._changed |= dict.fromkeys(self._group_of)
            self._listed, come = {}, self._order or []
        listed = self._writable(self._listed) if come else self._listed
        for _, uid in come:
            if (queue := jobs[uid].facts.queue) in queues:
                self._list(listed, jobs[uid])
                if self._first is not None:
                    self._first.setdefault(queue, uid)
            elif queue:
                self._queueless[uid] = queue
        self._lent, held = True, self._held
        if failed:
            listed = {uid: job for uid, job in listed.items() if uid not in failed}
            held = {uid: held[uid] for uid in listed}
        return Shown(listed, held, self._queueless.copy())

    def open_jobs(self) -> list[str]:
        """Of the jobs last shown those that are not known to be settled, and the first of each queue; older first."""
        listed = self._listed or {}
        if self._first is None:
            self._first = {}
            for job in listed.values():
                self._first.setdefault(job.facts.queue, job.uid)
        self._open = {uid: None for uid in self._open if uid in listed and not listed[uid].settled}
        return sorted({*self._open, *self._first.values()}, key=self._places.__getitem__)

    def by_priority(self) -> JobsByPriority:
        """Of the jobs last shown those of which single tasks may be evicted, by queue and priority; this stays so."""
        listed, known = self._listed or {}, self._group_of
        now = {uid: _group_of(listed.get(uid)) for uid in self._changed}
        moved = {uid: group for uid, group in now.items() if group != known.get(uid)}  # of all that change, few
        self._changed.clear()
        if moved:
            groups = self._groups.copy()
            for each in filter(None, dict.fromkeys([*moved.values(), *map(known.get, moved)])):
                groups[each] = groups.get(each, {}).copy()  # snapshots keep theirs
            for uid, group in moved.items():
                self._regroup(groups, uid, group)
            self._groups = {group: uids for group, uids in groups.items() if uids}
        return self._groups

    def _regroup(self, groups: JobsByPriority, uid: str, group: Group | None) -> None:
        if (before := self._group_of.pop(uid, None)) is not None:
            del groups[before][uid]
        if group is not None:
            groups[group][uid] = None
            self._group_of[uid] = group

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
        listed = {} if self._listed is None else self._writable(self._listed) if self._moved else self._listed
        for uid in self._moved:
            if (place := self._places.pop(uid, None)) is not None:
                del order[bisect_left(order, place)]
                if listed.pop(uid, None) is not None:
                    del self._held[uid]
                    self._changed[uid] = None
                self._queueless.pop(uid, None)


def _group_of(job: Job | None) -> Group | None:
    """The group of a job, None for one that is not listed, or gives no single tasks."""
    return (job.facts.queue, job.facts.priority) if job is not None and gives_single_tasks(job) else None
