"""The HyperNode objects of a cluster, and the topology that they make of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stromboli.api.fields import LabelSelector
from stromboli.api.topology import HYPER_NODE, NODE, ExactMatch, HyperNodeSpec, Member, MemberSelector
from stromboli.cluster import kinds
from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.decoding.decode import naming
from stromboli.model.job import Job
from stromboli.model.podgroup import asks_for_group
from stromboli.model.spec import NodeSpec
from stromboli.model.table import NodeStatics
from stromboli.model.topology import Topology, build

MOST_KEYS: Final = 4
"""Most labels that make domains where there are no HyperNodes; others make none."""


class HyperNodeStore:
    """HyperNodes by name, in the order in which they came."""

    __slots__ = ("_keys", "_specs", "_statics", "_topology")

    def __init__(self) -> None:
        self._specs: dict[str, HyperNodeSpec] = {}
        self._topology = Topology()
        self._statics: NodeStatics | None = None
        self._keys = frozenset[str]()

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

    def topology(self, statics: NodeStatics, keys: frozenset[str] = frozenset()) -> Topology:
        """The topology over the nodes of ``statics``; rebuilt only after a HyperNode or a node has changed.

        Where there are no HyperNodes the labels ``keys`` of nodes make domains, a tier each.
        """
        if self._statics is not statics or self._keys != keys:
            specs = self._specs or by_labels(keys, statics.specs)
            if specs or self._topology.infos:
                self._topology = build(specs, statics.specs)
        self._statics, self._keys = statics, keys
        return self._topology


def asks_for_domains(job: Job) -> bool:
    """Whether domains matter to ``job``: it asks for closeness or a topology group, or lies in a hypernode."""
    lies = bool(job.hyper_nodes.allocated or job.hyper_nodes.of_parts)
    return lies or job.facts.is_close or asks_for_group(job.annotations)


def by_labels(keys: Iterable[str], nodes: Sequence[NodeSpec]) -> dict[str, HyperNodeSpec]:
    """HyperNodes of the values that nodes have of the labels ``keys``: a tier called like the label for each.

    A label with more values has the lower tier.  What of it lies wholly within one value of another is a member there.
    """
    found: dict[str, HyperNodeSpec] = {}
    names: dict[str, dict[str, set[str]]] = {key: {} for key in sorted(keys)[:MOST_KEYS]}
    for key, domains in names.items():
        for node in nodes:
            if node.labels.get(key):
                domains.setdefault(f"{key}={node.labels[key]}", set()).add(node.name)
    below: dict[str, set[str]] = {}
    for tier, key in enumerate(sorted(names, key=lambda key: -len(names[key])), 1):
        for name, inside in names[key].items():
            label = MemberSelector(label_match=LabelSelector({key: name.removeprefix(f"{key}=")}))
            within = [lower for lower, lowers in below.items() if lowers <= inside]
            members = [Member(HYPER_NODE, MemberSelector(ExactMatch(lower))) for lower in within]
            found[name] = HyperNodeSpec(tier, key, (Member(NODE, label), *members))
            for lower in within:
                del below[lower]
        below |= names[key]
    return found
