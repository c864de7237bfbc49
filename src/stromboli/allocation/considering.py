"""What is told of the nodes that are looked at for one task: what it asks for, and what each has left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.session.session import Session
from stromboli.model.table import Ints, Rows
from stromboli.model.task import Task
from stromboli.narration.observe import AmountRows, BulkTeller, Teller

if TYPE_CHECKING:
    from stromboli.framework.engine.rows import Bools

Consider = Callable[[Task, "Bools | None"], None]
"""Tells, for every node of the mask, the task's request and the idle room; then the nodes that it fits never."""


def considering(session: Session) -> Consider | None:
    """What to call for every task for which nodes are looked at; None where nothing listens."""
    compared, filtered = session.narrator.tells_all("considering_resources"), session.tells("node_filtered")
    return partial(_consider, session, compared, filtered) if compared or filtered else None


def _consider(
    session: Session, compared: BulkTeller | None, filtered: Teller | None, task: Task, within: Bools | None
) -> None:
    table = session.table
    rows = np.arange(len(table), dtype=np.intp) if within is None else np.flatnonzero(within)
    idle = table.idle[:, rows]
    names = [table.statics.names[row] for row in rows.tolist()]
    if compared and names:
        columns = {"task": (task.key,), "node": names, "request": (task.request,)}
        compared(len(names), {**columns, "idle": AmountRows(table.axes, idle.T)})
    if filtered:
        future = AmountRows(table.axes, table.future[:, rows].T)
        for place in np.flatnonzero(_too_small(task, table.future, rows)).tolist():
            left = AmountRows(table.axes, idle.T)[place]
            filtered(node=names[place], idle=left, future_idle=future[place], name=task.name)


def _too_small(task: Task, future: Ints, rows: Rows) -> Bools:
    """Which of ``rows`` will lack something of the request even when all that is ending is gone; shape (rows,)."""
    vector = task.template.vector
    request = np.array(vector, dtype=np.int64)[:, None]
    short: Bools = np.any((request > 0) & (request > future[: len(vector), rows]), axis=0)
    return short
