"""The jobs that snapshots show, kept in their order: a snapshot copies the list, and only what changed is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stromboli.model.job import Job


class Listing:
    """Jobs with a PodGroup and a queue that exists, older first, for a state that says what changes."""

    __slots__ = ("_listed", "_order")

    def __init__(self) -> None:
        self._order: list[str] | None = None
        self._listed: dict[str, Job] | None = None

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

    def shown(self, jobs: Mapping[str, Job], queues: Collection[str], failed: Collection[str]) -> dict[str, Job]:
        """All of ``jobs`` in ``queues`` but those that have ``failed`` to be counted, in a dictionary of its own."""
        if self._order is None:
            self._order = sorted(jobs, key=lambda uid: (jobs[uid].created, uid))
        if self._listed is None:
            self._listed = {uid: job for uid in self._order if (job := jobs[uid]).facts.queue in queues}
        return {uid: job for uid, job in self._listed.items() if uid not in failed} if failed else self._listed.copy()
