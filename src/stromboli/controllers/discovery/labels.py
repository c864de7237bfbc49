"""Source ``label``: domains from labels that nodes have, such as the rack and the block that they stand in.

``networkTopologyTypes`` lists for each type the labels from the widest to the narrowest; the last one names the host
and makes no HyperNode unless ``hostTier`` is set.  ``preset`` stands for the labels that a cloud sets by itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from stromboli.api.topology import HyperNode
from stromboli.controllers.discovery.domains import Domain, Found

SOURCE: Final = "label"
HOST: Final = "kubernetes.io/hostname"
LONGEST_TYPE: Final = 20
SUFFIX: Final = 5
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters that Kubernetes makes random names of."""
NAMED_NODES: Final = 5
"""Nodes that a sentence on labels that contradict each other names at most."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "oci": (
        "oci.oraclecloud.com/rdma.hpc_island_id",
        "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.local_block_id",
        HOST,
    ),
    "gke": (
        "cloud.google.com/gce-topology-block",
        "cloud.google.com/gce-topology-subblock",
        "cloud.google.com/gce-topology-host",
        HOST,
    ),
    "eks": (
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
        HOST,
    ),
    "nvlink": ("nvidia.com/gpu.clique", HOST),
}
"""Labels that clouds and device plugins set, the widest first, by the name that a configuration gives them."""


class TopologyType(NamedTuple):
    """One hierarchy of labels: ``labels`` from the narrowest that makes a domain (tier 1) to the widest."""

    name: str
    labels: tuple[str, ...]


class _Place(NamedTuple):
    """A domain before it has a name: its tier, counted from 1, and the label and value that its nodes share."""

    tier: int
    label: str
    value: str


Nodes = Mapping[str, Mapping[str, str]]
"""Labels of nodes by name."""


def discover(config: Mapping[str, object], nodes: Nodes, known: Sequence[HyperNode]) -> Found:
    """The domains that labels of ``nodes`` describe; ``known`` HyperNodes of this source keep their names."""
    types, problems = topology_types(config)
    names = _Names(known)
    domains: list[Domain] = []
    for kind in types:
        found = _of_type(kind, nodes, names)
        domains += found.domains
        problems += found.problems
    return Found(tuple(domains), tuple(problems))


def labels_of(config: Mapping[str, object]) -> frozenset[str]:
    """The labels that domains depend on."""
    return frozenset(label for kind in topology_types(config)[0] for label in kind.labels)


# -- Configuration -----------------------------------------------------------------------------------------------------


def topology_types(config: Mapping[str, object]) -> tuple[list[TopologyType], list[str]]:
    """The hierarchies that a configuration states, and sentences on those that are left out."""
    types: list[TopologyType] = []
    problems: list[str] = []
    used: dict[str, str] = {}
    skip = 0 if config.get("hostTier") is True else 1
    for name, labels in _stated(config, problems):
        problem = _problem_of(name, labels, used)
        if problem:
            problems.append(f"topology type {name[:LONGEST_TYPE]} is skipped: {problem}")
            continue
        kept = tuple(reversed(labels[: len(labels) - skip]))
        used.update(dict.fromkeys(kept, name))
        types.append(TopologyType(name, kept))
    return types, problems


def _stated(config: Mapping[str, object], problems: list[str]) -> Iterator[tuple[str, list[str]]]:
    preset = config.get("preset")
    if isinstance(preset, str) and preset in PRESETS:
        yield preset, list(PRESETS[preset])
    elif preset is not None:
        problems.append(f"preset {str(preset)[:63]} is not known; there are {', '.join(PRESETS)}")
    types = config.get("networkTopologyTypes")
    for name, rows in types.items() if isinstance(types, dict) else ():
        rows = rows if isinstance(rows, list) else []
        yield str(name), [str(row.get("nodeLabel", "")) if isinstance(row, dict) else "" for row in rows]


def _problem_of(name: str, labels: Sequence[str], used: Mapping[str, str]) -> str:
    if len(name) > LONGEST_TYPE:
        return f"The length of topologyTypeName exceeds {LONGEST_TYPE}. Use a shorter name"
    if not all(labels):
        return "an entry has no nodeLabel"
    if len(set(labels)) < len(labels):
        return "there are duplicate labels"
    shared = next((label for label in labels[:-1] if label in used), "")
    return f"topology type {used[shared]} already uses the label {shared}" if shared else ""


# -- Domains -----------------------------------------------------------------------------------------------------------


def _of_type(kind: TopologyType, nodes: Nodes, names: _Names) -> Found:
    members: defaultdict[_Place, set[str]] = defaultdict(set)
    parents: defaultdict[_Place, dict[str, _Place | None]] = defaultdict(dict)
    for node, stated in nodes.items():
        places = list(_places(kind, stated))
        for place, wider in zip_longest(places, places[1:]):
            parents[place][node] = wider
        if places:
            members[places[0]].add(node)
    problems = []
    named = {place: names.of(kind.name, place) for place in sorted(parents)}
    for place, claims in sorted(parents.items()):
        above = {wider for wider in claims.values() if wider is not None}
        if len(above) > 1:
            problems.append(_contradiction(place, claims))
        elif above:
            members[above.pop()].add(named[place])
    domains = [
        Domain(
            name=named[place],
            tier=place.tier,
            members=tuple(sorted(members[place])),
            of_domains=place.tier > 1,
            tier_name=place.label,
            labels={place.label: place.value},
        )
        for place in sorted(parents)
        if members[place]
    ]
    return Found(tuple(domains), tuple(problems))


def _places(kind: TopologyType, labels: Mapping[str, str]) -> Iterator[_Place]:
    """The domains of a node from tier 1 upwards; a label that the node lacks ends them."""
    for tier, label in enumerate(kind.labels, 1):
        if label not in labels:
            return
        yield _Place(tier, label, labels[label])


def _contradiction(place: _Place, claims: Mapping[str, _Place | None]) -> str:
    """Say that nodes of one domain name different wider ones, and which nodes are in the minority."""
    counts = Counter(claim for claim in claims.values() if claim is not None)
    common = max(sorted(counts), key=lambda claim: counts[claim])
    others = [
        f"{node} ({wider.value})" for node, wider in sorted(claims.items()) if wider not in (common, None) and wider
    ]
    more = f" and {len(others) - NAMED_NODES} more" if len(others) > NAMED_NODES else ""
    return (
        f"nodes with {place.label}={place.value} disagree on {common.label}: most say {common.value}, but not "
        f"{', '.join(others[:NAMED_NODES])}{more}; the domain belongs to none of them until the labels agree"
    )


class _Names:
    """Names of domains: those that HyperNodes have already, else one made from type, label and value."""

    def __init__(self, known: Iterable[HyperNode]) -> None:
        self._known: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._used: set[str] = set()
        for node in known:
            self._used.add(node.metadata.name)
            for label, value in node.metadata.labels.items():
                self._known[label, value].append(node.metadata.name)

    def of(self, kind: str, place: _Place) -> str:
        """The name of a domain; restarts and other domains do not change it."""
        prefix = f"hypernode-{_plain(kind)}-tier{place.tier}-"
        known = sorted(name for name in self._known[place.label, place.value] if name.startswith(prefix))
        name = known[0] if known else self._fresh(prefix, f"{kind} {place.label} {place.value}")
        self._used.add(name)
        return name

    def _fresh(self, prefix: str, text: str) -> str:
        attempt = 0
        while (name := prefix + suffix(f"{text} {attempt}" if attempt else text)) in self._used:
            attempt += 1
        return name


def suffix(text: str) -> str:
    """Five letters that stand for a text."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    letters = []
    for _ in range(SUFFIX):
        number, digit = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[digit])
    return "".join(letters)


def _plain(kind: str) -> str:
    """A type's name as part of an object's name: ASCII letters small, digits, dots and dashes kept, others dashes."""
    return "".join(
        letter.lower() if letter.isascii() and (letter.isalnum() or letter in ".-") else "-" for letter in kind
    )
