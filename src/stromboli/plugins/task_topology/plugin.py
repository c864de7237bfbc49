"""The plugin: the order of a job's tasks, and scores of nodes, by the buckets that its annotations make."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.job import PENDING
from stromboli.model.table import NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Hook, Plugin, arg, batch_node_order, on_allocate, on_deallocate, task_order
from stromboli.plugins.task_topology.buckets import Buckets, name_of
from stromboli.plugins.task_topology.room import Rooms
from stromboli.plugins.task_topology.wishes import read

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

Floats = npt.NDArray[np.float64]

MAX_SCORE = 100


class TaskTopology(Plugin, trusted=True):
    """Puts tasks of a job on the same node, or on different ones, as annotations of its PodGroup say.

    Tasks that belong together share a bucket; a node is the better the more of a task's bucket it holds or has room
    for: 100 x ``task-topology.weight`` for the whole of the job's largest bucket.
    """

    name = "task-topology"
    weight = arg("task-topology.weight", int, 1)

    def on_session_open(self, session: ClusterView) -> None:
        """Make the buckets of the jobs that wait."""
        self.session = session
        self._jobs: dict[str, Buckets] = {}
        self._rooms = Rooms(session.ledger)
        for job in session.active_jobs():
            if PENDING in job.index:
                wishes, problem = read(job)
                if problem:
                    session.tell("task_topology_invalid", job=job.uid, error=problem)
                    session.pod_groups.record_event(job, "Warning", "TaskTopologyIgnored", problem)
                if wishes is not None:
                    self._jobs[job.uid] = Buckets(job, wishes, session.table.statics.row)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks, none where no job has such wishes; scores go by bucket, task and template."""
        for hook, function in super().hooks() if self._jobs else ():
            yield (replace(hook, key=self._kind) if hook.form == "raw" else hook), function

    def _kind(self, task: Task) -> Hashable:
        buckets = self._jobs.get(task.job)
        bucket = buckets.of.get(task.uid) if buckets is not None else None
        return None if bucket is None else (task.template, task.job, bucket.index, name_of(task))

    # ------------------------------------------------------------------ order

    @task_order
    def larger_buckets_first(self, left: Task, right: Task) -> int:
        """Tasks in buckets first, those of buckets with more waiting tasks before; within a bucket as annotated."""
        lefts = self._jobs.get(left.job)
        rights = lefts if left.job == right.job else self._jobs.get(right.job)
        if lefts is None or rights is None:
            return 0
        one, other = lefts.of.get(left.uid), rights.of.get(right.uid)
        if one is None or other is None:
            return (one is None) - (other is None)
        if left.job != right.job:
            return 0
        if one is not other:
            return (other.waits - one.waits) or one.index - other.index
        first, second = lefts.ranks[left.uid], lefts.ranks[right.uid]
        return (first > second) - (first < second)

    # ------------------------------------------------------------------ nodes

    @batch_node_order.raw(reads=("job",), normalise="as_it_is")
    def with_its_bucket(self, task: Task, nodes: NodeRows) -> Floats | None:
        """How much of its bucket ``task`` would have with it on each row."""
        buckets = self._jobs.get(task.job)
        if buckets is None or task.uid not in buckets.of:
            return None
        room = self._rooms.of(task.template, nodes)
        found = buckets.score(task, nodes, room.more) * float(self.weight) * MAX_SCORE / max(buckets.most, 1)
        return np.where(room.fits, found, 0.0)

    def as_it_is(self, _task: Task, raw: Floats, _low: float, _high: float) -> Floats:
        """Scores that do not depend on the candidates."""
        return raw

    # ------------------------------------------------------------------ keeping up

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Count a task on its node."""
        if (buckets := self._jobs.get(event.task.job)) is not None:
            buckets.placed(event.task)

    @on_deallocate
    def taken_back(self, event: TaskEvent) -> None:
        """Count a task on its node no longer."""
        buckets = self._jobs.get(event.task.job)
        if buckets is not None and not self.session.compat.asks("task-topology-undo"):
            buckets.taken_back(event.task)
