"""Domains that nothing of any job runs in: how large the ones are that a placement would begin to use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.framework.books.domains import NOWHERE, Domains
from stromboli.model.job import HELD_STATUS
from stromboli.model.table import Rows

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

Floats = npt.NDArray[np.float64]


class WholeDomains:
    """How many tasks of jobs each domain holds; pods without a PodGroup, such as those of DaemonSets, don't count."""

    def __init__(self, session: ClusterView, domains: Domains) -> None:
        places = session.table.statics.row
        nodes = (task.node_name for job in session.jobs.peek() for task in job.of(*HELD_STATUS))
        rows = np.array([places[name] for name in nodes if name in places], dtype=np.intp)
        self._domains, self._held = domains, domains.sums(np.bincount(rows, minlength=len(session.table))[None, :])[0]
        self._sizes = np.array([len(info.rows) for info in domains.infos], dtype=np.float64)
        above = [domains.index.get(info.parent, NOWHERE) for info in domains.infos]
        self._levels = [(numbers, np.array(above, dtype=np.intp)[numbers]) for numbers in _by_tier(domains)]

    def moved(self, rows: Sequence[int], times: int) -> None:
        """So many tasks more, or less, on each of ``rows``."""
        for row in rows:
            self._held[self._domains.above(row)] += times

    def broken(self) -> Floats:
        """By domain the largest one without tasks that it belongs to, itself included, as a part of the largest.

        That is what a placement there takes from later jobs: 0 where the domain already has tasks.
        """
        found = np.append(np.where(self._held > 0, 0.0, self._sizes), 0.0)
        for numbers, above in self._levels:
            found[numbers] = np.maximum(found[numbers], found[above])
        part: Floats = found[:-1] / max(float(self._sizes.max(initial=1.0)), 1.0)
        return part


def _by_tier(domains: Domains) -> list[Rows]:
    """The numbers of the domains of each tier, the widest first."""
    tiers = np.array([info.tier for info in domains.infos])
    return [np.flatnonzero(tiers == tier) for tier in sorted(domains.at_tier, reverse=True)]
