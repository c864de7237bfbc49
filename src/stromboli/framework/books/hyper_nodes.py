"""The hypernodes of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from stromboli.model.names import TOP_HYPER_NODE as TOP
from stromboli.model.snapshot import HyperNodeInfo, Snapshot
from stromboli.model.topology import names_by_tier


class HyperNodes(Mapping[str, HyperNodeInfo]):
    """Hypernodes by name, the virtual one above all nodes included: it is the parent of those without another.

    ``top`` is that virtual one, a tier above the highest; ``tiers`` are the numbers of the tiers that have names.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        known = snapshot.hyper_nodes.values()
        highest = max((info.tier for info in known), default=0)
        self.top = HyperNodeInfo(TOP, max(1, highest + 1), range(len(snapshot.table)))
        self.top.children = [info.name for info in known if not info.parent]
        self.tiers: Mapping[str, int] = snapshot.hyper_node_tiers
        self._infos = {info.name: info.below(info.parent or TOP) for info in known} | {TOP: self.top}
        self._names = snapshot.table.statics.names

    def __getitem__(self, name: str) -> HyperNodeInfo:
        return self._infos[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    @cached_property
    def by_tier(self) -> Mapping[int, list[str]]:
        """Names of the hypernodes of each tier, closer tiers first."""
        return names_by_tier(self._infos.values())

    @cached_property
    def node_names(self) -> Mapping[str, frozenset[str]]:
        """Names of the nodes below each hypernode."""
        return {name: frozenset(self._names[row] for row in info.rows) for name, info in self._infos.items()}


__all__ = ["TOP", "HyperNodes"]
