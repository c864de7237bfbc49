"""Source ``ufm``: domains from the ports that NVIDIA UFM knows of an InfiniBand fabric.

Leaf switches that share a node make one domain of tier 1; all of them together make ``spine-hn``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from stromboli.api.topology import HyperNode
from stromboli.controllers.discovery.domains import Domain, Found
from stromboli.errors import ManifestError

SOURCE: Final = "ufm"
PORTS: Final = "/ufmRest/resources/ports"
LEAF: Final = "leaf-hn-"
SPINE: Final = "spine-hn"
COMPUTER: Final = "Computer"
"""Part of the description of a port that belongs to a server."""


class Port(msgspec.Struct, frozen=True):
    """A port as UFM tells of it: of the node ``system_name``, plugged into the switch ``peer_node_name``."""

    description: str = ""
    system_name: str = ""
    peer_node_name: str = ""
    node_description: str = ""
    tier: float | None = None


def ports_of(body: bytes) -> tuple[Port, ...]:
    """Read UFM's answer.  Raises ManifestError when it is no list of ports."""
    try:
        return msgspec.json.decode(body, type=tuple[Port, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(str(error), object="UFM's ports") from error


def discover(ports: Iterable[Port], known: Sequence[HyperNode]) -> Found:
    """The domains that ``ports`` describe; a group keeps the name of the HyperNode that it shares most nodes with."""
    groups = _groups(ports)
    names = _names(groups, known)
    leaves = [Domain(name, 1, tuple(sorted(nodes))) for name, nodes in zip(names, groups, strict=True)]
    spine = [Domain(SPINE, 2, tuple(sorted(names)), of_domains=True)] if leaves else []
    return Found((*leaves, *spine))


def _groups(ports: Iterable[Port]) -> list[set[str]]:
    """The nodes of each group of leaf switches, in the order of the groups' smallest switch."""
    nodes: defaultdict[str, set[str]] = defaultdict(set)
    for port in ports:
        if COMPUTER in port.description and port.peer_node_name and port.system_name:
            nodes[port.peer_node_name].add(port.system_name)
    groups: list[set[str]] = []
    for switch in sorted(nodes):
        touching = [group for group in groups if not group.isdisjoint(nodes[switch])]
        if touching:
            touching[0].update(nodes[switch], *touching[1:])
            groups = [group for group in groups if group is touching[0] or group not in touching[1:]]
        else:
            groups.append(nodes[switch])
    return groups


def _names(groups: Sequence[set[str]], known: Sequence[HyperNode]) -> list[str]:
    """A name for each group: of the known HyperNode that shares most nodes with it, else the smallest free number."""
    overlaps = sorted(
        (-len(members & group), name, place)
        for name, members in _known_leaves(known).items()
        for place, group in enumerate(groups)
        if members & group
    )
    names: dict[int, str] = {}
    for _, name, place in overlaps:
        if place not in names and name not in names.values():
            names[place] = name
    free = (
        name for name in (f"{LEAF}{number}" for number in range(2 * len(groups))) if name not in set(names.values())
    )
    return [names[place] if place in names else next(free) for place in range(len(groups))]


def _known_leaves(known: Iterable[HyperNode]) -> Mapping[str, set[str]]:
    return {
        node.metadata.name: {
            member.selector.exact_match.name for member in node.spec.members if member.selector.exact_match
        }
        for node in known
        if node.metadata.name.startswith(LEAF)
    }
