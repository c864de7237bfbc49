"""Protection of deserved shares: the victims that their queues hold beyond what they deserve."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.framework.session.session import Session
from stromboli.model.resources.axes import CPU, MEMORY, PODS, Vector, add_to
from stromboli.model.resources.resource import Resource
from stromboli.model.task import Task


def beyond_shares(session: Session, victims: Sequence[Task]) -> Sequence[Task]:
    """The ``victims``, one after the other, whose queues still hold more than they deserve in some dimension.

    A queue plugin decides what a queue deserves; without one a queue is not protected.  In the reference's mode
    no queue is, because there only plugins decide whose tier is reached.
    """
    if not victims or session.compat.asks("reclaim-shares"):
        return victims
    queues = _queues(session, victims)
    names = dict.fromkeys(queues)
    if all(_stays_beyond(session, name, victims, queues) for name in names):
        return victims
    shares = {name: _share(session, name) for name in names}
    return [task for task, name in zip(victims, queues, strict=True) if _take(task, shares[name])]


def _queues(session: Session, victims: Sequence[Task]) -> list[str]:
    """The queue of each victim; empty for tasks without a job."""
    jobs = map(session.jobs.peek_at, [task.job for task in victims])
    return ["" if job is None else job.facts.queue for job in jobs]


def _take(task: Task, share: Share | None) -> bool:
    """Whether ``task`` may be evicted, as its queue holds more than its ``share``; if so, it is taken off."""
    if share is None:
        return True
    held, deserved = share
    if not exceeds(held, deserved):
        return False
    add_to(held, task.template.vector, -1)
    return True


Share = tuple[list[int], Vector]
"""What a queue holds and what it deserves, by column."""


def _stays_beyond(session: Session, name: str, victims: Sequence[Task], queues: Sequence[str]) -> bool:
    """Whether cpu or memory alone shows that a queue exceeds what it deserves even without all its victims.

    Mostly it does, and then the victims do not have to be counted one after the other.
    """
    queue = session.queues.get(name)
    deserved = None if queue is None else queue.figures.get("deserved")
    if queue is None or not isinstance(deserved, Resource):
        return True  # not protected
    held = queue.sums.held
    for column, share in ((CPU, int(deserved.milli_cpu)), (MEMORY, int(deserved.memory))):
        if column < len(held) and held[column] > share:
            leaving = 0
            for task, of in zip(victims, queues, strict=True):
                if of == name:
                    leaving += task.template.vector[column]
            if held[column] - leaving > share:
                return True
    return False


def _share(session: Session, name: str) -> Share | None:
    """What the queue of that name holds and deserves, by column; None if no plugin says what it deserves."""
    queue = session.queues.get(name)
    deserved = None if queue is None else queue.figures.get("deserved")
    if queue is None or not isinstance(deserved, Resource):
        return None
    return session.axes.full(queue.sums.held), session.axes.vector(deserved)


def exceeds(held: Vector, deserved: Vector) -> bool:
    """Whether ``held`` is more than ``deserved`` in some dimension; pods count only where a share of them is stated."""
    for column, amount in enumerate(held):
        if amount and amount > deserved[column] and (column != PODS or deserved[PODS]):
            return True
    return False
