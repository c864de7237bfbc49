"""How many nodes are looked at in large clusters: the reference's flags."""

from __future__ import annotations

from typing import NamedTuple


class Sampling(NamedTuple):
    """How many nodes are enough: the reference's flags, their defaults included.

    ``minimum`` is ``--minimum-feasible-nodes``, ``least_percent`` is ``--minimum-percentage-nodes-to-find`` and
    ``percent`` is ``--percentage-nodes-to-find``.
    """

    minimum: int = 100
    least_percent: int = 5
    percent: int = 0

    def enough(self, nodes: int) -> int:
        """How many nodes that will do are looked for among so many; at least one."""
        if nodes <= self.minimum or self.percent >= 100:
            return nodes
        percent = self.percent if self.percent > 0 else max(50 - nodes // 125, self.least_percent)
        return max(nodes * percent // 100, self.minimum, 1)
