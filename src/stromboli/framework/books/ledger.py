"""Where a session's sums change: nodes, jobs and queues together, one move at a time, each move with its reverse.

Statement and the session's direct calls are the only users.  Amounts are whole numbers, so taking a move back leaves
every sum exactly as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from stromboli.framework.books.second_places import SecondPlaces
from stromboli.model.claims import CLAIM_SECONDS, Allocation
from stromboli.model.job import BINDING, PENDING, PIPELINED, RELEASING, RUNNING, Job
from stromboli.model.objects.storage import VOLUME_SECONDS
from stromboli.model.resources.amounts import totals
from stromboli.model.resources.axes import add_to
from stromboli.model.resources.row_states import Change
from stromboli.model.snapshot import QueueSums
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints, NodeTable
from stromboli.model.task import Placement, PodTemplate, Task

Underflow = Callable[[Job, Task, Mapping[int, int]], None]
"""Takes a job, the task that left, and by column how much less its queue held than the task gave back."""

LogEntry = tuple[Task, int, int]
"""A task, a row of the node table, and +1 where it came or -1 where it left."""


class Ledger:
    """The books of one session.

    ``log`` lists every task that came to a node or left it since the session opened, undone moves included.
    ``evictions`` lists every task that was evicted (False) or whose eviction was taken back (True), in order.
    ``follows_placements``: Kubernetes' view of the nodes (``requested``, ``nonzero``) counts placements.
    ``restores_evicted``: a task whose eviction is taken back returns to that view and to ``log``.
    ``above`` has, by queue, the sums of the queues above it, which count what the queue holds, too.
    ``followers`` collect the uids of jobs whose sums change without an event.  ``on_underflow`` is called when more is
    taken off a queue than it holds; its sums stop at zero.  ``bind_annotations`` are put on pods, by uid, with
    their bindings: plugins write there which devices a pod gets.  ``bind_volumes`` and
    ``bind_claims`` are what their claims get first, ``bind_locks`` the locks that their nodes get.
    ``beyond`` is by how much more, or less, pods of a queue really have than they ask for, by queue and column: queues'
    statuses show it.  ``second_places`` are compat mode's.
    """

    __slots__ = (
        "_arrays",
        "_changes",
        "_gone",
        "_total",
        "above",
        "beyond",
        "bind_annotations",
        "bind_claims",
        "bind_locks",
        "bind_volumes",
        "claim_seconds",
        "evictions",
        "followers",
        "follows_placements",
        "log",
        "on_underflow",
        "queues",
        "restores_evicted",
        "second_places",
        "table",
        "volume_seconds",
    )

    def __init__(self, table: NodeTable, queues: Mapping[str, QueueSums]) -> None:
        self.table = table
        self.second_places = SecondPlaces()
        self.bind_annotations: dict[str, Mapping[str, str]] = {}
        self.beyond: dict[str, list[int]] = {}
        self.bind_claims: dict[str, Mapping[str, Allocation]] = {}
        self.bind_locks: dict[str, tuple[str, ...]] = {}
        self.bind_volumes: dict[str, Mapping[str, str]] = {}
        self.volume_seconds, self.claim_seconds = VOLUME_SECONDS, CLAIM_SECONDS
        self._total: list[int] | None = None
        self.queues = queues
        self._arrays: dict[int, tuple[Ints, Ints]] = {}
        self._changes: dict[tuple[int, str, int, int], Change] = {}
        self.log: list[LogEntry] = []
        self.evictions: list[tuple[Task, bool]] = []
        self.follows_placements = self.restores_evicted = True
        self._gone: set[str] = set()
        self.above: Mapping[str, Sequence[list[int]]] = {}
        self.followers: list[dict[str, None]] = []
        self.on_underflow: Underflow = _unheard

    @property
    def total(self) -> list[int]:
        """What all nodes offer together, by column."""
        if self._total is None:
            self._total = totals(self.table.alloc)
        return self._total

    def arrays(self, template: PodTemplate) -> tuple[Ints, Ints]:
        """The request (one entry a resource) and the non-zero request (cpu, memory) of ``template`` as arrays."""
        found = self._arrays.get(template.number)
        if found is None:
            request = np.zeros(len(self.table.alloc), dtype=np.int64)  # names may have come since the table was made
            request[: len(template.vector)] = template.vector
            found = self._arrays[template.number] = request, np.array(template.nonzero, dtype=np.int64)
        return found

    # ------------------------------------------------------------------ moves

    def place(self, job: Job, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus) -> None:
        """Pending ``tasks`` of one template take their place on ``rows`` as Allocated or Pipelined."""
        names = self.table.statics.names
        for task, row in zip(tasks, rows, strict=True):
            task.node_name = names[row]
        job.move(tasks, status)
        self._queue(job, tasks, status, 1)
        self._nodes(tasks[0].template, rows, "pipelined" if status is PIPELINED else "used", 1)
        self.log += [(task, row, 1) for task, row in zip(tasks, rows, strict=True)]

    def bind(self, job: Job, task: Task, row: int) -> None:
        """A pending task takes idle room of ``row`` and is handed over: :meth:`place`, then :func:`bind`."""
        task.node_name = self.table.statics.names[row]
        job.move((task,), BINDING)
        self._queue(job, (task,), BINDING, 1)
        self._row(task.template, row, "used", 1, 1)
        self.log.append((task, row, 1))

    def remove(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Allocated, Binding or Pipelined ``tasks`` become Pending again; their nodes get the room back."""
        status = tasks[0].status
        self._queue(job, tasks, status, -1)
        self._nodes(tasks[0].template, rows, "pipelined" if status is PIPELINED else "used", -1)
        job.move(tasks, PENDING)
        for task in tasks:
            task.node_name = ""
        self.log += [(task, row, -1) for task, row in zip(tasks, rows, strict=True)]

    def remove_unknown(self, job: Job, task: Task) -> None:
        """As :meth:`remove` for a reservation on a node that is not in the table."""
        self._queue(job, (task,), task.status, -1)
        job.move([task], PENDING)
        task.node_name = ""

    def remove_orphaned(self, task: Task, row: int) -> None:
        """A reservation goes whose job is not in the session: its node gets the room back."""
        self._nodes(task.template, (row,), "pipelined", -1)
        self.log.append((task, row, -1))

    def evict(self, job: Job, task: Task, row: int) -> None:
        """A running task begins to end: its room becomes future idle."""
        self._end(job, task, row)
        self.table.add(row, self.leaving(task))

    def evict_run(self, leaving: Sequence[tuple[Job, Task]], row: int) -> None:
        """:meth:`evict` for several tasks of one node, whose amounts change in one step for all that are alike."""
        changes: dict[tuple[PodTemplate, int], int] = {}
        for job, task in leaving:
            self._end(job, task, row)
            kind = task.template, self._followed(task)
            changes[kind] = changes.get(kind, 0) + 1
        for (template, follow), times in changes.items():
            self.table.add(row, self._move(template, "releasing", times, -follow * times))

    def _end(self, job: Job, task: Task, row: int) -> None:
        """Count ``task`` as ending everywhere but on its node."""
        self._queue(job, (task,), task.status, -1)
        job.move((task,), RELEASING)
        self.evictions.append((task, False))
        if self._followed(task):
            self.log.append((task, row, -1))

    def _followed(self, task: Task) -> int:
        """How often Kubernetes' view of the nodes counts a task that is to end: 1, or 0 where it no longer does."""
        return int(task.uid not in self._gone)

    def leaving(self, task: Task) -> Change:
        """How the eviction of ``task`` changes its node."""
        return self._move(task.template, "releasing", 1, -self._followed(task))

    def coming(self, task: Task) -> Change:
        """How a reservation of ``task`` changes its node."""
        return self._move(task.template, "pipelined", 1, 1)

    def unevict(self, job: Job, task: Task, row: int) -> None:
        """The reverse of :meth:`evict`; the task is Running again, whatever it was before."""
        job.move([task], RUNNING)
        self._queue(job, (task,), RUNNING, 1)
        self._row(task.template, row, "releasing", -1, 1 if self.restores_evicted else 0)
        self.evictions.append((task, True))
        if self.restores_evicted:
            self.log.append((task, row, 1))
        else:
            self._gone.add(task.uid)

    @contextmanager
    def pretend_removed(self, tasks: Sequence[Task], row: int) -> Iterator[None]:
        """Within the block plugins see ``row`` without ``tasks``; no amount changes."""
        self._show(tasks, row, -1)
        try:
            yield
        finally:
            self._show(tasks, row, 1)

    def _show(self, tasks: Sequence[Task], row: int, sign: int) -> None:
        for task in tasks:
            self._row(task.template, row, "", 0, sign)
            self.log.append((task, row, sign))

    # ------------------------------------------------------------------ sums

    def _queue(self, job: Job, tasks: Sequence[Task], status: TaskStatus, sign: int) -> None:
        sums = self.queues.get(job.queue)
        if sums is None:
            return
        changed = [sums.held] if status is PIPELINED else [sums.held, sums.allocated]
        if self.above:
            changed += self.above.get(job.queue, ())
        vector, times = tasks[0].template.vector, sign * len(tasks)
        for amounts in changed:
            add_to(amounts, vector, times)
        if sign < 0 and (missing := _stop_at_zero(changed)):
            self.on_underflow(job, tasks[0], missing)

    def _nodes(self, template: PodTemplate, rows: Sequence[int], column: str, sign: int) -> None:
        if len(rows) == 1 or (rows[0] == rows[-1] and len(set(rows)) == 1):
            self._row(template, rows[0], column, sign * len(rows), sign * len(rows))
            return
        self.table.journal.extend(rows)
        request, nonzero = self.arrays(template)
        touched, counts = np.unique(np.asarray(rows, dtype=np.intp), return_counts=True)
        more = request[:, None] * (counts * sign)
        getattr(self.table, column)[:, touched] += more
        if self.follows_placements:
            self.table.requested[:, touched] += more
            self.table.nonzero[:, touched] += nonzero[:, None] * (counts * sign)

    def _row(self, template: PodTemplate, row: int, column: str, sign: int, follow: int) -> None:
        """Count a pod of ``template`` in ``column`` of ``row``, ``sign`` times, and ``follow`` times as requested."""
        self.table.add(row, self._move(template, column, sign, follow))

    def _move(self, template: PodTemplate, column: str, sign: int, follow: int) -> Change:
        """What :meth:`_row` adds."""
        move = template.number, column, sign, follow if self.follows_placements else 0
        found = self._changes.get(move)
        if found is None:
            found = self._changes[move] = self._change(template, *move[1:])
        return found

    def _change(self, template: PodTemplate, column: str, sign: int, follow: int) -> Change:
        request, nonzero = self.arrays(template)
        amounts = {column: sign * request, "requested": follow * request, "nonzero": follow * nonzero}
        return self.table.change(amounts)


def _stop_at_zero(sums: Iterable[list[int]]) -> dict[int, int]:
    """Raise what is below zero to it; by column, how much was missing at most."""
    missing: dict[int, int] = {}
    for amounts in sums:
        if amounts and min(amounts) < 0:
            for column, amount in enumerate(amounts):
                if amount < 0:
                    missing[column] = max(missing.get(column, 0), -amount)
                    amounts[column] = 0
    return missing


def _unheard(job: Job, task: Task, missing: Mapping[int, int]) -> None:
    """The default of ``on_underflow``: nothing is reported."""


def bind(job: Job, tasks: Sequence[Task]) -> None:
    """Allocated ``tasks`` are handed over for binding; no sum changes."""
    job.shift(tasks, BINDING)


def remember(task: Task) -> None:
    """Keep where ``task`` stands, for the messages, before an undone operation takes it away."""
    task.last = Placement(task.status, task.node_name, task.eviction_occurred)
