"""Events of the placing of tasks: what is looked at, what is refused, and where jobs and their parts come to lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import Job
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Ints, Rows
from stromboli.model.task import Task
from stromboli.narration.observe import AmountRows, OnAxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.framework.engine.fits import Fits
    from stromboli.framework.engine.placement import Choice
    from stromboli.framework.engine.rows import Bools
    from stromboli.framework.session.session import Session


class PlacementEvents:
    """Reports the events of the placing of tasks in one action; an event without an observer costs one comparison."""

    __slots__ = (
        "_compared", "_filtered", "_gate", "_limited", "_no_scores", "_nodes", "_overused", "_part_pipelined",
        "_part_ready", "_pipelining", "_pre_predicate", "_predicates", "_role", "_session",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self._session, tells = session, session.tells
        self._nodes, self._filtered = tells("nodes_for_job"), tells("node_filtered")
        self._compared = session.narrator.tells_all("considering_resources")
        self._overused, self._gate = tells("queue_overused_task"), tells("queue_gate_removed")
        self._role, self._no_scores = tells("task_role_failed"), tells("batch_score_failed")
        self._pre_predicate, self._predicates = tells("pre_predicate_failed"), tells("predicates_failed")
        self._limited, self._pipelining = tells("limited_resources"), tells("pipelining")
        self._part_ready, self._part_pipelined = tells("sub_job_ready"), tells("sub_job_pipelined")

    # ------------------------------------------------------------------ tasks

    def looking(self, job: Job, task: Task, nodes: int, within: Bools | None) -> None:
        """So many ``nodes``, those ``within``, are looked at for ``task`` of ``job``."""
        if say := self._nodes:
            say(nodes=nodes, job=job)
        if self._compared or self._filtered:
            self._consider(task, within)

    def _consider(self, task: Task, within: Bools | None) -> None:
        """For every node the request of ``task`` and the idle room; then the nodes that are too small in any case."""
        table = self._session.table
        rows = np.arange(len(table), dtype=np.intp) if within is None else np.flatnonzero(within)
        idle = table.idle[:, rows]
        names = [table.statics.names[row] for row in rows.tolist()]
        if names and (compared := self._compared):
            columns = {"task": (task.key,), "node": names, "request": (task.request,)}
            compared(len(names), {**columns, "idle": AmountRows(table.axes, idle.T)})
        if filtered := self._filtered:
            future = AmountRows(table.axes, table.future[:, rows].T)
            for place in np.flatnonzero(_too_small(task, table.future, rows)).tolist():
                left = AmountRows(table.axes, idle.T)[place]
                filtered(node=names[place], idle=left, future_idle=future[place], name=task.name)

    def overused(self, queue: str, task: Task) -> None:
        """The ``queue`` may not have ``task``."""
        if say := self._overused:
            say(queue=queue, name=task.name)

    def gate_removed(self, task: Task) -> None:
        """``task`` has its quota, so that the scheduler's own gate goes."""
        if say := self._gate:
            say(task=task)

    def role_failed(self, task: Task) -> None:
        """A task of the same role has found no node before ``task``."""
        if say := self._role:
            say(name=task.name, role=task.role)

    def refused_beforehand(self, task: Task, text: str) -> None:
        """A plugin refuses ``task`` on every node, for the reason ``text``."""
        if say := self._pre_predicate:
            say(task=task, error=text)

    def no_scores(self, error: Exception) -> None:
        """The scores of nodes cannot be used."""
        if say := self._no_scores:
            say(error=error)

    def no_node(self, fits: Fits) -> None:
        """A task has found no node; ``fits`` are the reasons."""
        if say := self._predicates:
            say(error=fits.text)

    def placing(self, tasks: Sequence[Task], choice: Choice) -> None:
        """``tasks`` are about to take the rows of ``choice``."""
        if choice.kind is OperationKind.ALLOCATE:
            self._session.statement_events.binding(tasks, choice.rows)
        elif self._limited or self._pipelining:
            for task, row in zip(tasks, choice.rows, strict=True):
                self._waits(task, row)

    def _waits(self, task: Task, row: int) -> None:
        node = self._session.table.statics.names[row]
        if say := self._limited:
            say(task=task, node=node)
        if say := self._pipelining:
            releasing = OnAxes(self._session.axes, tuple(self._session.table.releasing[:, row].tolist()))
            say(task=task, node=node, request=task.request, releasing=releasing)

    # ------------------------------------------------------------------ parts and jobs

    def part_ready(self, job: Job, part: SubJob) -> None:
        """``part`` of ``job`` has all that it needs."""
        if say := self._part_ready:
            say(job=job.uid, sub_job=part.uid)

    def part_pipelined(self, job: Job, part: SubJob) -> None:
        """``part`` of ``job`` has all that it needs, some of it once other pods have gone."""
        if say := self._part_pipelined:
            say(job=job.uid, sub_job=part.uid)


def _too_small(task: Task, future: Ints, rows: Rows) -> Bools:
    """Which of ``rows`` will lack something of the request even when all that is ending is gone; shape (rows,)."""
    vector = task.template.vector
    request = np.array(vector, dtype=np.int64)[:, None]
    short: Bools = np.any((request > 0) & (request > future[: len(vector), rows]), axis=0)
    return short
