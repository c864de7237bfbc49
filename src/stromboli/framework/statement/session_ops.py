"""Operations and questions of a session without a statement, for actions that handle one task and one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.framework.books.plan import Eviction
from stromboli.framework.engine.hooks import hooks_of
from stromboli.framework.engine.rows import Fit
from stromboli.framework.extension.reason import Reason
from stromboli.framework.statement.operation import Allocate, Pipeline, dispatch, take_back
from stromboli.framework.statement.statement import hand_over, where
from stromboli.model.job import ALLOCATED, PIPELINED, Job
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState


NODE_UNKNOWN = Reason("node info not found", resolvable=False)


def allocate(session: SessionState, task: Task, node: Node, *, heeds: bool = False) -> bool:
    """Place ``task`` on ``node`` for good; a job that is ready then is bound whole.

    It ignores objections of handlers unless it ``heeds`` them: then the task goes on waiting, and the answer is False.
    Raises PlacementError, nothing changed, when the job or the node is not in the session.
    """
    job, own, row = where(session, task, node.name, "binding")
    _release(session, job, own)
    if Allocate(job, (own,), (row,)).take(session) and heeds:
        take_back(session, job, (own,), (row,))
        return False
    session.statement_events.counters.placed(job, 1)
    if session.ask.job_ready(job):
        dispatch(session, job, list(job.of(ALLOCATED)))
        hand_over(session)
    return True


def pipeline(session: SessionState, task: Task, node_name: str) -> None:
    """Reserve room that is about to become free, ignoring objections of handlers.  Raises as :func:`allocate`."""
    job, own, row = where(session, task, node_name, "pipeline")
    _release(session, job, own)
    operation = Pipeline(job, (own,), (row,))
    operation.take(session)
    if session.reservations is not None:
        session.reservations.committed((operation,))


def _release(session: SessionState, job: Job, task: Task) -> None:
    """Release the reservation of ``task``, if it has one, before the task is placed."""
    if task.status is PIPELINED:
        take_back(session, job, (task,), (session.table.row(task.node_name),))
        if session.reservations is not None:
            session.reservations.wish(task, None)


def evict(session: SessionState, task: Task, reason: str) -> None:
    """Take ``task`` off its node for good.  Raises as :func:`allocate`."""
    job, own, row = where(session, task, task.node_name, "evicting")
    session.plan.evictions.append(Eviction(own.uid, own.key, job.uid, own.node_name, reason))
    session.ledger.evict(job, own, row)
    session.hooks.handlers.deallocated((own,), (row,))
    hand_over(session)


def predicate_nodes(session: SessionState, task: Task, nodes: Iterable[Node | None]) -> list[Node]:
    """Those of ``nodes`` that accept ``task``: no predicate refuses it, and it fits idle or future idle room.

    A task that holds a reservation on one of them gets that node alone, regardless of its room.  Nodes that have the
    task in another state are left out, and so is None.
    """
    known = [node for node in nodes if node is not None]
    if task.status is PIPELINED and (own := [node for node in known if node.name == task.node_name]):
        return own[:1]
    others = (node for node in known if node.name != task.node_name)
    return [node for node in others if has_room(task, node) and session.ask.predicate(task, node) is None]


def has_room(task: Task, node: Node, *, now: bool = False) -> bool:
    """Whether ``task`` fits the future idle room of ``node``; with ``now`` the idle room of this moment."""
    table = node.table
    fits = table.fits_now if now else table.will_fit
    return fits(task.template.vector, table.axes.deciding(task.request), node.row)


# ---------------------------------------------------------------------- questions


def questions(session: SessionState) -> Mapping[str, Callable[[Task, Node], Any]]:
    """Questions about one task and one node, answered by all predicates, singly or in batch form."""
    hooks = cache(partial(hooks_of, session.hooks.answers))

    def unless_unknown(ask: Callable[..., Reason | None]) -> Callable[[Task, Node], Reason | None]:
        return lambda task, node: _unknown(session, task, node) or ask(hooks().fits, task, node)

    return {
        "predicate": unless_unknown(refusal),
        "predicate_for_allocate": unless_unknown(refusal),
        "predicate_for_preempt": unless_unknown(lasting_refusal),
    }


def _unknown(session: SessionState, task: Task, node: Node) -> Reason | None:
    """Refuse a node of another session: its row may belong to a different node here."""
    if node.name in session.table.statics.row:
        return None
    session.tell("predicate_node_missing", task=task, node=node.name)
    return NODE_UNKNOWN


def refusal(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Reason | None:
    """The first reason of the predicates against ``task`` on ``node``, not counting room; None if there is none."""
    return next(_reasons(fits, task, node), None)


def lasting_refusal(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Reason | None:
    """The first reason that no eviction could resolve."""
    return next((reason for reason in _reasons(fits, task, node) if not reason.resolvable), None)


def _reasons(fits: Sequence[Sequence[Fit]], task: Task, node: Node) -> Iterator[Reason]:
    """Reasons plugin by plugin; a plugin's hooks are evaluated until one of them aborts."""
    alone = node.table.view(np.array([node.row], dtype=np.intp))
    for plugin in fits:
        for fit in plugin:
            masks = fit.masks(task, alone)
            bits = 0 if masks is None else int(masks[0])
            yield from (reason for bit, reason in enumerate(fit.reasons) if bits >> bit & 1)
            if bits & fit.abort_bits:
                break
