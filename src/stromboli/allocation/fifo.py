"""Queues of ``dequeueStrategy: fifo``: while a job waits, those behind it in the queue's order wait, too."""

from __future__ import annotations

from stromboli.api.scheduling import FIFO
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.priority_queue import PriorityQueue
from stromboli.framework.session.session import Session
from stromboli.model.job import Job


def is_fifo(session: Session, queue: QueueInfo) -> bool:
    """Whether the jobs of ``queue`` start in order."""
    return queue.spec.dequeue_strategy == FIFO and not session.compat.asks("dequeue-strategy")


def hold_back(waiting: PriorityQueue[Job], queue: QueueInfo) -> None:
    """Take all jobs out of ``waiting``; each says why.  The text does not name the first job, which changes often."""
    text = f"a job before it waits, and queue {queue.name} starts jobs in order (dequeueStrategy: fifo)"
    while len(waiting):
        waiting.pop().fit_error_text = text
