"""The hypernodes of a session as columns: what the nodes of each offer and use together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.table import Ints, NodeTable, Rows

Bools = npt.NDArray[np.bool_]

NOWHERE: Final = -1
"""The domain of a row that lies in none."""


class Domains:
    """Hypernodes by column, closer tiers first, then by name; amounts have the shape (resources, domains).

    ``alloc`` is what the nodes offer, ``used`` what their tasks take, reserved room included.  ``used`` follows
    placements; ``idle`` and ``future`` (idle once terminating pods have left and reserved room is taken) are those of
    the session's beginning.  ``at_tier`` gives by tier the domain of each row, :data:`NOWHERE` for rows without one;
    ``narrowest`` that of the closest tier, of which ``overlap`` says whether any of its domains share a node.
    Whole numbers, so that a placement taken back leaves every sum as it was.
    """

    def __init__(self, infos: Mapping[str, HyperNodeInfo], table: NodeTable) -> None:
        known = sorted((info for info in infos.values() if info.known), key=lambda info: (info.tier, info.name))
        self.infos, self.index = known, {info.name: number for number, info in enumerate(known)}
        sizes = np.array([len(info.rows) for info in known], dtype=np.intp)
        self._rows: Rows = np.array([row for info in known for row in info.rows], dtype=np.intp)
        self._starts, self._filled = (np.cumsum(sizes) - sizes)[sizes > 0], np.flatnonzero(sizes)
        self.alloc, self.idle, self.future = self.sums(table.alloc), self.sums(table.idle), self.sums(table.future)
        self.used = self.sums(table.used) + self.sums(table.pipelined)
        by_row = np.argsort(self._rows, kind="stable")
        self._above: Rows = np.repeat(np.arange(len(known)), sizes)[by_row]
        self._first = np.concatenate(([0], np.cumsum(np.bincount(self._rows, minlength=len(table)))))
        self.at_tier = {tier: self._at(tier, len(table)) for tier in sorted({info.tier for info in known})}
        self.narrowest = self.at_tier[next(iter(self.at_tier))]
        closest = sizes[[info.tier == known[0].tier for info in known]]
        self.overlap = int(closest.sum()) > int(np.count_nonzero(self.narrowest != NOWHERE))

    def __len__(self) -> int:
        return len(self.infos)

    @cached_property
    def up(self) -> Rows:
        """Each domain and those around it, nearest first, shape (depth, domains); :data:`NOWHERE` above the widest."""
        above = np.array([*(self.index.get(info.parent, NOWHERE) for info in self.infos), NOWHERE], dtype=np.intp)
        found = [np.arange(len(self), dtype=np.intp)]
        while (found[-1] != NOWHERE).any():
            found.append(above[found[-1]])
        return np.array(found)

    def sums(self, amounts: Ints) -> Ints:
        """``amounts`` by row, shape (any, nodes), added up by domain, shape (any, domains)."""
        found = np.zeros((len(amounts), len(self.infos)), dtype=np.int64)
        if self._rows.size:
            found[:, self._filled] = np.add.reduceat(amounts[:, self._rows], self._starts, axis=1)
        return found

    def _at(self, tier: int, rows: int) -> Rows:
        found = np.full(rows, NOWHERE, dtype=np.intp)
        for number, info in reversed(list(enumerate(self.infos))):  # of two with a node in common the first counts
            if info.tier == tier:
                found[info.rows] = number
        return found

    def above(self, row: int) -> Rows:
        """The domains that a row lies in."""
        return self._above[self._first[row] : self._first[row + 1]]

    def take(self, request: Ints, rows: Sequence[int], times: int = 1) -> None:
        """Count a task with ``request`` on each of ``rows``; with ``times`` -1 no longer."""
        if len(rows) == 1:
            self.used[:, self.above(rows[0])] += (times * request)[:, None]
        else:
            counts = np.zeros(len(self), dtype=np.int64)
            for row in rows:
                counts[self.above(row)] += times
            self.used += request[:, None] * counts

    def covering(self, need: Mapping[int, int], room: Ints) -> Bools:
        """Which domains have ``need``, by column, in ``room``, which is one of the amounts."""
        covers: Bools = np.ones(len(self), dtype=bool)
        for column, amount in need.items():
            covers &= amount <= room[column] if column < len(room) else amount <= 0
        return covers
