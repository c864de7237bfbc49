"""Looking at some of the nodes only, as the reference does in large clusters.

Nodes are looked at in a circle, from the one on at which the last look ended, until enough of them will do.  It is off
unless the process is told otherwise: with whole vectors it saves nothing, and the best node may be among the others.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.config.sampling import Sampling
from stromboli.framework.engine.rows import Bools

MEMORY: Final = "stromboli/node-sampling"
"""Under which name it is kept where the last look ended."""

NEXT: Final = "next"


class Sampler:
    """Keeps where the last look ended, in ``memory``, which travels from cycle to cycle."""

    __slots__ = ("_memory", "sampling")

    def __init__(self, sampling: Sampling, memory: dict[str, float]) -> None:
        self.sampling, self._memory = sampling, memory

    def looked_at(self, fits: Bools, among: Bools) -> Bools:
        """Those that ``fits`` marks of the rows that are looked at ``among`` some, shape (nodes,)."""
        rows = np.flatnonzero(among)
        if not rows.size:
            return among
        start = self.start(rows.size)
        circle = np.roll(rows, -start)
        hits = np.flatnonzero(fits[circle])[: self.sampling.enough(rows.size)]
        enough = hits.size == self.sampling.enough(rows.size)
        self.ended(start + (int(hits[-1]) + 1 if enough else rows.size), rows.size)
        found = np.zeros_like(among)
        found[circle[hits]] = True
        return found

    def start(self, nodes: int) -> int:
        """The place among so many nodes with which a look begins."""
        return int(self._memory.get(NEXT, 0)) % nodes

    def ended(self, place: int, nodes: int) -> None:
        """A look has come as far as ``place`` among so many nodes, counted on behind the last one."""
        self._memory[NEXT] = float(place % nodes)


def sampler_of(session: ClusterView) -> Sampler | None:
    """What narrows the session's looks at nodes; None where all are looked at."""
    sampling = session.config.sampling or (Sampling() if session.compat.asks("node-sampling") else None)
    nodes = len(session.table)
    if sampling is None or sampling.enough(nodes) >= nodes:
        return None
    return Sampler(sampling, session.memory(MEMORY))
