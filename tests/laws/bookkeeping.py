"""Every sum that a session keeps, in a form that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.session import Session
from stromboli.model.table import AMOUNTS
from stromboli.model.task import Task
from stromboli.plugin import Plugin, on_allocate, on_deallocate


class Counts(Plugin):
    """Keeps what every task holds by events alone, and objects to some placements."""

    name = "counts"

    def on_session_open(self, session: ClusterView) -> None:
        self.held: Counter[str] = Counter()

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        self.held[event.task.uid] += 1
        if event.task.uid.endswith("3") and event.task.node_name.endswith("1"):
            event.err = "no threes on node 1"

    @on_allocate.many
    def came_many(self, task: Task, rows: Sequence[int]) -> None:
        self.held[task.job] += len(rows)

    @on_deallocate
    def left(self, event: TaskEvent) -> None:
        self.held[event.task.uid] -= 1

    @on_deallocate.many
    def left_many(self, task: Task, rows: Sequence[int]) -> None:
        self.held[task.job] -= len(rows)


def trimmed(vector: Iterable[int]) -> tuple[int, ...]:
    """A vector without the zeros at its end, which say nothing."""
    found = list(vector)
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def books(session: Session) -> dict[str, Any]:
    """Every sum of a session: nodes, jobs, queues, what plugins count, and what the log adds up to."""
    net: Counter[tuple[str, int]] = Counter()
    for task, row, sign in session.ledger.log:
        net[task.uid, row] += sign
    counts = session.plugins["counts"]
    assert isinstance(counts, Counts)
    return {
        "nodes": {name: getattr(session.table, name).tolist() for name in AMOUNTS},
        "jobs": {job.uid: job_books(job) for job in session.jobs.peek()},
        "queues": {
            name: [trimmed(getattr(queue.sums, part)) for part in ("allocated", "held", "request", "inqueue")]
            for name, queue in session.queues.items()
        },
        "log": {place: number for place, number in net.items() if number},
        "held": {uid: number for uid, number in counts.held.items() if number},
        "plan": len(session.plan.binds) + len(session.plan.evictions),
    }


def job_books(job: Any) -> Any:
    sums = [trimmed(getattr(job.sums, part)) for part in ("allocated", "held", "request", "total")]
    index = {status: sorted(members) for status, members in job.index.items()}
    return sums, index, {task.uid: (task.status, task.node_name) for task in job.tasks.values()}


def below_zero(session: Session) -> list[str]:
    """Names of sums that are below zero."""
    table = session.table
    found = [name for name in ("used", "releasing", "pipelined") if (getattr(table, name) < 0).any()]
    for job in session.jobs.peek():
        found += [f"{job.uid} {part}" for part in ("allocated", "held", "request", "total") if is_below(job.sums, part)]
    for name, queue in session.queues.items():
        found += [
            f"{name} {part}" for part in ("allocated", "held", "request", "inqueue") if is_below(queue.sums, part)
        ]
        found += [f"{name} branch"] if min(queue.branch, default=0) < 0 else []
    for plugin in session.plugins.values():
        for name, account in getattr(plugin, "accounts", {}).items():
            found += [f"{plugin.name} {name}"] if min(account.held, default=0) < 0 else []
    return found


def is_below(sums: Any, part: str) -> bool:
    return min(getattr(sums, part), default=0) < 0
