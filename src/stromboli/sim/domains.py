"""What network domains hold and have free: the tree of a cluster's HyperNodes, with the nodes below each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from stromboli.framework.extension.figures import shown
from stromboli.model.names import EPHEMERAL_STORAGE
from stromboli.model.snapshot import HyperNodeInfo, Snapshot

OUTSIDE: Final = "(in no HyperNode)"
UNSEEN: Final = frozenset({"pods", EPHEMERAL_STORAGE, "hugepages-1Gi", "hugepages-2Mi"})
"""Resources that every node names and few pods ask for."""


class Room(msgspec.Struct, frozen=True, rename="camel"):
    """One resource of a domain: what is free and what there is, as Kubernetes writes amounts, and the part in use."""

    free: str
    total: str
    used: float


class DomainView(msgspec.Struct, frozen=True, rename="camel"):
    """One domain: its depth below the root of its tree, its nodes, those without a pod, and its room by resource."""

    name: str
    tier: int
    parent: str
    depth: int
    nodes: int
    empty_nodes: int
    room: Mapping[str, Room]


class NodeView(msgspec.Struct, frozen=True, rename="camel"):
    """One node: the closest domain that it is in, and the part of its scarcest resource that is in use."""

    name: str
    domain: str
    used: float


class TopologyView(msgspec.Struct, frozen=True, rename="camel"):
    """The domains in the order of the tree, each before those below it; all nodes; and what is wrong with the tree."""

    domains: list[DomainView]
    nodes: list[NodeView]
    problems: list[str]


def topology_view(snapshot: Snapshot) -> TopologyView:
    """The view of a cluster at one moment."""
    table, names = snapshot.table, snapshot.axes.names
    columns = [column for column, offered in enumerate(table.alloc) if names[column] not in UNSEEN and offered.any()]
    domains = [_domain(snapshot, info, depth, columns) for info, depth in _walk(snapshot.hyper_nodes)]
    closest: dict[int, HyperNodeInfo] = {}
    for info in sorted(snapshot.hyper_nodes.values(), key=lambda info: (-info.tier, info.name)):
        closest.update(dict.fromkeys(info.rows, info))
    used = _used_parts(snapshot, columns)
    nodes = [
        NodeView(name, closest[row].name if row in closest else OUTSIDE, round(float(used[row]), 4))
        for row, name in enumerate(table.statics.names)
    ]
    return TopologyView(domains, nodes, list(snapshot.inconsistencies))


def _walk(infos: Mapping[str, HyperNodeInfo]) -> Iterator[tuple[HyperNodeInfo, int]]:
    """Every domain that has an object, those above first, with its depth."""
    waiting = [(info, 0) for info in _ordered(infos, [name for name, info in infos.items() if not info.parent])]
    while waiting:
        info, depth = waiting.pop(0)
        if info.known:
            yield info, depth
        waiting[:0] = [(child, depth + 1) for child in _ordered(infos, info.children)]


def _ordered(infos: Mapping[str, HyperNodeInfo], names: list[str]) -> list[HyperNodeInfo]:
    return sorted((infos[name] for name in names), key=lambda info: (-info.tier, info.name))


def _domain(snapshot: Snapshot, info: HyperNodeInfo, depth: int, columns: list[int]) -> DomainView:
    rows = np.asarray(info.rows, dtype=np.intp)
    empty = sum(not snapshot.node_tasks[row] for row in info.rows)
    room = {
        snapshot.axes.names[column]: found for column in columns if (found := _room(snapshot, column, rows)) is not None
    }
    return DomainView(info.name, info.tier, info.parent, depth, len(info.rows), empty, room)


def _room(snapshot: Snapshot, column: int, rows: npt.NDArray[np.intp]) -> Room | None:
    """The room of some nodes in one resource; None where none of them offers it."""
    name, offered = snapshot.axes.names[column], snapshot.table.alloc[column][rows]
    free = np.maximum(offered - snapshot.table.used[column][rows], 0)
    total, left = sum(offered.tolist()), sum(free.tolist())
    return Room(shown(name, left), shown(name, total), round(1 - left / total, 4)) if total else None


def _used_parts(snapshot: Snapshot, columns: list[int]) -> npt.NDArray[np.float64]:
    table = snapshot.table
    parts = np.zeros(len(table.statics.names))
    for column in columns:
        offered = table.alloc[column]
        has = offered > 0
        parts[has] = np.maximum(parts[has], table.used[column][has] / offered[has])
    return np.clip(parts, 0.0, 1.0)
