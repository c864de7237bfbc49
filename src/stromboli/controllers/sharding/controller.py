"""The controller of shards: keeps the NodeShards of the configured schedulers equal to a division of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from stromboli.api.kinds import KINDS, NODE_SHARDS
from stromboli.api.topology import NodeShard
from stromboli.controllers.changes import Change, Create, Delete, Outcome, Patch, Subject, warning
from stromboli.controllers.sharding import division
from stromboli.controllers.sharding.configuration import DEFAULT_SCHEDULERS, Sharding, from_flags, read
from stromboli.controllers.sharding.usage import PodOnNode, SizedNode, Usage
from stromboli.controllers.work import About
from stromboli.controllers.world import Key, Shelf
from stromboli.errors import ManifestError

WHOLE: Final[Key] = ("", "")
"""The key of the only look: all nodes are divided together."""
CONFIGURATION: Final = "ShardingConfiguration"
"""Reason of the events on the ConfigMap."""
REST: Final = 0.2
"""Seconds between two looks, at least, even if the first has changed nothing: each look divides all nodes."""
REST_FOR_EACH: Final = 0.0002
"""Seconds that they are apart for each node: several times what dividing it costs."""

_NEW: Final = {"apiVersion": KINDS["NodeShard"].api_version, "kind": "NodeShard"}


class ShardingController:
    """Follows nodes, pods and the ConfigMap; ``ask`` has the division looked at.

    ``flags`` count as long as no ConfigMap that can be used has been seen.
    """

    def __init__(self, ask: Callable[[About, Iterable[Key]], None], flags: Sharding | None = None) -> None:
        self.shards: Shelf[NodeShard] = Shelf()
        self.usage = Usage()
        self.config = flags or from_flags(DEFAULT_SCHEDULERS)
        self._ask, self._flags, self._from_map = ask, self.config, False
        self._config_map = Subject("v1", "ConfigMap", "", "", "")
        self._problems: tuple[str, ...] = ()
        self._said: tuple[str, ...] = ()
        self.again()

    def configure(self, config_map: Subject, data: Mapping[str, str]) -> None:
        """The ConfigMap has come or changed.  What cannot be used changes nothing but an event."""
        self._config_map = config_map
        problems: list[str] = []
        try:
            self.config, self._from_map = read(data, self._flags, problems), True
        except ManifestError as error:
            stays = "the configuration before stays" if self._from_map else "what --scheduler-configs says counts"
            problems.append(f"{error}; {stays}")
        self._problems = tuple(problems)
        self.again()

    def gone(self, _: Key) -> None:
        """The ConfigMap is gone: its last configuration stays."""
        self._problems = ()

    def again(self) -> None:
        """Request a new division of the nodes."""
        self._ask(About.sharding, [WHOLE])

    def seen_node(self, node: SizedNode) -> None:
        """A node has come or changed."""
        self._moved(self.usage.put_node(node, self.config.labels))

    def gone_node(self, key: Key) -> None:
        """A node is gone."""
        self._moved(self.usage.drop_node(key[1]))

    def seen_pod(self, pod: PodOnNode) -> None:
        """A pod has come or changed."""
        self._moved(self.usage.put_pod(pod))

    def gone_pod(self, key: Key) -> None:
        """A pod is gone."""
        self._moved(self.usage.drop_pod(key))

    def seen_shard(self, shard: NodeShard) -> None:
        """A NodeShard has come or changed; one that says something else than it should is written again."""
        known = self.shards.put(shard)
        if known is None or (known is not shard and known.spec != shard.spec):
            self.again()

    def gone_shard(self, key: Key) -> None:
        """A NodeShard is gone: it is made again if its scheduler is to have one."""
        if self.shards.drop(key) is not None:
            self.again()

    def _moved(self, moved: bool) -> None:
        if moved and self.config.follows_nodes:
            self.again()

    def look(self, _: Key, now: float) -> Outcome:
        """Divide the nodes, and write the NodeShards that say otherwise."""
        config = self.config
        wanted = division.divide(config.schedulers, self.usage.nodes())
        said = (*self._problems, *division.too_few(config.schedulers, wanted))
        outcome = Outcome(after=config.period, rest=REST + REST_FOR_EACH * len(self.usage))
        if said != self._said and self._config_map.name:
            outcome.then(*(warning(self._config_map, CONFIGURATION, text) for text in said if text not in self._said))
            self._said = said
        before = {shard.metadata.name: shard.spec.nodes_desired for shard in self.shards.values()}
        if division.is_worth_it(before, wanted):
            outcome.then(*self._stale(wanted))
            outcome.then(*self._written(wanted))
        return outcome

    def _stale(self, wanted: division.Shards) -> list[Change]:
        shards = [shard.metadata for shard in self.shards.values() if shard.metadata.name not in wanted]
        return [Delete(NODE_SHARDS, "", metadata.name, metadata.uid) for metadata in shards]

    def _written(self, wanted: division.Shards) -> list[Change]:
        found: list[Change] = []
        for name, nodes in wanted.items():
            shard, spec = self.shards.get("", name), {"nodesDesired": list(nodes)}
            if shard is None:
                found.append(Create(NODE_SHARDS, "", {**_NEW, "metadata": {"name": name}, "spec": spec}))
            elif set(shard.spec.nodes_desired) != set(nodes):
                found.append(Patch(NODE_SHARDS, "", name, {"spec": spec}))
        return found
