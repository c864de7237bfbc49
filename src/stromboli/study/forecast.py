"""When waiting jobs start, as the rooms of nodes tell: a sketch of the scheduler, run forward over drawn runtimes.

Whenever pods end, every job that fits starts, one after the other.  Within a queue jobs stand in the scheduler's first
order, by priority and time of creation.  Where the configuration shares the cluster out (:class:`Sharing`), the queue
with the smallest part of what it deserves has its turn first, and no queue gets more than it deserves; jobs are
admitted before they start, as far as the cluster, taken a little larger than it is, has room for them.  What else the
scheduler may weigh is left out, and so are jobs that come later; the error that this makes is part of the calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from stromboli.model.resources.axes import PODS
from stromboli.model.table import Bools
from stromboli.study.runtimes import Floats

FAR: Final = 1e12
"""Amount of what has no limit."""
EVENTS: Final = 20_000
"""Ends of jobs in one draw, after which the job counts as never starting."""
MOST_KINDS: Final = 500
"""Different amounts that waiting jobs may ask for a pod."""
TOLERANCE: Final = 1e-6


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
    admitted: bool = True


@dataclass(frozen=True)
class Sharing:
    """How ``total``, the cluster, is shared out: by ``weights`` of queues; lower ``ranks`` have their turn first.

    Jobs are admitted up to ``factor`` times ``total``; None where all are.
    """

    weights: Floats
    ranks: Floats
    total: Floats
    factor: float | None = None


@dataclass(frozen=True)
class Situation:
    """The cluster at a moment: ``free`` of shape (nodes, resources), what runs, and what waits, in order.

    ``used`` and ``most`` of shape (queues, resources) are what queues have, and may have; ``sharing`` is None where
    the order alone says which job is the next.
    """

    free: Floats
    running: Sequence[Holding]
    waiting: Sequence[Waiting]
    used: Floats
    most: Floats
    sharing: Sharing | None = None

    @cached_property
    def sketched(self) -> frozenset[int]:
        """The waiting jobs, by number, that are sketched: those that ask for the first :data:`MOST_KINDS` amounts.

        What is known of each amount and node costs memory, and users choose how many different ones there are.
        """
        kinds: set[tuple[float, ...]] = set()
        numbers: list[int] = []
        for number, one in enumerate(self.waiting):
            kind = tuple(one.each.tolist())
            if kind in kinds or len(kinds) < MOST_KINDS:
                kinds.add(kind)
                numbers.append(number)
        return frozenset(numbers)


def deserved(total: Floats, weights: Floats, requests: Floats) -> Floats:
    """What queues deserve of ``total``, of shape (queues, resources): no more than they request, and of the rest the
    same for each unit of weight: max-min fairness (D. Bertsekas, R. Gallager, "Data Networks", 2nd edition, 6.5.2).
    """
    per_weight = requests / weights[:, None]
    order = np.argsort(per_weight, axis=0)
    asked = np.take_along_axis(requests, order, axis=0)
    heavy = weights[order]
    before = np.cumsum(asked, axis=0) - asked
    levels = (total - before) / np.cumsum(heavy[::-1], axis=0)[::-1]
    short = levels < np.take_along_axis(per_weight, order, axis=0)
    first = short.argmax(axis=0)
    level = np.where(short.any(axis=0), levels[first, np.arange(len(total))], np.inf)
    found: Floats = np.minimum(requests, np.maximum(level, 0.0) * weights[:, None])
    return found


class _Classes:
    """The waiting jobs of a situation by what they ask for: those of one class start in their order."""

    def __init__(self, found: Situation) -> None:
        asked: dict[tuple[float, ...], int] = {}
        classes: dict[tuple[int, int, int, int], int] = {}
        self.members, admitted = list[list[int]](), list[int]()
        for number, one in enumerate(found.waiting):
            if number not in found.sketched:
                continue
            kind = asked.setdefault(tuple(one.each.tolist()), len(asked))
            at = classes.setdefault((kind, one.count, one.least, one.queue), len(classes))
            if at == len(self.members):
                self.members.append([])
                admitted.append(0)
            self.members[at].append(number)
            admitted[at] += one.admitted or found.sharing is None or found.sharing.factor is None
        columns = np.array(list(classes), dtype=np.intp).reshape(len(classes), 4).T
        self.kind, self.count, self.least, self.queue = columns
        self.each = np.array(list(asked)).reshape(len(asked), found.free.shape[1])
        self.size = np.array([len(one) for one in self.members], dtype=np.intp)
        self.admitted = np.array(admitted, dtype=np.intp)
        self.needs: Floats = self.each[self.kind] * self.least[:, None]
        self.fits = self.fitting(found.free)

    def fitting(self, free: Floats) -> Floats:
        """How many pods of each kind nodes with so much free have room for, of shape (kinds, nodes)."""
        fits: Floats = np.full((len(self.each), len(free)), FAR)
        for amounts, asked in zip(free.T, self.each.T, strict=True):
            some = np.flatnonzero(asked > 0)
            fits[some] = np.minimum(fits[some], amounts / asked[some, None])
        return np.floor(fits + TOLERANCE, out=fits).clip(0, out=fits)


class _Draw:
    """One future: ``left`` seconds of each running job, ``runtimes`` of the waiting ones."""

    def __init__(self, found: Situation, classes: _Classes, left: Floats, runtimes: Floats) -> None:
        self.found, self.classes, self.runtimes = found, classes, runtimes
        self.free, self.used = found.free.copy(), found.used.copy()
        self.ends = [
            (float(end), number, one) for number, (end, one) in enumerate(zip(left, found.running, strict=True))
        ]
        heapify(self.ends)
        self.next = len(self.ends)
        self.fits, self.room = classes.fits.copy(), classes.fits.sum(axis=1)
        self.started, self.admitted = np.zeros(len(classes.size), dtype=np.intp), classes.admitted.copy()
        self.sharing = found.sharing
        self.requests = self.used.copy()
        np.add.at(self.requests, classes.queue, classes.each[classes.kind] * (classes.count * classes.size)[:, None])
        if self.sharing is not None and self.sharing.factor is not None:
            taken = self.used.sum(axis=0) + classes.admitted @ classes.needs
            self.idle = self.sharing.total * self.sharing.factor - taken
        self.limit, self.shares = found.most, np.zeros(len(self.used))

    def starts(self, targets: Sequence[int]) -> list[float]:
        """When the waiting jobs of those numbers start; infinite for those that do not."""
        begun, open_, now = dict[int, float](), set(targets), 0.0
        for _ in range(EVENTS):
            for number in self._start_all(now):
                begun[number] = now
                open_.discard(number)
            if not open_ or not self.ends or self.ends[0][0] == np.inf:
                break
            now, _, ended = heappop(self.ends)
            np.add.at(self.free, list(ended.nodes), ended.held)
            amount = ended.held.sum(axis=0)
            self.used[ended.queue] -= amount
            self.requests[ended.queue] -= amount
            self._changed(ended.nodes, amount)
        return [begun.get(number, np.inf) for number in targets]

    def _changed(self, nodes: Sequence[int], amount: Floats) -> None:
        """What nodes have free has changed, and ``amount`` is idle again."""
        rows = list(set(nodes))
        new = self.classes.fitting(self.free[rows])
        self.room += (new - self.fits[:, rows]).sum(axis=1)
        self.fits[:, rows] = new
        if self.sharing is not None and self.sharing.factor is not None:
            self.idle += amount

    def _start_all(self, now: float) -> list[int]:
        """Start what fits, the first one first; their numbers."""
        found, classes = list[int](), self.classes
        if not ((self.started < classes.size) & (self.room[classes.kind] >= classes.least)).any():
            return found
        self._share_out()
        self._admit()
        while (at := self._next()) is not None:
            nodes = self._nodes(at)
            number = classes.members[at][self.started[at]]
            self.started[at] += 1
            found.append(number)
            each, queue = classes.each[classes.kind[at]], int(classes.queue[at])
            np.subtract.at(self.free, nodes, each)
            self.used[queue] += each * len(nodes)
            self.requests[queue] -= each * (int(classes.count[at]) - len(nodes))  # the others do not come in a sketch
            self._changed(nodes, classes.needs[at] - each * len(nodes))
            self._share_of(queue)
            held = np.repeat(each[None, :], len(nodes), axis=0)
            heappush(self.ends, (now + float(self.runtimes[number]), self.next, Holding(tuple(nodes), held, queue)))
            self.next += 1
        return found

    def _share_out(self) -> None:
        if self.sharing is None:
            return
        own = deserved(self.sharing.total, self.sharing.weights, np.minimum(self.requests, self.found.most))
        self.limit = np.minimum(self.found.most, own)
        self.limit[:, PODS] = self.found.most[:, PODS]
        self.own = np.where(own > 0, own, np.inf)
        self.own[:, PODS] = np.inf
        self.shares = (self.used / self.own).max(axis=1)

    def _share_of(self, queue: int) -> None:
        if self.sharing is not None:
            self.shares[queue] = (self.used[queue] / self.own[queue]).max()

    def _turn(self, at: int, number: int) -> tuple[float, float, int]:
        """The place of a class: its queue's rank and share, then its first job."""
        queue = self.classes.queue[at]
        rank = self.sharing.ranks[queue] if self.sharing is not None else 0.0
        return float(rank), float(self.shares[queue]), number

    def _admit(self) -> None:
        """Admit jobs as long as there is an idle amount, those of the queue with the smallest share first."""
        classes = self.classes
        hopeful = self.admitted < classes.size
        if not hopeful.any() or not (hopeful := hopeful & _within(classes.needs, self.idle)).any():
            return
        waits = [self._pending(at) for at in np.flatnonzero(hopeful).tolist()]
        heapify(waits)
        while waits:
            *_, at = heappop(waits)
            if not _within(classes.needs[at], self.idle):
                continue
            self.idle -= classes.needs[at]
            self.admitted[at] += 1
            if self.admitted[at] < classes.size[at]:
                heappush(waits, self._pending(at))

    def _pending(self, at: int) -> tuple[float, float, int, int]:
        return *self._turn(at, self.classes.members[at][self.admitted[at]]), at

    def _next(self) -> int | None:
        """The class whose first job starts next; None if none fits."""
        classes = self.classes
        ready = (self.started < self.admitted) & (self.room[classes.kind] >= classes.least)
        if not ready.any():
            return None
        ready &= _within(classes.needs, (self.limit - self.used)[classes.queue])
        found = np.flatnonzero(ready).tolist()
        return min(found, key=lambda at: self._turn(at, classes.members[at][self.started[at]]), default=None)

    def _nodes(self, at: int) -> list[int]:
        """The nodes that a job's pods get, each as many as it takes."""
        fits, count, nodes = self.fits[self.classes.kind[at]], int(self.classes.count[at]), list[int]()
        if count == 1:
            return [int((fits > 0).argmax())]
        for row in np.argsort(-fits.clip(max=count), kind="stable").tolist():
            nodes += [row] * min(int(fits[row]), count - len(nodes))
            if len(nodes) == count or not fits[row]:
                break
        return nodes


def _within(needs: Floats, room: Floats) -> Bools:
    """Whether nothing is needed, row by row, of which there is less room."""
    found: Bools = ((needs <= room + TOLERANCE) | (needs == 0)).all(axis=-1)
    return found


def starts(found: Situation, targets: Sequence[int], left: Floats, runtimes: Floats) -> Floats:
    """When the waiting jobs of those numbers start, in seconds from now: a row each, an answer a draw, ascending.

    ``left`` is of shape (draws, running jobs), ``runtimes`` of shape (draws, waiting jobs).
    """
    classes = _Classes(found)
    draws = [_Draw(found, classes, one, other).starts(targets) for one, other in zip(left, runtimes, strict=True)]
    return np.sort(np.array(draws).reshape(len(left), len(targets)).T, axis=1)
