"""How many tasks of a template nodes have room for, kept from task to task: rows that changed are counted again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.table import EVERY, Ints, NodeRows, Rows
from stromboli.model.task import PodTemplate

if TYPE_CHECKING:
    from stromboli.filters.columns import Bools
    from stromboli.framework.books.ledger import Ledger

KEPT: Final = 64
"""Templates whose room is kept: each takes nine bytes a node."""


class Room:
    """The room of rows once tasks that end have left: what fits with one task, and how many ``more`` beside it.

    ``more`` is 0 or greater, and has no bound where a task asks for nothing; both have the shape (rows,).
    """

    __slots__ = ("_request", "fits", "more", "seen")

    def __init__(self, room: Ints, request: Ints) -> None:
        """``room`` has the shape (resources, rows), ``request`` (resources,)."""
        self._request, self.seen = request, 0
        self.fits: Bools = np.zeros(room.shape[1], dtype=bool)
        self.more: Ints = np.zeros(room.shape[1], dtype=np.int64)
        self.count(EVERY, room)

    def count(self, rows: Rows | slice, room: Ints) -> None:
        """Take over the ``room`` of ``rows``."""
        self.fits[rows] = (room >= self._request[:, None]).all(axis=0)
        more = np.full(room.shape[1], np.iinfo(np.int64).max)
        for column, amount in enumerate(self._request.tolist()):
            if amount:
                np.minimum(more, (room[column] - amount) // amount, out=more)
            elif column in (CPU, MEMORY):
                more[room[column] < 0] = 0
        self.more[rows] = np.maximum(more, 0)


class Rooms:
    """The room for each template that was asked about last, of all rows of a session's nodes."""

    __slots__ = ("_kept", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: dict[int, Room] = {}

    def of(self, template: PodTemplate, nodes: NodeRows) -> Room:
        """The room for ``template`` on the rows of ``nodes``."""
        if not nodes.is_whole:
            return Room(nodes.idle + nodes.releasing, self._ledger.arrays(template)[0])
        table = self._ledger.table
        found = self._kept.pop(template.number, None)
        if found is None:
            found = Room(table.unreserved(), self._ledger.arrays(template)[0])
            if len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
        elif found.seen < len(table.journal):
            rows = np.unique(np.array(table.journal[found.seen :], dtype=np.intp))
            found.count(rows, table.unreserved(rows))
        found.seen = len(table.journal)
        self._kept[template.number] = found
        return found


__all__ = ["Room", "Rooms"]
