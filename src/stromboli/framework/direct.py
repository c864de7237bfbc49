"""What a session does and answers directly, without a statement: for actions that look at one task and one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.framework.operation import Entry, Operation
from stromboli.framework.plan import Eviction
from stromboli.framework.reason import Reason
from stromboli.framework.rows import Fit
from stromboli.framework.statement import come, dispatch, hand_over, where
from stromboli.model.axes import fits
from stromboli.model.job import ALLOCATED, PIPELINED, Job
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


def allocate(session: Session, task: Task, node: Node) -> None:
    """Place ``task`` on ``node`` for good, whatever handlers object; a job that is ready then is bound as a whole.

    Raises PlacementError, nothing changed, when the job or the node is not in the session.
    """
    job, own, row = where(session, task, node.name)
    _let_go(session, job, own)
    come(session, job, (own,), (row,), Operation.ALLOCATE)
    session.tally.placed(job, 1)
    if session.ask.job_ready(job):
        dispatch(session, job, list(job.of(ALLOCATED)))
        hand_over(session)


def pipeline(session: Session, task: Task, node_name: str) -> None:
    """Reserve room that is about to become free for ``task``, whatever handlers object.  Raises as :func:`allocate`."""
    job, own, row = where(session, task, node_name)
    _let_go(session, job, own)
    come(session, job, (own,), (row,), Operation.PIPELINE)
    if session.reservations is not None:
        session.reservations.committed((Entry(Operation.PIPELINE, job, (own,), (row,)),))


def _let_go(session: Session, job: Job, task: Task) -> None:
    """A reservation ends before its task is placed, there or elsewhere."""
    if task.status is PIPELINED:
        session.take_back(job, (task,), (session.table.row(task.node_name),))
        if session.reservations is not None:
            session.reservations.wish(task, None)


def evict(session: Session, task: Task, reason: str) -> None:
    """Take ``task`` off its node for good.  Raises as :func:`allocate`."""
    job, own, row = where(session, task, task.node_name)
    session.plan.evictions.append(Eviction(own.uid, own.key, job.uid, own.node_name, reason))
    session.ledger.evict(job, own, row)
    session.handlers.deallocated((own,), (row,))
    hand_over(session)


def predicate_nodes(session: Session, task: Task, nodes: Iterable[Node | None]) -> list[Node]:
    """Those of ``nodes`` that take ``task``: no predicate refuses it, and it fits what is idle or will be.

    A task that holds a reservation on one of them gets that one alone, whatever room it has.  A node that has the task
    in another state is left out, and so is what is no node.
    """
    known = [node for node in nodes if node is not None]
    if task.status is PIPELINED and (own := [node for node in known if node.name == task.node_name]):
        return own[:1]
    others = (node for node in known if node.name != task.node_name)
    return [node for node in others if has_room(task, node) and session.ask.predicate(task, node) is None]


def has_room(task: Task, node: Node, *, now: bool = False) -> bool:
    """Whether ``task`` fits what is idle on ``node``, or will be; ``now``: what is idle at this moment."""
    table, row = node.table, node.row
    room = (table.alloc[:, row] - table.used[:, row]).tolist() if now else table.future_of(row)
    return fits(task.template.vector, room, table.axes.deciding(task.request))


# ---------------------------------------------------------------------- questions


def questions(session: Session) -> Mapping[str, Callable[[Task, Node], Any]]:
    """Questions about one task and one node, answered by all predicates, whatever form their hooks have."""
    hooks = cache(session.answers.hooks)
    return {
        "predicate": lambda task, node: refusal(hooks().fits, task, node),
        "predicate_for_allocate": lambda task, node: refusal(hooks().fits, task, node),
        "predicate_for_preempt": lambda task, node: lasting_refusal(hooks().fits, task, node),
    }


def refusal(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Reason | None:
    """The first reason of the predicates against ``task`` on ``node``, room aside; None where it fits."""
    return next(_reasons(fits, task, node), None)


def lasting_refusal(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Reason | None:
    """The first of them that no eviction could cure."""
    return next((reason for reason in _reasons(fits, task, node) if not reason.resolvable), None)


def _reasons(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Iterator[Reason]:
    """Reasons plugin by plugin; a plugin's hooks are asked until one of them aborts."""
    alone = node.table.view(np.array([node.row], dtype=np.intp))
    for plugin in fits:
        for fit in plugin:
            masks = fit.masks(task, alone)
            bits = 0 if masks is None else int(masks[0])
            yield from (reason for bit, reason in enumerate(fit.reasons) if bits >> bit & 1)
            if bits & fit.abort_bits:
                break
