"""Protection of deserved shares: the victims that their queues hold beyond what they deserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

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
    leaving = partial(_leaving, victims, queues)
    if all(stays_beyond(session, name, partial(leaving, name)) for name in names):
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


def _leaving(victims: Sequence[Task], queues: Sequence[str], name: str, column: int) -> int:
    """How much of ``column`` the queue of that name loses with its ``victims``."""
    return sum([task.template.vector[column] for task, of in zip(victims, queues, strict=True) if of == name])


def stays_beyond(session: Session, name: str, leaving: Callable[[int], int]) -> bool:
    """Whether cpu or memory alone shows that a queue exceeds what it deserves even without all its victims.

    ``leaving`` says how much of a column they hold, or more.  Mostly it does, and then the victims do not have to be
    counted one after the other.
    """
    queue = session.queues.get(name)
    deserved = None if queue is None else queue.figures.get("deserved")
    if queue is None or not isinstance(deserved, Resource):
        return True  # not protected
    held = queue.sums.held
    return _exceeds(held, CPU, deserved.milli_cpu, leaving) or _exceeds(held, MEMORY, deserved.memory, leaving)


def _exceeds(held: Vector, column: int, share: float, leaving: Callable[[int], int]) -> bool:
    least = int(share)
    return column < len(held) and held[column] > least and held[column] - leaving(column) > least


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
