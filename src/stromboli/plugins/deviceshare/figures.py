"""What metrics, and the statuses of queues, show of vGPU cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stromboli.plugins.deviceshare.vgpu import VGpuPool

CardFigures = dict[tuple[str, str], tuple[int, int, int, int]]
"""By card and node: how many shares are taken, memory in MB and cores in percent that are, and all of its memory."""
PodFigures = dict[tuple[str, str, str], tuple[int, int]]
"""By card, node and name of a pod: memory in MB and cores in percent."""


def card_figures(pools: Iterable[VGpuPool]) -> tuple[CardFigures, PodFigures]:
    """The cards of all nodes, and what pods have of them; pods of one name on one card count together."""
    cards: CardFigures = {}
    memory, cores = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for pool in pools:
        for card in pool.by_uuid.values():
            cards[card.uuid, pool.node] = card.sharers, card.used_memory, card.used_cores, card.memory
        for uid, rows in pool.held.items():
            for piece in (one for row in rows for one in row):
                key = piece.uuid, pool.node, pool.by_uuid[piece.uuid].holders[uid].pod
                memory[key] += piece.booked
                cores[key] += piece.cores
    return cards, {key: (amount, cores[key]) for key, amount in memory.items()}


def amounts_of(pool: VGpuPool, uid: str) -> dict[str, int]:
    """Memory (MB) and cores (%) that a pod has of a node's cards, by the names of the resources; empty for none."""
    pieces = [piece for row in pool.held.get(uid, ()) for piece in row]
    _, memory, cores = pool.names
    return {memory: sum(one.memory for one in pieces), cores: sum(one.cores for one in pieces)} if pieces else {}
