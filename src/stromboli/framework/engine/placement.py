"""Where the next tasks go: the best node for one, or for a run of equal ones in a single step.

Both ways give the same nodes in the same order.  A run is placed at once only where nothing but the touched rows' own
answers changes between its tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stromboli.framework.engine.classes import NEVER, TaskClass
from stromboli.framework.engine.rows import Bools, Floats
from stromboli.framework.engine.shards import own_first
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.table import Rows

LEVELS_MORE = 4
"""By how much the number of pods looked at per node grows when it was not enough."""


class Choice(NamedTuple):
    """Rows for the next tasks, in order, and whether they are allocated there or wait for room."""

    rows: list[int]
    kind: OperationKind


Seen = Callable[[Floats], None]
"""Is shown the scores among which a choice is made, shape (nodes,): minus infinity for all other rows."""


class Ties:
    """Which of several best nodes: the first, or with a ``seed`` one drawn by it and the number of the draw."""

    __slots__ = ("_draws", "seed")

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._draws = 0

    def best(self, scores: Floats) -> int:
        """Row of the greatest score; -1 when no row is a candidate."""
        if not scores.size:
            return -1
        first = int(scores.argmax())
        if scores[first] == NEVER:
            return -1
        return first if self.seed is None else self._draw(np.flatnonzero(scores == scores[first]))

    def offset(self, nodes: int) -> int:
        """Where a search among so many nodes begins: with the first, or with a seed anywhere."""
        return 0 if self.seed is None or not nodes else int(self._draw(np.arange(nodes)))

    def _draw(self, rows: Rows) -> int:
        self._draws += 1
        digest = hashlib.blake2b(f"{self.seed}/{self._draws}".encode(), digest_size=8).digest()
        return int(rows[int.from_bytes(digest, "big") % rows.size])


def scored(cls: TaskClass, members: Bools) -> Floats:
    """Scores of ``members`` among themselves; all other rows are out of the question."""
    total = cls.total(slice(None), cls.normal(members) if members.any() else None)
    return np.where(members, total, NEVER)


def chosen(cls: TaskClass, ties: Ties, members: Bools, seen: Seen | None = None) -> int:
    """The row among ``members``, of which there is at least one; a single one is taken whatever its score."""
    choosers, rows = cls.hooks.choosers, np.flatnonzero(members)
    if rows.size == 1:
        return ties.best(np.where(members, 0.0, NEVER))
    if not choosers:
        scores = scored(cls, members)
        if seen:
            seen(scores)
        return ties.best(scores)
    task, table = cls.task, cls.table
    normal = cls.normal(members)
    batch = cls.batch if normal is None else cls.batch + normal
    scores = (choosers.reduced(task, table, rows) + cls.score[rows]) + (batch[rows] + choosers.named(task, table, rows))
    if seen:
        spread = np.full(len(table), NEVER)
        spread[rows] = scores
        seen(spread)
    row = choosers.best_row(task, table, rows, scores)
    return int(rows[ties.best(scores)]) if row is None else row


def groups(cls: TaskClass, within: Bools | None, own: Bools | None = None) -> list[tuple[Bools, OperationKind]]:
    """Candidates for a task of ``cls``, better groups first: idle room, then room about to become free.

    Of each, the nodes that are ``own`` come first.
    """
    fits = cls.fitting(within)
    now = fits & cls.now
    parts = ((now, OperationKind.ALLOCATE), (fits & ~now, OperationKind.PIPELINE))
    return [(part, kind) for rows, kind in parts for part in own_first(rows, own)]


def one(
    cls: TaskClass, ties: Ties, within: Bools | None = None, seen: Seen | None = None, own: Bools | None = None
) -> Choice | None:
    """The best node for one task; None when no node takes it."""
    if within is None and own is None and cls.simple:
        if seen:
            seen(cls.best_now)
        row = ties.best(cls.best_now)
        if row >= 0:
            return Choice([row], OperationKind.ALLOCATE)
    for members, kind in groups(cls, within, own):
        if members.any():
            return Choice([chosen(cls, ties, members, seen)], kind)
    return None


def run(cls: TaskClass, count: int, within: Bools | None = None, seen: Seen | None = None) -> Choice | None:
    """Nodes with idle room for the next ``count`` tasks of ``cls``, or for as many as fit, as one by one would choose.

    None when the run cannot be placed at once: its scores are normalised over candidates that it would change.
    """
    members = cls.now if within is None else cls.now & within
    if not members.any():
        return Choice([], OperationKind.ALLOCATE)
    normal = cls.constant if cls.constant is not None else cls.normal(members)
    totals = np.where(members, cls.total(slice(None), normal), NEVER)
    if seen:
        seen(totals)
    rows = _best(totals, count)
    chosen, left = _sequence(cls, rows, totals[rows], normal, count)
    if cls.constant is None and cls.unnormalised:
        after = members.copy()
        after[rows[~left]] = False
        if not after.any() or cls.extremes(after) != cls.extremes(members):
            return None
    return Choice(chosen, OperationKind.ALLOCATE)


def _best(totals: Floats, count: int) -> Rows:
    """The ``count`` best rows, ascending: no other row can be reached within so many steps."""
    if count < totals.size:
        limit = np.partition(totals, totals.size - count)[totals.size - count]
        if limit > NEVER:
            above = np.flatnonzero(totals > limit)
            level = np.flatnonzero(totals == limit)[: count - above.size]
            return np.sort(np.concatenate((above, level)))
    return np.flatnonzero(totals > NEVER)


def _sequence(cls: TaskClass, rows: Rows, totals: Floats, normal: Floats | None, count: int) -> tuple[list[int], Bools]:
    """Rows in the order of greedy choice, and which of ``rows`` still have idle room afterwards.

    On a node the pod number j + 1 is there to be chosen only after j, so the greedy order is the order of the running
    minimum of the node's scores, ties to the lower row, then to the lower j.
    """
    while True:
        levels = min(cls.levels, count)
        scores = _ladder(cls, rows, totals, normal, levels)
        running = np.minimum.accumulate(scores, axis=0).T.ravel()
        order = np.argsort(-running, kind="stable")[:count]
        order = order[running[order] > NEVER]
        if levels == count or not np.any(order % levels == levels - 1):
            break
        cls.levels *= LEVELS_MORE
    picked = order // levels
    placed = np.bincount(picked, minlength=rows.size)
    left = scores[np.minimum(placed, levels - 1), np.arange(rows.size)] > NEVER
    return rows[picked].tolist(), left & (placed < levels)


def _ladder(cls: TaskClass, rows: Rows, totals: Floats, normal: Floats | None, levels: int) -> Floats:
    """Score of the next pod on each row after 0, 1, … pods of the class went there; shape (levels, rows)."""
    ladder = np.empty((levels, rows.size))
    ladder[0] = totals
    if levels > 1:
        index = np.tile(rows, levels - 1)
        counts = np.repeat(np.arange(1, levels, dtype=np.int64), rows.size)
        nodes = cls.table.view(index).after(counts, cls.request, cls.nonzero)
        _, now, score, batch = cls.look(nodes)
        total = score + (batch if normal is None else batch + normal[index])
        ladder[1:] = np.where(now, total, NEVER).reshape(levels - 1, rows.size)
    return ladder
