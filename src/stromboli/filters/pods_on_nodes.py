"""The pods on nodes, those of the session included, and counters over them that cost only what has changed.

The pods stand as a list of events: the pods there when the session opened, then every placement made and undone since.
A :class:`Lane` sorts the events by something that is known of a pod, so that a search for pods with a certain
label reads those alone; a reader remembers how far it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

import numpy as np

from stromboli.filters.selectors import Clauses, clue, takes
from stromboli.model.status import TaskStatus
from stromboli.model.table import Ints
from stromboli.model.task import Task

Event: TypeAlias = tuple[Task, int, int]
"""A pod came to (1) or left (-1) a row of the node table."""

ALL_PODS = ""
"""The name of the label index that holds all pods under one value."""


class Lane:
    """Events by the value that ``sort`` gives for their pod; pods for which it gives None are left out."""

    __slots__ = ("_base", "_buckets", "_log", "_read", "_sort")

    def __init__(self, base: Sequence[Event], log: Sequence[Event], sort: Callable[[Task], Hashable]) -> None:
        self._base, self._log, self._sort = base, log, sort
        self._buckets: dict[Hashable, list[Event]] = {}
        self._read = 0
        self._file(base)

    def bucket(self, value: Hashable) -> list[Event]:
        """The events of one value: always the same list, longer after each :meth:`feed`."""
        return self._buckets.setdefault(value, [])

    def feed(self) -> None:
        """Take in what has been logged since the last time."""
        if self._read < len(self._log):
            fresh = self._log[self._read :]
            self._read += len(fresh)
            self._file(fresh)

    def _file(self, events: Iterable[Event]) -> None:
        sort, buckets = self._sort, self._buckets
        for event in events:
            value = sort(event[0])
            if value is not None:
                buckets.setdefault(value, []).append(event)


class PodSelector(NamedTuple):
    """Pods by label and namespace.  ``wanted`` None: no pod.  ``namespaces`` None: every namespace."""

    wanted: Clauses | None
    namespaces: tuple[str, ...] | None

    def takes(self, task: Task) -> bool:
        """Whether it selects the pod."""
        return (self.namespaces is None or task.namespace in self.namespaces) and takes(self.wanted, task.labels)


class PodsOnNodes:
    """All pods on nodes.

    ``pods`` gives those on nodes when the session opens, with their rows, and is asked once, when first needed; ``log``
    grows as placements are made and undone (an eviction counts as the pod's leaving).
    """

    __slots__ = ("_base", "_label_lanes", "_log", "_pods", "_terminating")

    def __init__(self, pods: Callable[[], Iterable[tuple[Task, int]]], log: Sequence[Event]) -> None:
        self._pods, self._log = pods, log
        self._base: list[Event] | None = None
        self._terminating: set[str] | None = None
        self._label_lanes: dict[tuple[str, bool], Lane] = {}

    @property
    def base(self) -> Sequence[Event]:
        """The pods that were there at the start."""
        if self._base is None:
            self._base = [(task, row, 1) for task, row in self._pods()]
        return self._base

    @property
    def terminating(self) -> AbstractSet[str]:
        """Uids of the pods that were being deleted when the session opened, whatever it has evicted since."""
        if self._terminating is None:
            leaving = (task for task, _, _ in self.base if task.status is TaskStatus.Releasing)
            self._terminating = {task.uid for task in leaving if task.ends}  # not those that the session evicts
        return self._terminating

    def rows_with(self, holds: Callable[[Task], bool]) -> AbstractSet[int]:
        """Rows that had such a pod at the start."""
        return {row for task, row, _ in self.base if holds(task)}

    def lane(self, sort: Callable[[Task], Hashable]) -> Lane:
        """A new lane over all events."""
        return Lane(self.base, self._log, sort)

    def likely(self, pods: PodSelector) -> tuple[Lane, list[Event]]:
        """A lane and the part of it that holds every event that ``pods`` may select, and as few others as it can."""
        key, value = clue(pods.wanted) or (ALL_PODS, "")
        alone = pods.namespaces is not None and len(pods.namespaces) == 1
        lane = self._label_lanes.get((key, alone))
        if lane is None:
            lane = self._label_lanes[key, alone] = self.lane(_by_label(key, alone))
        return lane, lane.bucket((pods.namespaces[0], value) if alone and pods.namespaces else value)


def _by_label(key: str, with_namespace: bool) -> Callable[[Task], Hashable]:
    def sort(task: Task) -> Hashable:
        value = task.labels.get(key) if key else ""
        return (task.namespace, value) if with_namespace and value is not None else value

    return sort


class Tally:
    """How many pods that all of ``selectors`` take stand in each group of rows.

    ``groups[row]`` numbers a row's group, -1 for rows that don't count; there are ``size`` groups.  Pods whose uid is
    in ``skip`` don't count.
    """

    __slots__ = ("_bucket", "_counts", "_groups", "_lane", "_read", "_selectors", "_skip", "total")

    def __init__(
        self,
        pods: PodsOnNodes,
        selectors: Sequence[PodSelector],
        groups: Sequence[int],
        size: int,
        skip: AbstractSet[str] = frozenset(),
    ) -> None:
        self._lane, self._bucket = pods.likely(selectors[0])
        self._selectors, self._groups, self._skip = selectors, groups, skip
        self._counts = np.zeros(size + 1, dtype=np.int64)
        self._read = 0
        self.total = 0

    def counts(self) -> Ints:
        """Pods by group as of now, and a 0 at the end, so that -1 finds none.  Shape (size + 1,); not to be changed."""
        self._lane.feed()
        if self._read < len(self._bucket):
            fresh = self._bucket[self._read :]
            self._read += len(fresh)
            for task, row, sign in fresh:
                group = self._groups[row]
                if group >= 0 and self.takes(task):
                    self._counts[group] += sign
                    self.total += sign
        return self._counts

    def covers(self, groups: Sequence[int]) -> bool:
        """Whether it counts by ``groups``, the very object."""
        return self._groups is groups

    def takes(self, task: Task) -> bool:
        """Whether the pod counts, wherever it stands."""
        return task.uid not in self._skip and all(pods.takes(task) for pods in self._selectors)

    def near(self, row: int, changes: Sequence[Event] = ()) -> int:
        """Pods in the group of ``row``, as they would be after ``changes``; 0 for a row that doesn't count."""
        group = self._groups[row]
        moved = (sign for task, at, sign in changes if self._groups[at] == group and self.takes(task))
        return int(self.counts()[group]) + sum(moved) if group >= 0 else 0

    def anywhere(self, changes: Sequence[Event] = ()) -> int:
        """Pods in all groups, as they would be after ``changes``."""
        self.counts()
        return self.total + sum(sign for task, at, sign in changes if self._groups[at] >= 0 and self.takes(task))
