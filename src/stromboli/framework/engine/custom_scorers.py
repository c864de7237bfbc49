"""Points that are called for each task with its candidates: scores by name, mapped scores, the best node.

They read what they like, so nothing of their answers is kept and no run of tasks is placed at once where one of them
is enabled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stromboli.framework.engine.rows import Floats
from stromboli.model.table import Node, NodeTable, Rows
from stromboli.model.task import Task


class Mapped(NamedTuple):
    """One plugin's raw scores of single nodes, and what turns all of them into scores, if it has that."""

    raw: Callable[[Task, Node], float]
    reduce: Callable[[Task, dict[str, int]], object] | None


Best = Callable[[Task, Mapping[float, Sequence[Node]]], Node | None]
"""One plugin's choice among the candidates, given by their scores."""


class Choosers:
    """All of them, each in the order of the configuration."""

    __slots__ = ("batches", "best", "maps")

    def __init__(
        self,
        maps: Sequence[Mapped] = (),
        batches: Sequence[Callable[[Task, Any], Mapping[str, float]]] = (),
        best: Sequence[Best] = (),
    ) -> None:
        self.maps, self.batches, self.best = maps, batches, best

    def __bool__(self) -> bool:
        return bool(self.maps or self.batches or self.best)

    def reduced(self, task: Task, table: NodeTable, rows: Rows) -> Floats:
        """Mapped scores of ``rows``, made whole numbers, reduced plugin by plugin and added up; shape (rows,)."""
        names = [table.statics.names[row] for row in rows.tolist()]
        total = np.zeros(len(names))
        for raw, reduce in self.maps:
            scores = {name: math.floor(raw(task, Node(table, row))) for name, row in zip(names, rows, strict=True)}
            if reduce is not None:
                reduce(task, scores)
            total += [scores.get(name, 0) for name in names]
        return total

    def named(self, task: Task, table: NodeTable, rows: Rows) -> Floats:
        """Scores that were given by the nodes' names, added up; shape (rows,)."""
        names = [table.statics.names[row] for row in rows.tolist()]
        total = np.zeros(len(names))
        for batch in self.batches:
            scores = batch(task, table.view(rows))
            total += [scores.get(name, 0.0) for name in names]
        return total

    def best_row(self, task: Task, table: NodeTable, rows: Rows, scores: Floats) -> int | None:
        """The row that the first plugin with an opinion takes, whatever the scores; None when none has one."""
        if not self.best:
            return None
        by_score: dict[float, list[Node]] = {}
        for place in np.argsort(-scores, kind="stable").tolist():
            by_score.setdefault(float(scores[place]), []).append(Node(table, int(rows[place])))
        for choose in self.best:
            if (node := choose(task, by_score)) is not None:
                return table.row(node.name)
        return None
