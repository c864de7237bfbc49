"""The controller of network topology: HyperNodes, how many members each has, and where discovered ones come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from stromboli.api.fields import Metadata
from stromboli.api.kinds import HYPER_NODES
from stromboli.api.topology import HyperNode, HyperNodeSpec
from stromboli.controllers.changes import Outcome, Patch, Subject
from stromboli.controllers.discovery import labels
from stromboli.controllers.discovery.controller import Discovery
from stromboli.controllers.work import About
from stromboli.controllers.world import Key, Shelf, World, key_of
from stromboli.model.names import NETWORK_TOPOLOGY_SOURCE
from stromboli.model.spec import NodeSpec
from stromboli.model.topology import build, hyper_members


class TopologyController:
    """Follows nodes and HyperNodes; ``ask`` has objects of a kind of look looked at."""

    def __init__(self, world: World, ask: Callable[[About, Iterable[Key]], None]) -> None:
        self.hyper_nodes: Shelf[HyperNode] = Shelf()
        self.discovery = Discovery(world, self.hyper_nodes)
        self._world, self._ask = world, ask

    def seen(self, hyper_node: HyperNode) -> None:
        """A HyperNode has come or changed."""
        if self.hyper_nodes.put(hyper_node) is not hyper_node:
            self._ask(About.hyper_node, [key_of(hyper_node)])

    def gone(self, key: Key) -> None:
        """A HyperNode is gone; its source creates it again if it is still wanted."""
        found = self.hyper_nodes.drop(key)
        if found is not None and (source := found.metadata.labels.get(NETWORK_TOPOLOGY_SOURCE)):
            self.ask_sources([source])

    def seen_node(self, metadata: Metadata) -> None:
        """A node has come or changed."""
        known = self._world.nodes.get(metadata.name)
        if known != metadata.labels:
            self._world.nodes[metadata.name] = metadata.labels
            self._changed(known or {}, metadata.labels)

    def gone_node(self, name: str) -> None:
        """A node is gone."""
        self._changed(self._world.nodes.pop(name, {}), {})

    def configure(self, config_map: Subject, data: Mapping[str, str]) -> None:
        """The ConfigMap with the sources has come or changed."""
        self.ask_sources(self.discovery.configure(config_map, data))

    def ask_sources(self, sources: Iterable[str]) -> None:
        """Have sources looked at; the empty name is their configuration."""
        self._ask(About.discovery, [("", source) for source in sources])

    def look(self, key: Key, now: float) -> Outcome:
        """Write the number of names that the members' selectors take, against the nodes that there are."""
        hyper_node = self.hyper_nodes.get(*key)
        if hyper_node is None:
            return Outcome()
        count = member_count(hyper_node, self._world.nodes)
        if count == hyper_node.status.node_count:
            return Outcome()
        return Outcome().then(Patch(HYPER_NODES, "", key[1], {"status": {"nodeCount": count}}, status=True))

    def discover(self, key: Key, now: float) -> Outcome:
        """Make the HyperNodes of one source equal to what it finds."""
        return self.discovery.look(key[1])

    def _changed(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """A node's labels have changed; a node that is not there has none."""
        self._ask(About.hyper_node, self.hyper_nodes.objects)
        if self.discovery.depends_on(before, after):
            self.ask_sources([labels.SOURCE])


def member_count(hyper_node: HyperNode, nodes: Mapping[str, Mapping[str, str]]) -> int:
    """How many nodes, and hypernodes by exact name, are members; ``nodes`` are labels by name."""
    spec = msgspec.convert(msgspec.to_builtins(hyper_node.spec), HyperNodeSpec)
    specs = [NodeSpec(name=name, labels=dict(found)) for name, found in nodes.items()]
    own = build({hyper_node.metadata.name: spec}, specs).infos[hyper_node.metadata.name]
    return len(own.rows) + len(set(hyper_members(spec)))
