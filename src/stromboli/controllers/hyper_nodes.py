"""The controller of HyperNodes: how many members each has."""

from __future__ import annotations

import msgspec

from stromboli.controllers.changes import Outcome, Patch
from stromboli.controllers.world import World
from stromboli.crds.kinds import HYPER_NODES
from stromboli.crds.topology import HyperNode
from stromboli.model.spec import NodeSpec
from stromboli.model.topology import HyperNodeSpec, build, hyper_members


def look(hyper_node: HyperNode, world: World) -> Outcome:
    """Write the number of names that the members' selectors take, against the nodes that there are."""
    count = member_count(hyper_node, world)
    if count == hyper_node.status.node_count:
        return Outcome()
    return Outcome().then(
        Patch(HYPER_NODES, "", hyper_node.metadata.name, {"status": {"nodeCount": count}}, status=True)
    )


def member_count(hyper_node: HyperNode, world: World) -> int:
    """How many nodes, and hypernodes by exact name, are members."""
    spec = msgspec.convert(msgspec.to_builtins(hyper_node.spec), HyperNodeSpec)
    nodes = [NodeSpec(name=name, labels=dict(labels)) for name, labels in world.nodes.items()]
    own = build({hyper_node.metadata.name: spec}, nodes).infos[hyper_node.metadata.name]
    return len(own.rows) + len(set(hyper_members(spec)))
