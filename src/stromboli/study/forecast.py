"""When a waiting job starts, as the rooms of nodes tell: a sketch of the scheduler, run forward over drawn runtimes.

Waiting jobs stand in the scheduler's first order, by priority and time of creation.  Whenever pods end, every job that
fits starts, the first one first; queues hold at most their capability.  What else the scheduler may weigh is left out,
as a forecast takes hundreds of events in each of many draws; the error that this makes is part of the calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from stromboli.model.table import Bools, Rows
from stromboli.study.runtimes import Floats

FAR: Final = 1e12
"""Amount of what has no limit."""
EVENTS: Final = 20_000
"""Ends of jobs in one draw, after which the job counts as never starting."""


@dataclass(frozen=True)
class Holding:
    """A job that runs: on ``nodes`` (rows) it has the amounts of ``held``, of shape (rows, resources)."""

    nodes: tuple[int, ...]
    held: Floats
    queue: int


@dataclass(frozen=True)
class Waiting:
    """A job that waits: ``count`` pods that ask for ``each``, of which ``least`` start together."""

    each: Floats
    count: int
    least: int
    queue: int


@dataclass(frozen=True)
class Situation:
    """The cluster at a moment: ``free`` of shape (nodes, resources), what runs, and what waits, in order.

    ``used`` and ``most`` of shape (queues, resources) are what queues have, and may have.
    """

    free: Floats
    running: Sequence[Holding]
    waiting: Sequence[Waiting]
    used: Floats
    most: Floats


class _Draw:
    """One future: ``left`` seconds of each running job, ``runtimes`` of the waiting ones."""

    def __init__(self, found: Situation, left: Floats, runtimes: Floats) -> None:
        self.free, self.used, self.most = found.free.copy(), found.used.copy(), found.most
        self.waiting, self.runtimes = found.waiting, runtimes
        self.ends = [
            (float(end), number, one) for number, (end, one) in enumerate(zip(left, found.running, strict=True))
        ]
        heapify(self.ends)
        self.first = len(self.ends)
        self.each = np.array([one.each for one in found.waiting])
        self.single = np.array([one.count == 1 for one in found.waiting])
        self.queue = np.array([one.queue for one in found.waiting])
        self.open = np.ones(len(found.waiting), dtype=bool)
        self.whole = self.each * np.array([one.least for one in found.waiting])[:, None]
        self.limited: Bools = np.logical_or.reduce(found.most < FAR, axis=1)[self.queue]
        self.all = np.arange(len(self.free))

    def start_of(self, target: int) -> float:
        """When the waiting job of that number starts; infinite if it does not."""
        self.now = 0.0
        self._start_all(range(len(self.free)), self.limited)
        for _ in range(EVENTS):
            if not self.open[target] or not self.ends:
                break
            self.now, _, ended = heappop(self.ends)
            if self.now == np.inf:
                break
            for row, node in enumerate(ended.nodes):
                self.free[node] += ended.held[row]
                self.used[ended.queue] -= ended.held[row]
            self._start_all(ended.nodes, self.limited & (self.queue == ended.queue))
        return np.inf if self.open[target] else self.now

    def _start_all(self, rows: Sequence[int], allowed: Bools) -> None:
        """Start what fits now that there is more room on nodes ``rows``, the first one first.

        To the waiting jobs ``allowed`` their queue may give more, too: they may have had room before, on any node.
        """
        nodes = np.unique(np.array(rows, dtype=np.intp))
        room = self.free[nodes].max(axis=0, initial=0.0)
        hope = self.open & ((self.each <= room).all(axis=1) | ~self.single | allowed)
        hope &= (self.whole <= self.free.clip(0).sum(axis=0)).all(axis=1)
        hope &= (self.used[self.queue] + self.each <= self.most[self.queue]).all(axis=1)
        for number in np.flatnonzero(hope).tolist():
            self._start(number, nodes if self.single[number] and not allowed[number] else self.all)

    def _start(self, number: int, rows: Rows) -> None:
        """Start a waiting job if it fits on ``rows``."""
        one = self.waiting[number]
        if self.limited[number] and ((self.used[one.queue] + one.least * one.each) > self.most[one.queue]).any():
            return
        nodes = self._nodes(one, rows)
        if len(nodes) < one.least:
            return
        for node in nodes:
            self.free[node] -= one.each
        self.used[one.queue] += len(nodes) * one.each
        self.open[number] = False
        held = np.repeat(one.each[None, :], len(nodes), axis=0)
        end = self.now + float(self.runtimes[number])
        heappush(self.ends, (end, self.first + number, Holding(tuple(nodes), held, one.queue)))

    def _nodes(self, one: Waiting, rows: Rows) -> list[int]:
        """Of ``rows`` those that its pods get, each as many as it takes, as far as there is room."""
        asks, nodes = one.each > 0, list[int]()
        free, each = self.free[rows][:, asks], one.each[asks]
        if one.count == 1:
            return [int(row) for row in rows[(free >= each).all(axis=1)][:1]]
        times = np.floor((free / each).min(axis=1, initial=one.count)).clip(0, one.count).astype(int)
        if times.sum() < one.least:
            return []
        for row in np.argsort(-times, kind="stable").tolist():
            nodes += [int(rows[row])] * min(int(times[row]), one.count - len(nodes))
            if len(nodes) == one.count or not times[row]:
                break
        return nodes


def starts(found: Situation, target: int, left: Floats, runtimes: Floats) -> Floats:
    """When the waiting job number ``target`` starts, in seconds from now: one answer for each draw, ascending.

    ``left`` is of shape (draws, running jobs), ``runtimes`` of shape (draws, waiting jobs).
    """
    draws = zip(left, runtimes, strict=True)
    return np.sort(np.array([_Draw(found, one, other).start_of(target) for one, other in draws]))
