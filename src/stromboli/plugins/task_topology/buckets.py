"""Buckets: the tasks of a job that should share a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush

import numpy as np

from stromboli.model.job import Job
from stromboli.model.names import TASK_SPEC
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.plugins.task_topology.wishes import Wishes

MEBIBYTE = 1 << 20


def name_of(task: Task) -> str:
    """The name of the task that the pod is one of, as its annotation has it."""
    return task.annotations.get(TASK_SPEC, "")


class Bucket:
    """Tasks that should share a node: those ``waiting`` by template, and how many are on each row.

    ``number`` counts all of them, ``waits`` those that wait; ``size`` adds up what these request, a mebibyte
    counting as much as a thousandth of a core.
    """

    __slots__ = ("_order", "index", "number", "on_row", "size", "waiting", "waits")

    def __init__(self, index: int) -> None:
        self.index, self.size, self.number, self.waits = index, 0.0, 0, 0
        self.waiting: Counter[PodTemplate] = Counter()
        self.on_row: Counter[int] = Counter()
        self._order: _ByRequest | None = None

    def wait(self, task: Task, change: int) -> None:
        """One task more waits, or one less."""
        self.waits += change
        self.waiting[task.template] += change
        self.size += change * _size(task)
        if self._order is not None:
            self._order = self._order.changed(task.template, change)

    def fitting(self, task: Task, nodes: NodeRows, waits: bool, more: Ints | None = None) -> Ints:
        """How many waiting tasks and ``task``, which may be one, each row has room for once those that end have left.

        Where not all have room, others are left out one by one, those that request most first; shape (rows,).
        ``more`` says for how many more of its template a row has room beside ``task``: enough where all are alike.
        """
        order = self._order = self._order or _ByRequest(self.waiting)
        if more is not None and order.has_only(task.template):
            alike: Ints = np.minimum(more, order.numbers[0] - int(waits)) + 1
            return alike
        numbers = order.others(task.template) if waits else order.numbers
        others = int(numbers.sum())
        own = np.zeros(max(len(order.amounts), len(task.template.vector)), dtype=np.int64)
        own[: len(task.template.vector)] = task.template.vector
        left_out, nothing = np.zeros((2, len(nodes)), dtype=np.int64)
        room = nodes.idle + nodes.releasing
        for column in range(len(own) if others else 0):
            each = order.amounts[column] if column < len(order.amounts) else np.zeros_like(numbers)
            needed = int(each @ numbers + own[column])
            if needed or column in (CPU, MEMORY):
                excess = needed - (room[column] if column < len(room) else nothing)
                short = np.flatnonzero(excess > 0)
                if short.size:
                    left_out[short] = np.maximum(left_out[short], _until_saved(each, numbers, excess[short]))
        return others + 1 - np.minimum(left_out, others)


class _ByRequest:
    """How many tasks wait by template, the largest request first; ``amounts`` has a row for each resource."""

    __slots__ = ("amounts", "numbers", "place")

    def __init__(self, waiting: Mapping[PodTemplate, int]) -> None:
        templates = sorted(waiting, key=lambda each: ([-amount for amount in each.vector], each.number))
        self.place = {template: place for place, template in enumerate(templates)}
        self.numbers = np.array([waiting[template] for template in templates], dtype=np.int64)
        width = max((len(each.vector) for each in templates), default=0)
        self.amounts = np.zeros((width, len(templates)), dtype=np.int64)
        for place, each in enumerate(templates):
            self.amounts[: len(each.vector), place] = each.vector

    def changed(self, template: PodTemplate, change: int) -> _ByRequest | None:
        """So many more of ``template``; None where it has not waited before."""
        if template not in self.place:
            return None
        self.numbers[self.place[template]] += change
        return self

    def has_only(self, template: PodTemplate) -> bool:
        """Whether all that wait are of ``template``."""
        return len(self.numbers) == 1 and template in self.place

    def others(self, template: PodTemplate) -> Ints:
        """The numbers, one of ``template`` left out."""
        numbers = self.numbers.copy()
        numbers[self.place[template]] -= 1
        return numbers


def _until_saved(each: Ints, numbers: Ints, excess: Ints) -> Ints:
    """How many must be left out, in order, to save each ``excess``; ``numbers`` tasks request ``each``.

    One more than there are where all of them save too little; each ``excess`` is positive.
    """
    saved, counted = np.cumsum(each * numbers), np.cumsum(numbers)
    group = np.searchsorted(saved, excess, side="left")
    last = np.minimum(group, len(each) - 1)
    before = saved[last] - each[last] * numbers[last]
    begun = -(-(excess - before) // np.maximum(each[last], 1))
    found: Ints = np.where(group < len(each), counted[last] - numbers[last] + begun, counted[-1] + 1)
    return found


def _size(task: Task) -> float:
    vector = task.template.vector
    return sum(vector) - vector[MEMORY] + vector[MEMORY] / MEBIBYTE


class _Ranking:
    """The buckets of a job as one name sees them: the most attractive first, then the smallest, then the oldest."""

    __slots__ = ("attraction", "heap", "seen")

    def __init__(self) -> None:
        self.heap: list[tuple[int, float, int]] = []
        self.attraction: Counter[int] = Counter()
        self.seen = 0


class Buckets:
    """The buckets of one job; ``most`` is the number of tasks in the largest.

    What repels a name on each row, by the tasks that this session has placed, stands in ``repulsion``.
    """

    def __init__(self, job: Job, wishes: Wishes, rows: Mapping[str, int]) -> None:
        self.wishes, self.rows, self.most = wishes, rows, 0
        self.all: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self.ranks: dict[str, tuple[int, int]] = {}
        self.repulsion: dict[str, Counter[int]] = {}
        self._waits: set[str] = set()
        self._placed: set[str] = set()
        self._evicted: set[str] = set()
        self._additions: list[tuple[Bucket, str]] = []
        self._rankings: dict[str, _Ranking] = {}
        wanted = [task for task in job.tasks.values() if name_of(task) in wishes.weight and name_of(task)]
        nodes: dict[str, Bucket] = {}
        for task in sorted(wanted, key=self._turn):
            self._put(task, nodes)

    def _turn(self, task: Task) -> tuple[bool, str, tuple[int, int], str]:
        rank = (0, 0) if task.node_name else self.wishes.rank(name_of(task))
        return not task.node_name, task.node_name, rank, task.name

    def _put(self, task: Task, nodes: dict[str, Bucket]) -> None:
        found = nodes.get(task.node_name) if task.node_name else self._best(name_of(task))
        if found is None:
            found = Bucket(len(self.all))
            self.all.append(found)
        if task.node_name:
            nodes[task.node_name] = found
            found.on_row[self.rows.get(task.node_name, -1)] += 1
        else:
            self._waits.add(task.uid)
            found.wait(task, 1)
        self._additions.append((found, name_of(task)))
        self.of[task.uid], self.ranks[task.uid] = found, self.wishes.rank(name_of(task))
        found.number += 1
        self.most = max(self.most, found.number)

    def _best(self, name: str) -> Bucket | None:
        """The bucket that attracts ``name`` most, of equal ones the smaller; None where each repels it.

        Only what has been added since the last question about ``name`` is looked at.
        """
        ranking = self._rankings.setdefault(name, _Ranking())
        for bucket, added in self._additions[ranking.seen :]:
            ranking.attraction[bucket.index] += self.wishes.attraction(name, added)
        changed = {bucket.index for bucket, _ in self._additions[ranking.seen :]}
        ranking.seen = len(self._additions)
        for index in changed:
            heappush(ranking.heap, (-ranking.attraction[index], self.all[index].size, index))
        while ranking.heap:
            repels, size, index = ranking.heap[0]
            if (repels, size) == (-ranking.attraction[index], self.all[index].size):
                return self.all[index] if repels <= 0 else None
            heappop(ranking.heap)
        return None

    # ------------------------------------------------------------------ keeping up

    def placed(self, task: Task) -> None:
        """``task`` has its node, or its eviction is undone."""
        if (bucket := self.of.get(task.uid)) is None:
            return
        bucket.on_row[self.rows.get(task.node_name, -1)] += 1
        if task.uid in self._evicted:
            self._evicted.remove(task.uid)
            return
        self._placed.add(task.uid)
        self._repel(task, 1)
        if task.uid in self._waits:
            self._waits.remove(task.uid)
            bucket.wait(task, -1)

    def taken_back(self, task: Task) -> None:
        """``task`` waits again; one that is evicted ends, and does not."""
        if (bucket := self.of.get(task.uid)) is None:
            return
        bucket.on_row[self.rows.get(task.node_name, -1)] -= 1
        if task.status is TaskStatus.Releasing:
            self._evicted.add(task.uid)
            return
        if task.uid in self._placed:
            self._placed.remove(task.uid)
            self._repel(task, -1)
        self._waits.add(task.uid)
        bucket.wait(task, 1)

    def _repel(self, task: Task, change: int) -> None:
        row = self.rows.get(task.node_name, -1)
        for name in self.wishes.apart.get(name_of(task), ()):
            self.repulsion.setdefault(name, Counter())[row] += change

    def score(self, task: Task, nodes: NodeRows, more: Ints | None = None) -> Ints:
        """How many tasks of its bucket each row would have with ``task``, less those it is to be apart from.

        ``more`` is as in :meth:`Bucket.fitting`.
        """
        bucket = self.of[task.uid]
        found = bucket.fitting(task, nodes, task.uid in self._waits, more)
        if bucket.on_row:
            found += _at(bucket.on_row, nodes, len(self.rows))
        if repels := self.repulsion.get(name_of(task)):
            found -= _at(repels, nodes, len(self.rows))
        return found


def _at(numbers: Mapping[int, int], nodes: NodeRows, size: int) -> Ints:
    """``numbers`` by row as an array over ``nodes``; row -1 stands for nodes that are gone."""
    everywhere = np.zeros(size + 1, dtype=np.int64)
    everywhere[np.fromiter(numbers, dtype=np.int64, count=len(numbers))] = np.fromiter(
        numbers.values(), dtype=np.int64, count=len(numbers)
    )
    found: Ints = everywhere[:size] if nodes.index is None else everywhere[nodes.index]
    return found


__all__ = ["Bucket", "Buckets", "name_of"]
