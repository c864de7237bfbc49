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

CELLS = 4
"""How many scores of further pods are looked at for each pod of a run; twice as many each time that is not enough."""


class Choice(NamedTuple):
    """Rows for the next tasks, in order, and whether they are allocated there or wait for room.

    ``stepwise``: scores change with each of the tasks, so what is told of them is told task by task.
    """

    rows: list[int]
    kind: OperationKind
    stepwise: bool = False


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
        first = first_of_best(scores)
        return first if first < 0 or self.seed is None else self._draw(np.flatnonzero(scores == scores[first]))

    def offset(self, nodes: int) -> int:
        """Where a search among so many nodes begins: with the first, or with a seed anywhere."""
        return 0 if self.seed is None or not nodes else int(self._draw(np.arange(nodes)))

    def _draw(self, rows: Rows) -> int:
        self._draws += 1
        digest = hashlib.blake2b(f"{self.seed}/{self._draws}".encode(), digest_size=8).digest()
        return int(rows[int.from_bytes(digest, "big") % rows.size])


def first_of_best(scores: Floats) -> int:
    """Row of the greatest score, the first in ties; -1 when no row is a candidate."""
    row = int(scores.argmax()) if scores.size else -1
    return row if row >= 0 and scores.item(row) > NEVER else -1


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
    if cls.shifting:
        return None if seen else shifting_run(cls, count, members)
    normal = cls.constant if cls.constant is not None else cls.normal(members)
    totals = np.where(members, cls.total(slice(None), normal), NEVER)
    if seen:
        seen(totals)
    rows = best_rows(totals, count)
    chosen, left = _sequence(cls, rows, totals[rows], normal, count)
    if cls.constant is None and cls.unnormalised and not same_extremes(cls, members, rows[~left]):
        return None
    return Choice(chosen, OperationKind.ALLOCATE)


def same_extremes(cls: TaskClass, members: Bools, full: Rows) -> bool:
    """Whether the extremes of raw scores of ``members`` are the same without ``full`` ones; not if all are full."""
    after = members.copy()
    after[full] = False
    return bool(after.any()) and cls.extremes(after) == cls.extremes(members)


def best_rows(totals: Floats, count: int) -> Rows:
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
    minimum of the node's scores, ties to the lower row, then to the lower j.  Of each row the scores of so many pods
    are ``known``; the rows that first come to the end of those are asked about further ones, as deep as pods of the
    class were stacked last.
    """
    scores, known = totals[None, :], np.ones(rows.size, dtype=np.intp)
    depth, cells = min(cls.levels, count), CELLS * count
    while True:
        picked, level = np.divmod(_greedy(scores, count), len(scores))
        more = picked[(level + 1 == known[picked]) & (known[picked] < count)]
        if not more.size:
            break
        if known[more[0]] >= depth:
            depth = min(count, depth * LEVELS_MORE)
        more = more[: max(1, cells // depth)]
        more, cells = more[known[more] < depth], 2 * cells
        below = np.full((max(depth - len(scores), 0), rows.size), NEVER)
        scores, known[more] = np.concatenate((scores, below)), depth
        scores[:depth, more] = ladder(cls, rows[more], totals[more], normal, depth)
    placed = np.bincount(picked, minlength=rows.size)
    cls.levels = max(2, int(placed.max(initial=0)) + 1)
    left = scores[np.minimum(placed, len(scores) - 1), np.arange(rows.size)] > NEVER
    return rows[picked].tolist(), left & (placed < known)


def _greedy(scores: Floats, count: int) -> Rows:
    """The first ``count`` steps of a greedy choice among ``scores``, shape (levels, rows): row x levels + level."""
    running = np.minimum.accumulate(scores, axis=0).T.ravel()
    usable = np.flatnonzero(running > NEVER)
    order: Rows = usable[np.argsort(-running[usable], kind="stable")[:count]]
    return order


def ladder(cls: TaskClass, rows: Rows, totals: Floats, normal: Floats | None, levels: int) -> Floats:
    """Score of the next pod on each row after 0, 1, … pods of the class went there; shape (levels, rows)."""
    found = np.empty((levels, rows.size))
    found[0] = totals
    if levels > 1:
        now, score, batch = _after(cls, rows, range(1, levels))
        total = score + (batch if normal is None else batch + normal[rows])
        found[1:] = np.where(now, total, NEVER)
    return found


def _after(cls: TaskClass, rows: Rows, pods: range) -> tuple[Bools, Floats, Floats]:
    """Idle room, score and batch score of each row with so many ``pods`` more on it; each of shape (pods, rows)."""
    index, shape = np.tile(rows, len(pods)), (len(pods), rows.size)
    counts = np.repeat(np.array(pods, dtype=np.int64), rows.size)
    nodes = cls.table.view(index).after(counts, cls.request, cls.nonzero)
    _, now, score, batch = cls.look(nodes)
    return now.reshape(shape), score.reshape(shape), batch.reshape(shape)


# ---------------------------------------------------------------------- scores that shift


def shifting_run(cls: TaskClass, count: int, members: Bools) -> Choice | None:
    """:func:`run` where raw scores change with each placement; None where they may change for some nodes only."""
    rows = np.flatnonzero(members)
    common = _common(cls, rows, count)
    if common is None:
        return None
    parts = _parts(cls, members, rows)
    levels = min(count, max(cls.levels, 1 + -(-count // rows.size)))
    while (found := _one_after_another(cls, rows, parts, common, levels)) is None:
        levels = min(count, levels * LEVELS_MORE)
    places, full = found
    uneven = any(low < high for low, high in cls.extremes(members))
    if uneven and not same_extremes(cls, members, rows[full]):
        return None
    return Choice(rows[places].tolist(), OperationKind.ALLOCATE, stepwise=True)


def _common(cls: TaskClass, rows: Rows, count: int) -> list[list[float]] | None:
    """The raw scores that all ``rows`` have in common before each of ``count`` placements, one list a shifting hook."""
    nodes, found = cls.table.view(rows), []
    for scorer, fixed in cls.unnormalised:
        if fixed is None:
            alike = None if scorer.alike is None else scorer.alike(cls.task, nodes, count)
            if alike is None:
                return None
            found.append(alike.tolist())
    return found


def _parts(cls: TaskClass, members: Bools, rows: Rows) -> list[Floats | None]:
    """The normalised scores of ``rows`` in the order in which they are added up; None for those that shift."""
    found: list[Floats | None] = []
    for scorer, raw in cls.unnormalised:
        if raw is None or scorer.normalise is None:
            found.append(None)
            continue
        inside = raw[members]
        found.append(scorer.normalise(cls.task, raw, float(inside.min()), float(inside.max()))[rows])
    return found


def _one_after_another(
    cls: TaskClass, rows: Rows, parts: list[Floats | None], common: list[list[float]], levels: int
) -> tuple[list[int], Rows] | None:
    """The greedy choice, each step with the scores of its moment: places in ``rows``, and which are full at the end.

    The very sums of single steps, in their order: floating point would tell others apart.  None where a row takes more
    than ``levels`` tells of.
    """
    now, score, batch = _after(cls, rows, range(levels + 1))
    on_row, places = np.zeros(rows.size, dtype=np.intp), []
    idle, base, more = now[0].copy(), score[0].copy(), batch[0].copy()
    for step in zip(*common, strict=True):
        totals = np.where(idle, base + (more + _normal(cls, parts, step, rows.size)), NEVER)
        best = int(totals.argmax())
        if not idle[best]:
            break
        places.append(best)
        on_row[best] += 1
        if on_row[best] > levels:
            return None
        level = on_row[best]
        idle[best], base[best], more[best] = now[level, best], score[level, best], batch[level, best]
    return places, np.flatnonzero(~idle)


def _normal(cls: TaskClass, parts: list[Floats | None], step: tuple[float, ...], size: int) -> Floats:
    """The normalised scores of one step, added up as :meth:`TaskClass.normal` does."""
    total: Floats | None = None
    shifting = iter(step)
    for (scorer, _), part in zip(cls.unnormalised, parts, strict=True):
        if part is None and scorer.normalise is not None:
            raw = next(shifting)
            part = scorer.normalise(cls.task, np.full(size, raw), raw, raw)
        if part is None:
            continue
        total = part if total is None else total + part
    return np.zeros(size) if total is None else total
