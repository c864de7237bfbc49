"""Nodes for evicting actions: where predicates leave a chance, their scores, and what they refuse now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from stromboli.framework.engine.classes import FEW, NEVER, TaskClass
from stromboli.framework.engine.placement import scored
from stromboli.framework.engine.rows import Bools, Fit, Floats
from stromboli.model.resources.row_states import Change
from stromboli.model.table import Node

ALWAYS: Final = -1
"""Stands for the length of the journal where placements change nothing."""


def curable(cls: TaskClass) -> Bools:
    """The rows that a task of ``cls`` fits, or may fit once tasks are evicted, shape (nodes,).

    A row is out where the first plugin that refuses it gives a reason that no eviction cures.
    """
    known = cls.curable
    if known is None or known[0] not in (ALWAYS, len(cls.table.journal)):
        moment = len(cls.table.journal) if _moves(cls) else ALWAYS
        known = cls.curable = (moment, _curable(cls))
    return known[1]


def _moves(cls: TaskClass) -> bool:
    """Whether placements may change which rows are out."""
    return any(_may_abort(fit) or len(cls.hooks.fits) > 1 for fit in (*cls.moving, *cls.global_filters))


def _curable(cls: TaskClass) -> Bools:
    nodes = cls.table.view()
    out, refused = np.zeros(len(nodes), dtype=bool), np.zeros(len(nodes), dtype=bool)
    last = len(cls.hooks.fits) - 1
    for place, plugin in enumerate(cls.hooks.fits):
        mine = np.zeros(len(nodes), dtype=bool)
        for fit in plugin:
            # what the last plugin says counts only where it is incurable; static reasons are known from the start
            if place == last and not _may_abort(fit):
                continue
            masks = fit.masks(cls.task, nodes)
            if masks is None:
                continue
            mine |= masks != 0
            out |= ~refused & ((masks & np.uint64(fit.abort_bits)) != 0)
        refused |= mine
    return ~out


def _may_abort(fit: Fit) -> bool:
    """Whether the hook may give an incurable reason; one that is asked row by row tells only when it is asked."""
    return fit.hook.form != "vector" or fit.abort_bits != 0


def ranking(cls: TaskClass, members: Bools) -> Floats:
    """Scores of ``members`` among themselves, every score hook of the session counted; other rows are never taken."""
    choosers = cls.hooks.choosers
    if cls.simple and _are_open(cls, members):
        return cls.best_now
    if not choosers:
        return scored(cls, members)
    task, table, rows = cls.task, cls.table, np.flatnonzero(members)
    normal = cls.normal(members) if rows.size else None
    batch = cls.batch if normal is None else cls.batch + normal
    scores = np.full(len(table), NEVER)
    scores[rows] = choosers.reduced(task, table, rows) + cls.score[rows]
    scores[rows] += batch[rows] + choosers.named(task, table, rows)
    return scores


def _are_open(cls: TaskClass, members: Bools) -> bool:
    """Whether ``members`` are the rows that are open; checked again only for rows that have changed."""
    journal, known = cls.table.journal, cls.ranked
    cls.ranked = None
    if known is not None and known[1] is members and len(journal) - known[0] <= FEW:
        same = all(members.item(row) is cls.open.item(row) for row in set(journal[known[0] :]))
    else:
        same = bool(np.array_equal(members, cls.open))
    if same:
        cls.ranked = (len(journal), members)
    return same


def passes(cls: TaskClass, row: int) -> bool:
    """Whether no predicate speaks against a task of ``cls`` on ``row``; other nodes' pods are looked at too."""
    if not cls.open[row]:
        return False
    node = Node(cls.table, row)
    if not cls.global_filters:
        return True
    one = cls.table.view(np.array([node.row], dtype=np.intp))
    answers = (fit.admits(cls.task, one) for fit in cls.global_filters)
    return all(answer is None or bool(answer[0]) for answer in answers)


def foreseen(cls: TaskClass, row: int, changes: Sequence[Change]) -> list[float]:
    """Scores of ``row`` after every second of ``changes``, each after a task has left and one of ``cls`` has come.

    As far as ``row`` is open in between, and is known to be from a row that held the same.
    """
    if not cls.simple or cls.remembered is None:
        return []
    scores: list[float] = []
    for number, said in enumerate(cls.remembered.ahead(row, changes)):
        if not said.open:
            break
        if number % 2:
            scores.append(said.best_now)
    return scores
