"""Negative amounts: more was given back than was held, or more is reserved on a node than will be free there.

If a queue gets back more than it holds, that is reported once, as its inconsistency; its sums stop at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.extension.plugin import Plugin
from stromboli.model.job import Job
from stromboli.model.task import Task


class WithPlugins(ClusterView, Protocol):
    """A view that says which plugins are in the session."""

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """The plugins by name."""
        ...


def tell_underflow(session: WithPlugins, job: Job, task: Task, missing: Mapping[int, int]) -> None:
    """``task`` of ``job`` has left and the queue held less than it asks for: by column so much was ``missing``."""
    keeper = max(session.plugins.values(), key=lambda each: each.queue_accounts, default=None)
    plugin = keeper.name if keeper is not None and keeper.queue_accounts else "ledger"
    wanted = task.template.vector
    for column, amount in missing.items():
        fields = {
            "dimension": session.axes.names[column],
            "wanted": wanted[column],
            "allocated": wanted[column] - amount,
        }
        if say := session.tells("dealloc_underflow"):
            say(plugin=plugin, kind="queue", name=job.queue, task=task, **fields)
    if say := session.tells("metric.dealloc_underflow"):
        say(plugin=plugin)
    names = ", ".join(session.axes.names_of(missing, task.request))
    session.plan.inconsistencies.append(f"queue {job.queue}: pod {task.key} gave back more than was held: {names}")


def tell_future_short(session: ClusterView, rows: Iterable[int]) -> None:
    """Tell of those of ``rows`` where more is reserved than is idle or about to become so, and what is short."""
    if (say := session.tells("resources_insufficient")) is None:
        return
    axes, table = session.axes, session.table
    for row in rows:
        free = table.unreserved(row).tolist()
        reserved = axes.resource(table.pipelined[:, row].tolist())
        axes.resource(free).sub_without_assert(reserved, say)
