"""The jobs that snapshots show, kept in their order: a snapshot copies the list, and only what changed is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stromboli.model.job import Job


class Listing:
    """Jobs with a PodGroup and a queue that exists, older first, for a state that says what changes."""

    __slots__ = ("_listed", "_order", "_queueless")

    def __init__(self) -> None:
        self._order: list[str] | None = None
        self._listed: dict[str, Job] | None = None
        self._queueless: dict[str, str] = {}

    def renumber(self) -> None:
        """A job has come or gone, or another creation time."""
        self._order = self._listed = None

    def regroup(self) -> None:
        """A queue has come or gone, or a job another queue."""
        self._listed = None

    def replace(self, job: Job) -> None:
        """``job`` stands in the place of the one with its uid."""
        if self._listed is not None and job.uid in self._listed:
            self._listed[job.uid] = job

    def shown(
        self, jobs: Mapping[str, Job], queues: Collection[str], failed: Collection[str]
    ) -> tuple[dict[str, Job], Mapping[str, str]]:
        """The jobs that a snapshot shows, in a dictionary of their own, and those left out for want of their queue.

        The former are all of ``jobs`` in ``queues`` but those that have ``failed`` to be counted; the latter are given
        as the uid and the name of the queue.
        """
        if self._order is None:
            self._order = sorted(jobs, key=lambda uid: (jobs[uid].created, uid))
        if self._listed is None:
            self._listed = {uid: job for uid in self._order if (job := jobs[uid]).facts.queue in queues}
            left_out = (uid for uid in self._order if uid not in self._listed)
            self._queueless = {uid: queue for uid in left_out if (queue := jobs[uid].facts.queue)}
        listed = {uid: job for uid, job in self._listed.items() if uid not in failed} if failed else self._listed.copy()
        return listed, self._queueless
