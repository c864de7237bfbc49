"""The order of jobs and queues with reservations: a holder is compared as if it had not reserved anything.

With its reservations in its sums a holder would look richer than others, which would then come first, take the room,
and give it back in the next session.  Where plugins see no difference a holder comes first, before age and name.

Plugins compare by sums that they read themselves, so the sums are changed for the time of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import HeapQueue, PriorityQueue, SortedQueue, all_of
from stromboli.framework.extension.order import age_key, by_age, by_queue, queue_key
from stromboli.model.job import ALLOCATED, Job
from stromboli.model.resources.axes import Vector, add_to

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState

Gap = tuple[list[int], Vector]
"""A sum, and the amounts to leave out of it."""


class Precedence:
    """The order among the jobs and queues of a session in which ``holders`` (by uid) hold room since earlier ones."""

    def __init__(self, session: SessionState, holders: Mapping[str, Job]) -> None:
        self._session, self.holders = session, holders
        self._by_queue: dict[str, list[Job]] = {}
        for job in holders.values():
            self._by_queue.setdefault(job.queue, []).append(job)

    # ------------------------------------------------------------------ turns

    def jobs(self) -> PriorityQueue[Job]:
        """An empty priority queue of jobs."""
        order = self._session.hooks.orders["job_order"]
        opinion = order.opinion
        if not self.holders or opinion is None:
            return HeapQueue(self.compare_jobs) if self.holders else order.priority_queue()

        def key(job: Job) -> tuple[Any, ...]:
            with self.without_job(job):
                return (*opinion(job), job.uid not in self.holders, *age_key(job))

        return SortedQueue(key)

    def queues(self) -> PriorityQueue[QueueInfo]:
        """An empty priority queue of queues."""
        order = self._session.hooks.orders["queue_order"]
        opinion = order.opinion
        if not self.holders or opinion is None:
            return HeapQueue(self.compare_queues) if self.holders else order.priority_queue()

        def key(queue: QueueInfo) -> tuple[Any, ...]:
            with self.without_queues(queue):
                return (*opinion(queue), queue.name not in self._by_queue, *queue_key(queue))

        return SortedQueue(key)

    def compare_jobs(self, left: Job, right: Job) -> int:
        """Negative: ``left`` comes first; for jobs of one queue."""
        with self.without_job(left), self.without_job(right):
            found: int = self._session.ask.job_order.opinion(left, right)
        return found or (right.uid in self.holders) - (left.uid in self.holders) or by_age(left, right)

    def compare_queues(self, left: QueueInfo, right: QueueInfo) -> int:
        """Negative: ``left`` comes first."""
        with self.without_queues(left, right):
            found: int = self._session.ask.queue_order.opinion(left, right)
        return found or (right.name in self._by_queue) - (left.name in self._by_queue) or by_queue(left, right)

    def in_turn(self) -> list[Job]:
        """The holders, first in turn first: queue by queue, and job by job within one."""
        queues = all_of(self.queues(), [self._session.queues[name] for name in self._by_queue])
        return [job for queue in queues for job in all_of(self.jobs(), self._by_queue[queue.name])]

    # ------------------------------------------------------------------ questions

    def is_overused(self, queue: QueueInfo) -> bool:
        """Whether the queue exceeds its share even without its reservations, which it could never use otherwise."""
        with self.without_queues(queue):
            return bool(self._session.ask.overused(queue))

    def is_above(self, job: Job, holder: Job) -> bool:
        """Whether the plugins put ``job`` strictly before ``holder`` if the latter had reserved nothing.

        What the incomplete holder has allocated in this session counts as reserved, too.
        """
        ask, queues = self._session.ask, self._session.queues
        amounts = holder.sums.reserved()
        for task in holder.of(ALLOCATED):
            add_to(amounts, task.template.vector)
        with left_out(self._session, holder, amounts):
            if job.queue == holder.queue:
                return int(ask.job_order.opinion(job, holder)) < 0
            return int(ask.queue_order.opinion(queues[job.queue], queues[holder.queue])) < 0

    # ------------------------------------------------------------------ as if nothing were reserved

    @contextmanager
    def without_job(self, job: Job) -> Iterator[None]:
        """Within the block the sums of a holder are as if it had not reserved anything; other jobs are not changed."""
        with _less([(job.sums.held, job.sums.reserved())] if job.uid in self.holders else ()):
            yield

    @contextmanager
    def without_queues(self, *queues: QueueInfo) -> Iterator[None]:
        """Within the block the sums of the queues, and of those above, are as if nothing were reserved in them."""
        holding = [queue for queue in queues if queue.name in self._by_queue]
        gaps = [gap for queue in holding for gap in _of_queue(self._session, queue.name, queue.sums.reserved())]
        jobs: list[Job] = []
        if self._session.ledger.followers:
            jobs = [job for queue in holding for job in self._by_queue[queue.name]]
            gaps += [(job.sums.held, job.sums.reserved()) for job in jobs]
        with _less(gaps), _followed(self._session, jobs):
            yield


@contextmanager
def left_out(session: SessionState, job: Job, amounts: Vector) -> Iterator[None]:
    """Within the block ``job``, its queue and those above hold less by ``amounts``; handlers are not notified."""
    with _less([(job.sums.held, amounts), *_of_queue(session, job.queue, amounts)]), _followed(session, [job]):
        yield


def _of_queue(session: SessionState, name: str, amounts: Vector) -> list[Gap]:
    sums = session.queues[name].sums
    return [(each, amounts) for each in (sums.held, *session.ledger.above.get(name, ()))]


@contextmanager
def _followed(session: SessionState, jobs: Iterable[Job]) -> Iterator[None]:
    """Mark ``jobs`` as changed for the followers of their sums, within the block and after it."""
    noted = {job.uid: None for job in jobs}
    for changed in session.ledger.followers:
        changed.update(noted)
    try:
        yield
    finally:
        for changed in session.ledger.followers:
            changed.update(noted)


@contextmanager
def _less(gaps: Sequence[Gap]) -> Iterator[None]:
    """Within the block the sums are reduced by their gaps."""
    for amounts, gap in gaps:
        add_to(amounts, gap, -1)
    try:
        yield
    finally:
        for amounts, gap in gaps:
            add_to(amounts, gap)
