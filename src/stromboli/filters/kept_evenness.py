"""How evenly the resources of every node are in use, kept over the questions about all pods of a session."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stromboli.filters.scores import evenness, evenness_rows
from stromboli.model.table import Ints, Node, NodeRows, NodeTable

ONE_BY_ONE: Final = 8
"""Up to so many rows are renewed one by one; for more, arrays are cheaper."""


class _Kept(NamedTuple):
    """The evenness of all rows, shape (nodes,), after so many entries of the table's journal."""

    rows: Ints
    seen: int


class KeptEvenness:
    """The part of the balance score that no pod changes: evenness before it comes, by the resources that it asks for.

    Every pod that asks for the same resources shares it.  The table's journal says which rows have changed.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._kept: dict[tuple[int, ...], _Kept] = {}

    def of_rows(self, columns: tuple[int, ...], nodes: NodeRows) -> Ints | None:
        """Evenness of the resources in ``columns`` of some rows of the table as it is now.  Shape (rows,).

        To be used before the next question: of all rows it is what is kept.  None for rows as they would be, and for
        those of another table.
        """
        if nodes.is_hypothetical or nodes.table is not self._table:
            return None
        kept = self._renewed(columns)
        return kept if nodes.index is None else kept[nodes.index]

    def of_node(self, columns: tuple[int, ...], node: Node) -> int:
        """The same of one node."""
        if node.table is not self._table:
            return evenness(*_amounts(node.table, columns, node.row))
        return self._renewed(columns).item(node.row)

    def _renewed(self, columns: tuple[int, ...]) -> Ints:
        journal, kept = self._table.journal, self._kept.get(columns)
        if kept is None:
            rows = evenness_rows(self._table.alloc[list(columns)], self._table.requested[list(columns)])
        elif kept.seen == len(journal):
            return kept.rows
        else:
            rows = kept.rows
            self._renew(rows, columns, {*journal[kept.seen :]})
        self._kept[columns] = _Kept(rows, len(journal))
        return rows

    def _renew(self, kept: Ints, columns: tuple[int, ...], touched: set[int]) -> None:
        if len(touched) <= ONE_BY_ONE:
            for row in touched:
                kept[row] = evenness(*_amounts(self._table, columns, row))
        else:
            rows = np.array([*touched], dtype=np.intp)
            places = np.array(columns)[:, None], rows
            kept[rows] = evenness_rows(self._table.alloc[places], self._table.requested[places])


def _amounts(table: NodeTable, columns: tuple[int, ...], row: int) -> tuple[list[int], list[int]]:
    """What a row offers of the resources in ``columns``, and what is requested of them."""
    return [table.alloc.item(c, row) for c in columns], [table.requested.item(c, row) for c in columns]
