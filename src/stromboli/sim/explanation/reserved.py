"""What a job's pods hold while they wait: on which node, since when, and which pods have to end first."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.framework.session.session import Session
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.task import Task
from stromboli.model.values.times import stamp

SHOWN = 3
"""How many names are listed before the others are only counted."""


def reserved_text(session: Session, job: Job) -> str:
    """One sentence on the room that pods of ``job`` wait for; empty if none does."""
    reserved = list(job.of(PIPELINED))
    if not reserved:
        return ""
    held = [task for task in reserved if _is_held(session, task)]
    if len(held) == 1:
        return f"{held[0].name} {_held(session, held[0])}"
    if held:
        nodes = _some(sorted({task.node_name for task in held}))
        return f"{len(held)} pods hold reservations on {nodes}: {_waits_for(_victims(session, held), many=True)}"
    nodes = ", ".join(sorted({task.node_name for task in reserved})[:SHOWN])
    return f"{len(reserved)} pods wait for room that is about to become free on {nodes}"


def reserved_lines(session: Session, job: Job) -> Iterator[str]:
    """A line for each pod of ``job`` that holds a reservation, in the order of their turns."""
    for task in session.tasks_in_turn(list(job.of(PIPELINED))):
        if _is_held(session, task):
            yield f"{task.name} {_held(session, task)}"


def _held(session: Session, task: Task) -> str:
    waits = _waits_for(_victims(session, [task]))
    return f"holds a reservation on node {task.node_name}{_since(session, task)}, {waits}"


def _is_held(session: Session, task: Task) -> bool:
    """Whether the room that ``task`` waits for is its own beyond the session."""
    return session.reservations is not None and session.reservations.will_hold(task)


def _since(session: Session, task: Task) -> str:
    """Since when, where that is known: pods do not say."""
    when = session.reservations.shown_since(task) if session.reservations is not None else None
    return "" if when is None else f" since {stamp(when)}"


def _victims(session: Session, held: list[Task]) -> list[str]:
    """Names of the pods that are ending on the nodes of ``held``."""
    rows = {session.table.statics.row[task.node_name] for task in held}
    ending = (task for row in sorted(rows) for task in session.snapshot.node_tasks[row].values())
    return sorted(task.name for task in ending if _status(session, task) is RELEASING)


def _status(session: Session, task: Task) -> object:
    job = session.job_of(task)
    own = job.tasks.get(task.uid) if job is not None else None
    return (own or task).status


def _waits_for(victims: list[str], *, many: bool = False) -> str:
    """What a pod waits for, or ``many`` pods."""
    verb = "they wait" if many else "waits"
    if not victims:
        return f"{verb} for {'their' if many else 'its'} turn"
    return f"{verb} for {'victim ' if len(victims) == 1 else ''}{_some(victims)} to end"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
