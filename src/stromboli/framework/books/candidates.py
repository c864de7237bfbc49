"""The running tasks that may be evicted at all, as columns: kept up with evictions, never searched again.

``session.candidates`` holds them.  An action takes a :class:`Reach` of them for each job that needs room::

    reach = session.candidates.reach(lambda job: job.queue == mine.queue and job.uid != mine.uid)
    reach.refresh()
    reach.freed        # what evicting all tasks in reach would free, shape (resources, nodes)
    reach.count        # how many that are, shape (nodes,)
    reach.tasks(row)   # those tasks on one node: the session's own copies
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate, chain

import numpy as np

from stromboli.framework.books.jobs import Jobs
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.engine.rows import Bools
from stromboli.model.job import Job, gives_single_tasks
from stromboli.model.resources.axes import PODS
from stromboli.model.snapshot import Evictable, JobsByPriority, Snapshot
from stromboli.model.table import Ints, NodeTable, Rows
from stromboli.model.task import PodTemplate, Task

Said = dict[str, tuple[int, bool]]
"""Of jobs by uid: how often they had moved (:class:`~stromboli.model.jobs.sums.Sums`), and whether tasks of them
might be evicted."""

FEW = 16
"""Up to so many touched nodes are looked at one by one: cheaper there than array operations."""


class Columns:
    """Bound and running tasks of known jobs that do not refuse eviction, sorted by node.

    Arrays have one entry a task: ``job`` numbers its job, ``alive`` says that it still stands, ``running`` that it is
    more than bound, ``best_effort`` that it asks for nothing; ``amounts`` is its request, shape (resources, tasks).
    ``row`` is its node, ``start[row]`` the place of the first task of a node.  ``lowest`` is the lowest priority of
    any of them.  ``changed`` lists the places that evictions, and their ends, have touched, in order.
    """

    __slots__ = (
        "_largest", "_ledger", "_places", "_seen",
        "alive", "amounts", "best_effort", "changed", "job", "lowest", "row", "running", "start", "tasks",
    )  # fmt: skip

    def __init__(self, by_node: Sequence[Evictable], numbers: Mapping[str, int], ledger: Ledger) -> None:
        self._ledger, self._seen = ledger, 0
        self._largest: list[int] | None = None
        self._places: dict[int, dict[str, int]] = {}
        tasks, owners, templates, running, lowest = zip(*by_node, strict=True) if by_node else ((),) * 5
        self.start: list[int] = [0, *accumulate(map(len, tasks))]
        self.tasks: list[Task] = [*chain.from_iterable(tasks)]
        self.lowest = min([one for one in lowest if one is not None], default=0)
        self.row = np.repeat(np.arange(len(by_node)), np.diff(self.start))
        self.job = np.fromiter(map(numbers.__getitem__, chain.from_iterable(owners)), np.intp, len(self.tasks))
        self.alive: Bools = np.ones(len(self.tasks), dtype=bool)
        self.running: Bools = np.frombuffer(bytearray().join(running), dtype=bool)
        self.best_effort, self.amounts = _asked([*chain.from_iterable(templates)], ledger)
        self.changed: list[int] = []
        self.catch_up()

    def catch_up(self) -> None:
        """Take note of what was evicted, and taken back, since the last call."""
        evictions = self._ledger.evictions
        if self._seen == len(evictions):
            return
        for task, back in evictions[self._seen :]:
            place = self._place(task)
            if place is not None:
                self.alive[place] = back
                if back:
                    self.running[place] = True  # whatever it was
                self.changed.append(place)
        self._seen = len(evictions)

    def _place(self, task: Task) -> int | None:
        """The place of a task that was evicted, or whose eviction was taken back; None if it is no candidate."""
        row = self._ledger.table.statics.row.get(task.node_name)
        if row is None:
            return None
        if row not in self._places:
            first, end = self.start[row : row + 2]
            self._places[row] = {other.uid: place for place, other in enumerate(self.tasks[first:end], first)}
        return self._places[row].get(task.uid)

    @property
    def largest(self) -> list[int]:
        """The most that any of them asks for, by column."""
        if self._largest is None:
            self._largest = self.amounts.max(axis=1, initial=0).tolist()
        return self._largest


class Candidates:
    """The jobs of which tasks may be evicted, and those tasks as ``columns``.

    Both are found when they are first read: most searches learn from ``jobs_by_priority`` that nothing is in reach.
    """

    __slots__ = (
        "_by_node", "_columns", "_jobs", "_jobs_by_priority", "_kept", "_ledger", "_numbers", "_reaches", "_serves",
        "_snapshot",
    )  # fmt: skip

    def __init__(self, snapshot: Snapshot, jobs: Jobs, ledger: Ledger) -> None:
        self._snapshot, self._jobs, self._ledger = snapshot, jobs, ledger
        self._columns: Columns | None = None
        self._serves: dict[int, int] = {}
        self._reaches: dict[tuple[bytes, bool, bool], Reach] = {}
        self._kept: dict[Hashable, Said] = {}
        self._jobs_by_priority: JobsByPriority | None = None
        self._numbers: dict[str, int] | None = None
        self._by_node: Sequence[Evictable] = ()

    @property
    def numbers(self) -> Mapping[str, int]:
        """The jobs that have candidates, by uid, numbered in the order in which their tasks occur on nodes."""
        if self._numbers is None:
            by_node = [on_node.evictable for on_node in self._snapshot.node_tasks]
            owners = dict.fromkeys(chain.from_iterable([some.owners for some in by_node]))
            known = [uid for uid in owners if uid in self._jobs]
            self._by_node = by_node if len(known) == len(owners) else _of_known(self._jobs, by_node)
            self._numbers = {uid: number for number, uid in enumerate(known)}
        return self._numbers

    @property
    def columns(self) -> Columns:
        """The tasks; evictions since :meth:`Columns.catch_up` was last called are not noted yet."""
        if self._columns is None:
            numbers = self.numbers  # which finds the tasks by node, too
            self._columns = Columns(self._by_node, numbers, self._ledger)
        return self._columns

    @property
    def shape(self) -> tuple[int, int]:
        """How many resources and nodes there are."""
        return len(self._ledger.table.alloc), len(self._snapshot.node_tasks)

    def serves(self, template: PodTemplate, columns: Sequence[int]) -> int:
        """For how many pods of ``template`` the room of one of them could be enough, where ``columns`` decide."""
        found = self._serves.get(template.number)
        if found is None:
            vector, largest = template.vector, self.columns.largest
            asked = [column for column in columns if vector[column] and column != PODS]  # pods are rarely short
            found = self._serves[template.number] = min([largest[c] // vector[c] for c in asked], default=1)
        return found

    @property
    def jobs_by_priority(self) -> JobsByPriority:
        """The uids of the jobs of which single tasks might be evicted, by queue and priority.

        They had tasks that ran or were bound when the session opened; those tasks may all refuse eviction.
        """
        if self._jobs_by_priority is None:
            known = self._snapshot.jobs_by_priority
            self._jobs_by_priority = jobs_by_priority(self._snapshot.jobs) if known is None else known
        return self._jobs_by_priority

    def kept(self, key: Hashable) -> Said:
        """What searches with equal ``key`` may note of jobs: what was said of them stands until they move again."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= FEW:
                self._kept.clear()
            found = self._kept[key] = {}
        return found

    def reach(self, of: Callable[[Job], bool], *, bound: bool = True, only_best_effort: bool = False) -> Reach:
        """The candidates of those jobs for which ``of`` is true now; see :meth:`reach_of`."""
        uids = [job.uid for job in self._jobs.peek_each(self.numbers) if of(job)]
        return self.reach_of(uids, bound=bound, only_best_effort=only_best_effort)

    def reach_of(self, uids: Sequence[str], *, bound: bool, only_best_effort: bool) -> Reach:
        """The candidates of the jobs with these ``uids``.

        ``bound`` says whether tasks that do not run yet count too.  One job after another often reaches the same.
        """
        within = self._among(uids)
        key = within.tobytes(), bound, only_best_effort
        found = self._reaches.get(key)
        if found is None:
            if len(self._reaches) >= FEW:
                self._reaches.clear()
            found = self._reaches[key] = Reach(self, within, bound, only_best_effort)
        found.refresh()
        return found

    def _among(self, uids: Sequence[str]) -> Bools:
        """Which jobs have one of ``uids``, by number; of no length where there are none, whose numbers nobody needs."""
        if not uids:
            return np.zeros(0, dtype=bool)
        numbers = self.numbers
        within = np.zeros(len(numbers), dtype=bool)
        within[[numbers[uid] for uid in uids if uid in numbers]] = True
        return within

    def let_go(self) -> None:
        """Keep no reach any more: they know us, and neither would go by its own count of references."""
        self._reaches.clear()

    def own(self, place: int) -> Task:
        """The task at ``place`` as the session has it."""
        task = self.columns.tasks[place]
        job = self._jobs.peek_at(task.job)
        return task if job is None else job.tasks[task.uid]


class Reach:
    """Some of the candidates, and what evicting all of them would free on each node.

    ``freed`` has shape (resources, nodes), ``count`` shape (nodes,), and ``empty`` says where that is 0; call
    :meth:`refresh` before reading them.
    """

    __slots__ = (
        "_asked",
        "_candidates",
        "_columns",
        "_counted",
        "_hopeful",
        "_journal",
        "_seen",
        "_within",
        "count",
        "empty",
        "freed",
    )

    def __init__(self, candidates: Candidates, jobs: Bools, bound: bool, only_best_effort: bool) -> None:
        self._candidates = candidates
        self._within = (jobs, bound, only_best_effort)
        self._asked: tuple[tuple[int, ...], bytes] | None = None
        self._hopeful: Bools = np.zeros(0, dtype=bool)
        self._journal = self._seen = 0
        self._columns = candidates.columns if jobs.any() else None
        if self._columns is None:
            self._counted: Bools = np.zeros(0, dtype=bool)
            self.freed: Ints = np.zeros(candidates.shape, dtype=np.int64)
            self.count: Ints = np.zeros(candidates.shape[1], dtype=np.int64)
        else:
            self._count(self._columns)
        self.empty: Bools = self.count == 0

    def _count(self, columns: Columns) -> None:
        columns.catch_up()
        self._seen = len(columns.changed)
        chosen = self._counted = self._chosen(columns)
        start = columns.start
        # prefix sums over all tasks, nodes after nodes: what lies between two nodes' beginnings is the first one's
        sums = np.zeros((columns.amounts.shape[0], len(columns.tasks) + 1), dtype=np.int64)
        np.cumsum(columns.amounts * chosen, axis=1, out=sums[:, 1:])
        counts = np.concatenate(([0], np.cumsum(chosen, dtype=np.int64)))
        self.freed = np.diff(sums[:, start], axis=1)
        self.count = np.diff(counts[start])

    def _chosen(self, columns: Columns) -> Bools:
        jobs, bound, only_best_effort = self._within
        chosen = columns.alive & jobs[columns.job]
        if not bound:
            chosen &= columns.running
        if only_best_effort:
            chosen &= columns.best_effort
        return chosen

    def refresh(self) -> None:
        """Renew the nodes that evictions have touched."""
        columns = self._columns
        if columns is None:
            return
        columns.catch_up()
        if self._seen == len(columns.changed):
            return
        new = columns.changed[self._seen :]
        self._seen = len(columns.changed)
        for place in set(new):
            chosen = self._is_chosen(columns, place)
            if chosen is not bool(self._counted[place]):
                self._counted[place], sign, row = chosen, 1 if chosen else -1, columns.row[place]
                freed = self.freed[:, row]
                (np.add if chosen else np.subtract)(freed, columns.amounts[:, place], freed)
                self.count[row] += sign
                self.empty[row] = not self.count[row]

    def _is_chosen(self, columns: Columns, place: int) -> bool:
        jobs, bound, only_best_effort = self._within
        if not (columns.alive[place] and jobs[columns.job[place]]):
            return False
        runs = bound or bool(columns.running[place])
        return runs and (not only_best_effort or bool(columns.best_effort[place]))

    def hopeful(self, table: NodeTable, columns: Sequence[int], request: Ints) -> Bools:
        """Nodes that would have the room for ``request`` if all tasks in reach left them, shape (nodes,).

        ``columns`` are those that count.  Kept up with the table as long as the request stays the same.
        """
        found, asked = self._hopeful, (tuple(columns), request.tobytes())
        if asked != self._asked:
            self._asked, found = asked, self._renewed(table, columns, request, slice(None))
            self._hopeful = found
        elif touched := set(table.journal[self._journal :]):
            if len(touched) > FEW:
                rows = np.array(sorted(touched), dtype=np.intp)
                found[rows] = self._renewed(table, columns, request, rows)
            else:
                for row in touched:
                    found[row] = self.would_fit(table, columns, request, row)
        self._journal = len(table.journal)
        return found

    def would_fit(self, table: NodeTable, columns: Sequence[int], request: Sequence[int] | Ints, row: int) -> bool:
        """Whether one node would have the room for ``request`` if all tasks in reach left it."""
        freed = self.freed
        for column in columns:  # noqa: SIM110 - asked once a task, and all() takes twice as long
            if request[column] > table.future_at(column, row) + freed.item(column, row):
                return False
        return True

    def _renewed(self, table: NodeTable, columns: Sequence[int], request: Ints, rows: Rows | slice) -> Bools:
        most = self.freed[:, rows] + table.unreserved(rows) - table.pipelined[:, rows]
        found: Bools = np.all(request[columns, None] <= most[columns], axis=0)
        return found

    def tasks(self, row: int) -> list[Task]:
        """The tasks in reach on one node, as the session's own copies."""
        self.refresh()
        if self._columns is None:
            return []
        first, end = self._columns.start[row : row + 2]
        chosen = self._counted[first:end].tolist()
        return [self._candidates.own(place) for place, counts in enumerate(chosen, first) if counts]


def jobs_by_priority(jobs: Mapping[str, Job]) -> JobsByPriority:
    """Those of ``jobs`` of which single tasks might be evicted, by queue and priority."""
    found: JobsByPriority = defaultdict(dict)
    for uid, job in jobs.items():
        if gives_single_tasks(job):
            found[job.facts.queue, job.facts.priority][uid] = None
    return found


def _of_known(jobs: Mapping[str, object], by_node: Sequence[Evictable]) -> list[Evictable]:
    """What is evictable on each node, without the tasks of jobs that are left out."""
    return [Evictable.of([task for task in some.tasks if task.job in jobs]) for some in by_node]


def _asked(templates: Sequence[PodTemplate], ledger: Ledger) -> tuple[Bools, Ints]:
    """Which of ``templates`` ask for nothing, and their requests as columns, shape (resources, templates)."""
    where = {template: place for place, template in enumerate(dict.fromkeys(templates))}
    table = np.zeros((len(where) + 1, len(ledger.table.alloc)), dtype=np.int64)
    for template, place in where.items():
        table[place] = ledger.arrays(template)[0]
    places = np.fromiter(map(where.__getitem__, templates), dtype=np.intp, count=len(templates))
    best_effort = np.array([template.best_effort for template in where], dtype=bool)
    picked: Ints = table[places].T
    return best_effort[places] if where else np.zeros(0, dtype=bool), picked
