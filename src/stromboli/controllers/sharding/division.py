"""Dividing nodes among schedulers: each chooses in turn among those that are left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stromboli.cluster.nodes import natural
from stromboli.controllers.sharding.configuration import Scheduler
from stromboli.controllers.sharding.policies import NodeLimit, NodeUse

Shards = Mapping[str, Sequence[str]]
"""The nodes of each scheduler, by name, in natural order."""


def divide(schedulers: Sequence[Scheduler], nodes: Iterable[NodeUse]) -> dict[str, tuple[str, ...]]:
    """The nodes that each of ``schedulers`` should use: no node is two schedulers'.

    Nodes of equal scores are taken in natural order of their names, so that equal input is divided equally.
    """
    left = sorted(nodes, key=lambda node: natural(node.name))
    found: dict[str, tuple[str, ...]] = {}
    for scheduler in schedulers:
        chosen = {node.name for node in _chosen(scheduler, left)}
        found[scheduler.name] = tuple(node.name for node in left if node.name in chosen)
        left = [node for node in left if node.name not in chosen]
    return found


def _chosen(scheduler: Scheduler, nodes: Sequence[NodeUse]) -> Sequence[NodeUse]:
    """The nodes that all policies accept, the best first, as many as they let pass."""
    policies = scheduler.policies
    accepted = [node for node in nodes if all(policy.accepts(node) for policy, _ in policies)]

    def worth(node: NodeUse) -> float:
        return sum(weight * policy.score(node) for policy, weight in policies)

    chosen: Sequence[NodeUse] = sorted(accepted, key=worth, reverse=True)
    for policy, _ in policies:
        chosen = policy.select(chosen)
    return chosen


def too_few(schedulers: Iterable[Scheduler], shards: Shards) -> list[str]:
    """Sentences on schedulers that get fewer nodes than they should have at least."""
    return [
        f"scheduler {scheduler.name:.63} gets {len(shards[scheduler.name])} nodes, fewer than minNodes {policy.least}"
        for scheduler in schedulers
        for policy, _ in scheduler.policies
        if isinstance(policy, NodeLimit) and len(shards[scheduler.name]) < policy.least
    ]


def is_worth_it(before: Shards, after: Shards) -> bool:
    """Whether the NodeShards should change from ``before`` to ``after``, all together.

    They should if a shard gets more or fewer nodes, or if a tenth of its nodes (at least one) are new; smaller
    exchanges would move nodes for nothing.  An invalid division, with a node in two shards, always changes.
    """
    named = [name for nodes in before.values() for name in nodes]
    if before.keys() != after.keys() or len(named) != len(set(named)):
        return True
    return any(
        len(nodes) != len(before[name]) or len(set(nodes) - set(before[name])) >= max(1, len(nodes) // 10)
        for name, nodes in after.items()
    )
