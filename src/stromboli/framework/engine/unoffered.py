"""Tasks that ask for a resource that no node offers: no node takes them, whatever is evicted.

There may be as many of these names as there are pods, so such tasks are refused without asking predicates and scores.
"""

from __future__ import annotations

import numpy as np

from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.refusals import first_short, insufficient
from stromboli.framework.engine.rows import Bools
from stromboli.model.resources.axes import UNOFFERED
from stromboli.model.table import NodeTable
from stromboli.model.task import Task

_Wants = tuple[tuple[int, int], ...]


class Unoffered:
    """Which tasks these are, where ``column`` is that of the unoffered, and what the nodes say to them."""

    __slots__ = ("_column", "_lacking", "_moment", "_table")

    def __init__(self, table: NodeTable, column: int) -> None:
        self._table, self._column = table, column
        self._moment = -1
        self._lacking: dict[tuple[_Wants, bytes], list[int]] = {}

    def asked_by(self, task: Task) -> bool:
        """Whether ``task`` asks for anything that no node offers and no queue names."""
        vector = task.template.vector
        return self._column < len(vector) and vector[self._column] > 0

    def refusals(self, task: Task, within: Bools | None) -> Fits:
        """Why no node (of ``within``, or at all) takes such a task: of each the first resource that it lacks."""
        axes, vector = self._table.axes, task.template.vector
        names = axes.names_of(axes.deciding(task.request), task.request)
        first = next(place for place, name in enumerate(names) if name not in axes.index)
        wants = tuple((axes.index[name], vector[axes.index[name]]) for name in names[:first])
        counts = self._counted(wants, within)
        return Fits(insufficient(names[: first + 1], counts), sum(counts))

    def _counted(self, wants: _Wants, within: Bools | None) -> list[int]:
        """How many nodes lack each of ``wants`` first, and last how many lack none of them."""
        if self._moment != len(self._table.journal):
            self._moment = len(self._table.journal)
            self._lacking.clear()
        key = wants, b"" if within is None else within.tobytes()
        found = self._lacking.get(key)
        if found is None:
            found = self._lacking[key] = self._count(wants, within)
        return found

    def _count(self, wants: _Wants, within: Bools | None) -> list[int]:
        columns, amounts = [column for column, _ in wants], [amount for _, amount in wants]
        asked = np.ones(len(self._table), dtype=bool) if within is None else within
        counts, left = first_short(amounts, self._table.future[columns], asked)
        return [*counts, int(left.sum())]


def unoffered(table: NodeTable) -> Unoffered | None:
    """What is asked of those tasks; None where no pod of the cluster is one of them."""
    column = table.axes.index.get(UNOFFERED)
    return None if column is None else Unoffered(table, column)
