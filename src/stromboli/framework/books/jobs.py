"""The session's jobs and queues: copies on first use, so that untouched jobs cost nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from stromboli.framework.books.phases import unsettled
from stromboli.model.job import Job
from stromboli.model.queue import Queue, QueueSpec, QueueStatus
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import Holdings, QueueSums

Figures = dict[str, Resource | float | None]
"""A queue's figures by name: deserved, allocated, request, …; shares are plain numbers."""


class Jobs(Mapping[str, Job]):
    """Jobs by uid.  Getting one gives the session's own copy; :meth:`peek` looks without copying.

    Those that are not settled are ``unsettled_among`` those (:func:`unsettled`); ``holdings`` is what the shared
    jobs hold, where that is known.
    """

    __slots__ = ("_holdings", "_open", "_own", "_shared", "_unsettled")

    def __init__(
        self, shared: Mapping[str, Job], unsettled_among: Iterable[str] | None = None, holdings: Holdings | None = None
    ) -> None:
        self._shared, self._open = shared, unsettled_among
        self._holdings = holdings
        self._unsettled: dict[str, None] | None = None
        self._own: dict[str, Job] = {}

    def __getitem__(self, uid: str) -> Job:
        own = self._own.get(uid)
        if own is None:
            own = self._own[uid] = self._shared[uid].copy()
        return own

    def __iter__(self) -> Iterator[str]:
        return iter(self._shared)

    def __len__(self) -> int:
        return len(self._shared)

    def __contains__(self, uid: object) -> bool:
        return uid in self._shared

    def peek(self) -> Iterator[Job]:
        """Every job, read-only: the session's own where it has one."""
        own = self._own
        if not own:
            return iter(self._shared.values())
        return (own.get(uid, job) for uid, job in self._shared.items())

    def peek_unsettled(self, others: Collection[str] = ()) -> Iterator[Job]:
        """As :meth:`peek`, without jobs that were settled to begin with and that the session has not copied.

        ``others`` are in all the same, and so is the first job of each queue: iteration by queue misses none.
        """
        if self._unsettled is None:
            self._unsettled = unsettled(self._shared, self._open)
        first, own, shared = self._unsettled, self._own, self._shared
        more = {*own, *others} - first.keys()
        uids = [uid for uid in shared if uid in first or uid in more] if more else first
        return (own.get(uid) or shared[uid] for uid in uids)

    def peek_at(self, uid: str) -> Job | None:
        """One job, read-only; None when there is none."""
        return self._own.get(uid) or self._shared.get(uid)

    def peek_each(self, uids: Iterable[str]) -> list[Job]:
        """As :meth:`peek_at` for each of ``uids``, all of which there are."""
        own, shared = self._own, self._shared
        return [own.get(uid) or shared[uid] for uid in uids]

    def holdings(self) -> Holdings:
        """What each job holds, by column, in the order of the jobs; it outlives them, and is there to be read."""
        shared = self._of_shared()
        return {**shared, **{uid: job.sums.held for uid, job in self._own.items()}} if self._own else shared

    @property
    def uids(self) -> Collection[str]:
        """The uids of all jobs, in their order; they outlive the jobs."""
        return self._of_shared().keys()

    def _of_shared(self) -> Holdings:
        if self._holdings is None:
            self._holdings = {uid: job.sums.held for uid, job in self._shared.items()}
        return self._holdings

    @property
    def touched(self) -> Mapping[str, Job]:
        """The jobs that the session has copied, by uid."""
        return self._own


class QueueInfo:
    """A queue in a session: what its object says, the sums of its jobs, and the figures that a queue plugin publishes.

    ``sums`` follow the session's placements, and so does ``branch``: what the queue and those below it hold, by column
    (``sums.held`` itself until a plugin asks for a tree).  ``fault`` says why the queue cannot be used,
    ``warning`` why it may not get what it is guaranteed.  Queues are known by name, so ``uid`` is the name.
    """

    __slots__ = ("_axes", "branch", "created", "fault", "figures", "name", "queue", "sums", "uid", "warning")

    def __init__(self, queue: Queue, sums: QueueSums, axes: Axes) -> None:
        self.queue, self.sums, self._axes = queue, sums, axes
        self.name = self.uid = queue.name
        self.created = queue.created
        self.figures: Figures = {}
        self.branch = sums.held
        self.fault = self.warning = ""

    def __repr__(self) -> str:
        return f"QueueInfo({self.name!r})"

    @property
    def spec(self) -> QueueSpec:
        """The Queue object's spec."""
        return self.queue.spec

    @property
    def status(self) -> QueueStatus:
        """The Queue object's status as read."""
        return self.queue.status

    @property
    def annotations(self) -> Mapping[str, str]:
        """The Queue object's annotations."""
        return self.queue.annotations

    @property
    def reclaimable(self) -> bool:
        """Whether others may take back what this queue holds above its share."""
        return self.queue.reclaimable

    @property
    def allocated(self) -> Resource:
        """Requests of the queue's tasks that occupy a node, at this moment."""
        return self._axes.resource(self._axes.full(self.sums.allocated))

    @property
    def guarantee(self) -> Resource:
        """What is kept for the queue whether it asks or not."""
        guarantee = self.spec.guarantee
        return Resource.from_list((guarantee.resource if guarantee else None) or {})

    @property
    def deserved(self) -> Resource:
        """The queue's share: as a queue plugin computed it, else as the spec states it."""
        computed = self.figures.get("deserved")
        return computed if isinstance(computed, Resource) else Resource.from_list(self.spec.deserved or {})

    def all_figures(self) -> Figures:
        """The figures as the queue plugin published them, with what the queue holds now and its guarantee."""
        return {"deserved": self.deserved, "guarantee": self.guarantee, **self.figures, "allocated": self.allocated}
