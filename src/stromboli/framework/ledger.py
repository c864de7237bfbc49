"""Where a session's sums change: nodes, jobs and queues together, one move at a time, each move with its reverse.

Statement and the session's direct calls are the only users.  Amounts are whole numbers, so taking a move back leaves
every sum exactly as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stromboli.model.axes import add_to
from stromboli.model.job import ALLOCATED, BINDING, PENDING, PIPELINED, RELEASING, RUNNING, Job
from stromboli.model.snapshot import QueueSums
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints, NodeTable
from stromboli.model.task import Placement, PodTemplate, Task

LogEntry = tuple[Task, int, int]
"""A task, a row of the node table, and +1 where it came or -1 where it left."""


class Ledger:
    """The books of one session.

    ``log`` lists every task that came to a node or left it since the session opened, undone moves included.
    ``follow`` says whether Kubernetes' view of the nodes (``requested``, ``nonzero``) keeps up with placements.
    """

    __slots__ = ("_arrays", "_queues", "follow", "log", "table")

    def __init__(self, table: NodeTable, queues: Mapping[str, QueueSums]) -> None:
        self.table = table
        self._queues = queues
        self._arrays: dict[int, tuple[Ints, Ints]] = {}
        self.log: list[LogEntry] = []
        self.follow = True

    def arrays(self, template: PodTemplate) -> tuple[Ints, Ints]:
        """The request (one entry a resource) and the non-zero request (cpu, memory) of ``template`` as arrays."""
        found = self._arrays.get(template.number)
        if found is None:
            request = np.zeros(len(self.table.alloc), dtype=np.int64)  # names may have come since the table was made
            request[: len(template.vector)] = template.vector
            found = self._arrays[template.number] = request, np.array(template.nonzero, dtype=np.int64)
        return found

    # ------------------------------------------------------------------ moves

    def come(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        """Pending ``tasks`` of one template take their place on ``rows`` as Allocated or Pipelined."""
        names = self.table.statics.names
        for task, row in zip(tasks, rows, strict=True):
            task.node_name = names[row]
        job.move(tasks, status)
        self._queue(job, tasks[0].template, status, len(tasks))
        self._nodes(tasks[0].template, rows, "pipelined" if status is PIPELINED else "used", 1)
        self.log += [(task, row, 1) for task, row in zip(tasks, rows, strict=True)]

    def leave(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Allocated, Binding or Pipelined ``tasks`` become Pending again; their nodes get the room back."""
        status = tasks[0].status
        self._queue(job, tasks[0].template, status, -len(tasks))
        self._nodes(tasks[0].template, rows, "pipelined" if status is PIPELINED else "used", -1)
        job.move(tasks, PENDING)
        for task in tasks:
            task.node_name = ""
        self.log += [(task, row, -1) for task, row in zip(tasks, rows, strict=True)]

    def evict(self, job: Job, task: Task, row: int) -> None:
        """A running task begins to end: its room becomes future idle."""
        self._queue(job, task.template, task.status, -1)
        job.move([task], RELEASING)
        self._amount(task.template, "releasing", row, 1)
        self._follow(task.template, row, -1)
        self.table.journal.append(row)
        self.log.append((task, row, -1))

    def unevict(self, job: Job, task: Task, row: int) -> None:
        """The reverse of :meth:`evict`; the task is Running again, whatever it was before."""
        job.move([task], RUNNING)
        self._queue(job, task.template, RUNNING, 1)
        self._amount(task.template, "releasing", row, -1)
        self._follow(task.template, row, 1)
        self.table.journal.append(row)
        self.log.append((task, row, 1))

    # ------------------------------------------------------------------ sums

    def _queue(self, job: Job, template: PodTemplate, status: TaskStatus, times: int) -> None:
        sums = self._queues.get(job.queue)
        if sums is None:
            return
        add_to(sums.held, template.vector, times)
        if status is not PIPELINED:
            add_to(sums.allocated, template.vector, times)

    def _nodes(self, template: PodTemplate, rows: Sequence[int], column: str, sign: int) -> None:
        self.table.journal.extend(rows)
        if len(rows) == 1:
            self._amount(template, column, rows[0], sign)
            self._follow(template, rows[0], sign)
            return
        request, nonzero = self.arrays(template)
        touched, counts = np.unique(np.asarray(rows, dtype=np.intp), return_counts=True)
        more = request[:, None] * (counts * sign)
        getattr(self.table, column)[:, touched] += more
        if self.follow:
            self.table.requested[:, touched] += more
            self.table.nonzero[:, touched] += nonzero[:, None] * (counts * sign)

    def _amount(self, template: PodTemplate, column: str, row: int, sign: int) -> None:
        amounts = getattr(self.table, column)[:, row]
        if sign > 0:
            amounts += self.arrays(template)[0]
        else:
            amounts -= self.arrays(template)[0]

    def _follow(self, template: PodTemplate, row: int, sign: int) -> None:
        if not self.follow:
            return
        request, nonzero = self.arrays(template)
        self.table.requested[:, row] += request if sign > 0 else -request
        self.table.nonzero[:, row] += nonzero if sign > 0 else -nonzero


def bind(job: Job, tasks: Sequence[Task]) -> None:
    """Allocated ``tasks`` are handed over for binding; no sum changes."""
    members = job.index[ALLOCATED]
    into = job.index.setdefault(BINDING, {})
    for task in tasks:
        del members[task.uid]
        task.status = BINDING
        into[task.uid] = task
    if not members:
        del job.index[ALLOCATED]


def remember(task: Task) -> None:
    """Keep where ``task`` stands, for the messages, before an undone operation takes it away."""
    task.last = Placement(task.status, task.node_name, task.eviction_occurred)
