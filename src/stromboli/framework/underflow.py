"""More given back than was held: told once, as an inconsistency of the queue; its sums stop at zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session

KEEPERS = ("capacity", "proportion", "drf")
"""Plugins that derive shares from what queues hold, the one that a queue belongs to first."""


def tell_underflow(session: Session, job: Job, task: Task, missing: Mapping[int, int]) -> None:
    """``task`` of ``job`` has left and the queue held less than it asks for: by column so much was ``missing``."""
    plugin = next((name for name in KEEPERS if name in session.plugins), "ledger")
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
    names = ", ".join(session.axes.names[column] for column in missing)
    session.plan.inconsistencies.append(f"queue {job.queue}: pod {task.key} gave back more than was held: {names}")
