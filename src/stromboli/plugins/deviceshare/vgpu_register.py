"""The vGPU cards of a node, as its device plugin registers them in ``volcano.sh/node-vgpu-register``."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from stromboli.plugins.deviceshare.kind import MOST_CARDS, number

REGISTER: Final = "volcano.sh/node-vgpu-register"
FIELDS: Final = 6
"""Fields of a registered card: UUID, count, memory in MB, type, health, mode."""
UNHEALTHY: Final = frozenset({"false", "False", "FALSE", "f", "F", "0"})
"""What the health of a card says that must not be used."""


class Registered(NamedTuple):
    """A card; ``shares`` is how many containers may share it."""

    uuid: str
    shares: int
    memory: int
    type: str
    mode: str
    healthy: bool = True


@lru_cache(maxsize=4096)
def registered(text: str) -> tuple[Registered, ...]:
    """The cards of a register; none where some entry is not whole, or there are too many."""
    entries = [entry.split(",") for entry in text.split(":", MOST_CARDS) if entry.strip()]
    if len(entries) > MOST_CARDS or not all(_is_whole(entry) for entry in entries):
        return ()
    return tuple(Registered(e[0], int(e[1]), int(e[2]), e[3], e[5], e[4] not in UNHEALTHY) for e in entries)


def _is_whole(entry: list[str]) -> bool:
    return len(entry) >= FIELDS and all(number(text) is not None for text in entry[1:3])
