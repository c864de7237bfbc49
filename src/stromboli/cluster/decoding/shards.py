"""The NodeShard objects of a cluster, and what this scheduler may take of its own."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stromboli.cluster import kinds
from stromboli.model.objects.shard import HARD, NONE, NodeShardStatus, Shard


class Shards(msgspec.Struct, frozen=True, array_like=True):
    """A :class:`ShardStore` as plain values; ``kept`` are the nodes that are ours to use."""

    mode: str = NONE
    name: str = ""
    objects: dict[str, kinds.NodeShard] = {}
    kept: list[str] = []


class ShardStore:
    """All shards by name; ``name`` is our own and ``mode`` one of none, hard and soft.

    A node is ours to use once our own object says so in ``nodesInUse``, so that two schedulers never use one node: each
    says what it uses before using it, and takes nothing that another one still says it uses.
    """

    def __init__(self) -> None:
        self.mode, self.name = NONE, ""
        self._shards: dict[str, kinds.NodeShard] = {}
        self._kept: frozenset[str] = frozenset()

    def set_mode(self, mode: str, name: str) -> None:
        """Take over how shards count and which one is ours."""
        self.mode, self.name = mode, name
        self._renew()

    def apply(self, found: kinds.NodeShard, stays: bool) -> None:
        """Take an object in, new or changed, or let it go."""
        self._shards.pop(found.metadata.name, None)
        if stays:
            self._shards[found.metadata.name] = found
        self._renew()

    def _renew(self) -> None:
        if (own := self.own) is not None:
            self._kept = self._offered(own).intersection(own.status.nodes_in_use)
        else:
            self._kept -= self._used_by_others()

    @property
    def own(self) -> kinds.NodeShard | None:
        """Our own object."""
        return self._shards.get(self.name)

    def _offered(self, own: kinds.NodeShard) -> frozenset[str]:
        """What our shard should have, without what others still use."""
        return frozenset(own.spec.nodes_desired) - self._used_by_others()

    def _used_by_others(self) -> frozenset[str]:
        others = (shard for name, shard in self._shards.items() if name != self.name)
        return frozenset().union(*(other.status.nodes_in_use for other in others))

    def status(self) -> NodeShardStatus | None:
        """What our object is to say of what we use; None where it says so, or there is none."""
        if self.mode == NONE or (own := self.own) is None:
            return None
        wanted, used = set(own.spec.nodes_desired), self._offered(own)
        found = NodeShardStatus(*(tuple(sorted(part)) for part in (used, used - wanted, wanted - used)))
        said = (own.status.nodes_in_use, own.status.nodes_to_remove, own.status.nodes_to_add)
        return None if NodeShardStatus(*(tuple(sorted(part)) for part in said)) == found else found

    def shown(self) -> Shard | None:
        """What snapshots say; without our object the nodes that it named last are used, until others use them."""
        return None if self.mode == NONE else Shard(self.mode == HARD, self._kept)

    def plain(self) -> Shards:
        """All of it, as it stands."""
        return Shards(self.mode, self.name, dict(self._shards), sorted(self._kept))

    def restore(self, found: Shards) -> None:
        """Stand as :meth:`plain` said."""
        self.mode, self.name, self._shards, self._kept = (
            found.mode,
            found.name,
            dict(found.objects),
            frozenset(found.kept),
        )

    def announce(self) -> None:
        """Have our object say what we use, as the scheduler of a cluster does before it uses any of it."""
        if (own := self.own) is not None and (status := self.status()) is not None:
            self.apply(replace(own, status=status), stays=True)

    def problems(self) -> list[str]:
        """What keeps shards from being used."""
        if self.mode == NONE or self.own is not None:
            return []
        return [
            f"Sharding is enabled but no shard is defined for this scheduler! There is no NodeShard {self.name!r:.80}"
        ]
