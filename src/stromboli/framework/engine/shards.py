"""Shards: a hard one refuses the nodes of others, of a soft one the own nodes are taken first."""

from __future__ import annotations

import numpy as np

from stromboli.framework.engine.rows import Bools, Fit
from stromboli.framework.extension.hook import Hook, by_template
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.reason import Reason
from stromboli.model.names import NODE_NOT_IN_SHARD
from stromboli.model.objects.shard import Shard
from stromboli.model.table import NodeRows, NodeTable
from stromboli.model.task import Task

FOREIGN = Reason(NODE_NOT_IN_SHARD, resolvable=False)


def own_rows(shard: Shard, table: NodeTable) -> Bools:
    """Which rows are nodes of ``shard``, shape (nodes,)."""
    return np.fromiter((name in shard.nodes for name in table.statics.names), dtype=bool, count=len(table))


def shard_rules(shard: Shard | None, table: NodeTable) -> tuple[list[Fit], Bools | None]:
    """What ``shard`` asks of the engine: the predicates of a hard one, the rows that a soft one prefers."""
    if shard is None:
        return [], None
    own = own_rows(shard, table)
    return ([fence(own)], None) if shard.hard else ([], own)


def fence(own: Bools) -> Fit:
    """The predicate that refuses every other row than ``own``, whatever is evicted there."""

    def inside(_: Task, nodes: NodeRows) -> Bools:
        found: Bools = own if nodes.index is None else own[nodes.index]
        return found

    hook = Hook(POINTS["predicate"], "vector", by_template, reasons=(FOREIGN,), static=True)
    return Fit("", hook, inside, None, [FOREIGN])


def own_first(rows: Bools, own: Bools | None) -> list[Bools]:
    """``rows`` split into own ones and others; all of them together where there is no soft shard."""
    return [rows] if own is None else [rows & own, rows & ~own]
