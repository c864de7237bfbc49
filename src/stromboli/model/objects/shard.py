"""The nodes that are a scheduler's own among several schedulers, as NodeShard objects divide them."""

from __future__ import annotations

from typing import Final

import msgspec

from stromboli.model.spec import Wire

NONE: Final = "none"
HARD: Final = "hard"
SOFT: Final = "soft"
MODES: Final = (NONE, HARD, SOFT)


class NodeShardStatus(Wire, frozen=True):
    """``status`` of a NodeShard: the nodes that its scheduler uses, will give up, and waits for."""

    nodes_in_use: tuple[str, ...] = ()
    nodes_to_remove: tuple[str, ...] = ()
    nodes_to_add: tuple[str, ...] = ()


class Shard(msgspec.Struct, frozen=True):
    """The ``nodes`` of a scheduler by name; if ``hard`` it uses no others, else it uses others only after these."""

    hard: bool
    nodes: frozenset[str]
