"""The Numatopology objects of a cluster."""

from __future__ import annotations

from stromboli.cluster import kinds
from stromboli.model.numa import NumaSpec


class NumaStore:
    """What is known of the NUMA nodes of nodes, by their names."""

    __slots__ = ("_specs",)

    def __init__(self) -> None:
        self._specs: dict[str, NumaSpec] = {}

    def apply(self, found: kinds.Numatopology, stays: bool) -> None:
        """Take an object in, new or changed, or let it go."""
        if stays:
            self._specs[found.metadata.name] = found.spec
        else:
            self._specs.pop(found.metadata.name, None)

    def shown(self) -> dict[str, NumaSpec]:
        """All of them."""
        return dict(self._specs)
