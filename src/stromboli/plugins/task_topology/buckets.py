"""Buckets: the tasks of a job that should share a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from stromboli.model.job import Job
from stromboli.model.names import TASK_SPEC
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task
from stromboli.plugins.task_topology.wishes import Wishes

MEBIBYTE = 1 << 20


def name_of(task: Task) -> str:
    """The name of the task that the pod is one of, as its annotation has it."""
    return task.annotations.get(TASK_SPEC, "")


class Bucket:
    """Tasks that should share a node: those ``waiting`` by uid, and how many are on each node.

    ``names`` counts all of them by name; ``size`` adds up what the waiting ones request, a mebibyte counting as much
    as a thousandth of a core.
    """

    __slots__ = ("index", "names", "on_node", "size", "waiting")

    def __init__(self, index: int) -> None:
        self.index, self.size = index, 0.0
        self.waiting: dict[str, Task] = {}
        self.names: Counter[str] = Counter()
        self.on_node: Counter[str] = Counter()

    def add(self, task: Task) -> None:
        """Add a task, placed or not."""
        self.names[name_of(task)] += 1
        if task.node_name:
            self.on_node[task.node_name] += 1
        else:
            self.waiting[task.uid] = task
            self.size += _size(task)

    def number(self) -> int:
        """How many tasks it has."""
        return len(self.waiting) + sum(self.on_node.values())

    def placed(self, task: Task) -> None:
        """``task`` has its node."""
        self.on_node[task.node_name] += 1
        if self.waiting.pop(task.uid, None) is not None:
            self.size -= _size(task)

    def taken_back(self, task: Task) -> None:
        """``task`` waits again."""
        self.on_node[task.node_name] -= 1
        if task.uid not in self.waiting:
            self.waiting[task.uid] = task
            self.size += _size(task)

    def fitting(self, task: Task, nodes: NodeRows) -> Ints:
        """How many waiting tasks, ``task`` among them, each row has room for, once those that are ending have left.

        Where not all have room, others are left out one by one, those that request most first; shape (rows,).
        """
        room = nodes.idle + nodes.releasing
        others = [other for uid, other in self.waiting.items() if uid != task.uid]
        others.sort(key=lambda other: ([-amount for amount in other.template.vector], other.template.number))
        own, rest = list(task.template.vector), [list(other.template.vector) for other in others]
        width = max(map(len, (own, *rest)))
        left_out = np.zeros(len(nodes), dtype=np.int64)
        for column in range(width):
            amounts = [row[column] if column < len(row) else 0 for row in rest]
            total = sum(amounts) + (own[column] if column < len(own) else 0)
            if total or column in (CPU, MEMORY):
                spare = room[column] if column < len(room) else np.zeros(len(nodes), dtype=np.int64)
                saved = np.array([0, *accumulate(amounts)], dtype=np.int64)
                left_out = np.maximum(left_out, np.searchsorted(saved, total - spare, side="left"))
        return len(others) + 1 - np.minimum(left_out, len(others))


def _size(task: Task) -> float:
    vector = task.template.vector
    return sum(vector) - vector[MEMORY] + vector[MEMORY] / MEBIBYTE


class Buckets:
    """The buckets of one job; ``most`` is the number of tasks in the largest.

    ``on_node`` counts the tasks that this session has placed, by node and name.
    """

    def __init__(self, job: Job, wishes: Wishes) -> None:
        self.wishes, self.most = wishes, 0
        self.all: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self.on_node: dict[str, Counter[str]] = {}
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
        found.add(task)
        self.of[task.uid] = found
        self.most = max(self.most, found.number())

    def _best(self, name: str) -> Bucket | None:
        """The bucket that attracts ``name`` most, of equal ones the smaller; None where each repels it."""
        found = max(self.all, key=lambda each: (self.wishes.attraction(name, each.names), -each.size), default=None)
        return None if found is None or self.wishes.attraction(name, found.names) < 0 else found

    def placed(self, task: Task) -> None:
        """``task`` has its node."""
        self.on_node.setdefault(task.node_name, Counter())[name_of(task)] += 1
        if (bucket := self.of.get(task.uid)) is not None:
            bucket.placed(task)

    def taken_back(self, task: Task) -> None:
        """``task`` waits again."""
        self.on_node.setdefault(task.node_name, Counter())[name_of(task)] -= 1
        if (bucket := self.of.get(task.uid)) is not None:
            bucket.taken_back(task)

    def score(self, task: Task, nodes: NodeRows, names: Sequence[str]) -> Ints:
        """How many tasks of its bucket ``task`` would have with it on each row, and 0 where it does not fit."""
        bucket = self.of[task.uid]
        found = bucket.fitting(task, nodes)
        places = self._places(task, bucket)
        if places:
            found = found + np.fromiter((places.get(name, 0) for name in names), dtype=np.int64, count=len(names))
        return found

    def _places(self, task: Task, bucket: Bucket) -> Mapping[str, int]:
        """By node, how many tasks of ``bucket`` are there, less those that ``task`` is to be apart from."""
        found = Counter(bucket.on_node)
        for node, there in self.on_node.items():
            found[node] -= self.wishes.repulsion(name_of(task), there)
        return {node: number for node, number in found.items() if number}
