"""Which victim is evicted first: the order of every evicting action, and of the candidates that plugins are shown.

Within a job the last task goes first; between jobs of a queue the last job in the order of the plugins alone, in ties
the last task; between queues as the point ``victim_queue_order`` says.  A task whose job is unknown comes before all
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import HeapQueue
from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState


class VictimOrder:
    """The order of victims for a preemptor of ``queue`` (None: its job is unknown), as things stand when it is asked.

    ``sorted`` puts tasks into it, first victim first; ``priority_queue`` gives them one by one where evicting one may
    change the order of the others.
    """

    __slots__ = ("_queue", "_session")

    def __init__(self, session: SessionState, queue: QueueInfo | None) -> None:
        self._session, self._queue = session, queue

    def compare(self, left: Task, right: Task) -> int:
        """Negative: ``left`` is evicted first."""
        session = self._session
        mine, theirs = session.job_of(left), session.job_of(right)
        if mine is None or theirs is None:
            return (mine is not None) - (theirs is not None) or -session.ask.task_order(left, right)
        if mine is theirs:
            return -session.ask.task_order(left, right)
        if self._queue is None or mine.queue == theirs.queue:
            return -(session.ask.job_order.opinion(mine, theirs) or session.ask.task_order(left, right))
        queues = session.queues
        return session.ask.victim_queue_order(queues[mine.queue], queues[theirs.queue], self._queue)

    def sorted(self, tasks: Sequence[Task]) -> list[Task]:
        """``tasks`` in the order in which they are evicted."""
        if len(tasks) < 2:
            return list(tasks)
        jobs = self.jobs(tasks)
        if jobs is None:
            return sorted(tasks, key=cmp_to_key(self.compare))
        found: list[Task] = []
        for group in self._by_queue(tasks, jobs):
            found += self._within_queue(group, jobs)
        return found

    def priority_queue(self, tasks: Sequence[Task]) -> HeapQueue[Task]:
        """A priority queue of ``tasks``, which are in this order.

        The order of those that still wait follows what is evicted in between.
        """
        return HeapQueue(self.compare, tasks)

    def jobs(self, tasks: Sequence[Task]) -> dict[str, Job] | None:
        """The jobs of ``tasks`` by uid; None where the order within a queue has no key."""
        session, hooks = self._session, self._session.hooks
        if hooks.task_keys is None or hooks.orders["job_order"].opinion is None:
            return None
        indexed = sum([task.index >= 0 for task in tasks])
        if 0 < indexed < len(tasks):
            return None
        jobs: dict[str, Job] = {}
        for task in tasks:
            if task.job not in jobs:
                job = session.jobs.peek_at(task.job)
                if job is None:
                    return None
                jobs[task.job] = job
        return jobs

    def _within_queue(self, tasks: Sequence[Task], jobs: Mapping[str, Job]) -> list[Task]:
        """``tasks`` of one queue, or of any where queues do not count, in the order in which they are evicted."""
        hooks = self._session.hooks
        keys, opinion = hooks.task_keys or (), hooks.orders["job_order"].opinion
        uids = dict.fromkeys([task.job for task in tasks])
        # of a single job nothing needs to be known: its tasks are compared with each other alone
        ranks = {uid: opinion(jobs[uid]) if opinion and len(uids) > 1 else () for uid in uids}
        entries = [
            (ranks[task.job], [key(task) for key in keys], task.index, task.created, task.uid, place)
            for place, task in enumerate(tasks)
        ]
        entries.sort(reverse=True)
        return [tasks[entry[-1]] for entry in entries]

    def _by_queue(self, tasks: Sequence[Task], jobs: Mapping[str, Job]) -> list[Sequence[Task]]:
        """``tasks`` queue by queue, in the order of their queues."""
        groups: dict[str, list[Task]] = {}
        names = {uid: job.queue for uid, job in jobs.items()}
        if self._queue is None or len(set(names.values())) < 2:
            return [tasks]
        for task in tasks:
            groups.setdefault(names[task.job], []).append(task)
        return [groups[name] for name in self.queues_in_turn(groups)]

    def queues_in_turn(self, names: Iterable[str]) -> list[str]:
        """Queues in the order in which their tasks are evicted; as they come where that does not count."""
        found = list(names)
        if self._queue is None or len(found) < 2:
            return found
        queues, ask = self._session.queues, self._session.ask.victim_queue_order

        def compare(left: str, right: str) -> int:
            return ask(queues[left], queues[right], self._queue)

        return sorted(found, key=cmp_to_key(compare))


def one_job(tasks: Sequence[Task]) -> bool:
    """Whether all are of one job, so that evicting one leaves the order of the others alone."""
    return all(task.job == tasks[0].job for task in tasks)


__all__ = ["VictimOrder", "one_job"]
