"""The HyperNode objects of a cluster, and the topology that they make of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.cluster import kinds
from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.decoding.decode import naming
from stromboli.model.table import NodeStatics
from stromboli.model.topology import HyperNodeSpec, Topology, build


class HyperNodeStore:
    """HyperNodes by name, in the order in which they came."""

    __slots__ = ("_specs", "_statics", "_topology")

    def __init__(self) -> None:
        self._specs: dict[str, HyperNodeSpec] = {}
        self._topology = Topology()
        self._statics: NodeStatics | None = None

    def apply(self, hyper_node: kinds.HyperNode, stays: bool) -> None:
        """Take an object in, new or changed, or let it go.  Raises ManifestError, nothing changed, for a bad tier."""
        name = hyper_node.metadata.name
        with naming("HyperNode", hyper_node.metadata):
            check_whole(hyper_node.spec.tier, COUNT, "spec.tier")
        if stays and self._specs.get(name) == hyper_node.spec:
            return
        self._statics = None
        if stays:
            self._specs[name] = hyper_node.spec
        else:
            self._specs.pop(name, None)

    def specs(self) -> Mapping[str, HyperNodeSpec]:
        """What the objects say, by name."""
        return self._specs

    def topology(self, statics: NodeStatics) -> Topology:
        """The topology over the nodes of ``statics``; worked out anew only after a HyperNode or a node has changed."""
        if self._statics is not statics and (self._specs or self._topology.infos):
            self._topology = build(self._specs, statics.specs)
        self._statics = statics
        return self._topology
