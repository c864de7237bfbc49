"""What a queue deserves it keeps: the part of a list of victims that their queues hold beyond their shares."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.framework.session import Session
from stromboli.model.axes import CPU, MEMORY, PODS, Vector, add_to
from stromboli.model.resource import Resource
from stromboli.model.task import Task


def beyond_shares(session: Session, victims: Sequence[Task]) -> Sequence[Task]:
    """Those of ``victims``, one after the other, whose queues hold more than they deserve in some dimension by then.

    What a queue deserves is what a queue plugin says; queues of which none says anything are not protected.  In the
    reference's way nobody is: there only plugins whose tier is reached are asked.
    """
    if not victims or session.compat.asks("reclaim-shares"):
        return victims
    uids = dict.fromkeys([task.job for task in victims])
    jobs = {uid: session.jobs.peek_at(uid) for uid in uids}
    of = {uid: "" if job is None else job.queue for uid, job in jobs.items()}
    queues = [of[task.job] for task in victims]
    names = dict.fromkeys(of.values())
    if all(_stays_beyond(session, name, victims, queues) for name in names):
        return victims
    shares = {name: _share(session, name) for name in names}
    found: list[Task] = []
    for task, name in zip(victims, queues, strict=True):
        share = shares[name]
        if share is not None:
            held, deserved = share
            if not exceeds(held, deserved):
                continue
            add_to(held, task.template.vector, -1)
        found.append(task)
    return found


Share = tuple[list[int], Vector]
"""What a queue holds and what it deserves, by column."""


def _stays_beyond(session: Session, name: str, victims: Sequence[Task], queues: Sequence[str]) -> bool:
    """Whether cpu or memory alone shows that a queue keeps more than it deserves when all its victims are gone.

    Mostly it does, and then nobody needs to be counted one after the other.
    """
    queue = session.queues.get(name)
    deserved = None if queue is None else queue.figures.get("deserved")
    if queue is None or not isinstance(deserved, Resource):
        return True  # not protected
    held = queue.sums.held
    for column, share in ((CPU, int(deserved.milli_cpu)), (MEMORY, int(deserved.memory))):
        if column < len(held) and held[column] > share:
            leaving = [task.template.vector[column] for task, of in zip(victims, queues, strict=True) if of == name]
            if held[column] - sum(leaving) > share:
                return True
    return False


def _share(session: Session, name: str) -> Share | None:
    """What the queue of that name holds and deserves, by column; None where nobody says what it deserves."""
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
