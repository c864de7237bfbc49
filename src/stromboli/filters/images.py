"""The score of nodes that already hold a pod's images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from stromboli.filters.columns import picked
from stromboli.filters.scores import MAX_SCORE
from stromboli.model.spec import NodeSpec
from stromboli.model.table import Ints, NodeRows

_MIB = 1024 * 1024
FLOOR: Final = 23 * _MIB
"""Bytes that count for nothing."""
CEILING: Final = 1000 * _MIB
"""Bytes a container that are worth the full score."""


class ImageIndex:
    """Which rows hold which image; an image's size is the one that the first row holding it states.

    An image counts by how many nodes hold it; with ``by_arrival`` only those up to the row in question do.
    """

    __slots__ = ("_by_arrival", "_holders", "_rows", "_sizes")

    def __init__(self, specs: Sequence[NodeSpec], by_arrival: bool = False) -> None:
        self._rows, self._by_arrival = len(specs), by_arrival
        self._holders: dict[str, dict[int, int]] = {}
        self._sizes: dict[str, int] = {}
        for row, spec in enumerate(specs):
            for image in spec.images:
                for name in image.names:
                    self._sizes.setdefault(name, image.size_bytes)
                    holders = self._holders.setdefault(name, {})
                    holders.setdefault(row, len(holders) + 1)

    def score(self, images: Sequence[str], row: int) -> int:
        """Score of one row for a pod with ``images``, one name a container (init containers too)."""
        held = [name for name in map(full_name, images) if row in self._holders.get(name, ())]
        return _scaled(sum(self._worth(name, row) for name in held), len(images))

    def score_rows(self, images: Sequence[str], nodes: NodeRows) -> Ints:
        """:meth:`score` of every row.  Shape (rows,)."""
        total = np.zeros(self._rows, dtype=np.int64)
        for name in map(full_name, images):
            for row in self._holders.get(name, ()):
                total[row] += self._worth(name, row)
        values, codes = np.unique(picked(total, nodes), return_inverse=True)
        return np.array([_scaled(value, len(images)) for value in values.tolist()], dtype=np.int64)[codes]

    def knows(self, images: Sequence[str]) -> bool:
        """Whether any node holds any of the images."""
        return any(full_name(name) in self._sizes for name in images)

    def _worth(self, name: str, row: int) -> int:
        """Size in bytes, scaled by the share of nodes that hold the image, so that rare images draw no crowds."""
        holders = self._holders[name]
        count = holders[row] if self._by_arrival else len(holders)
        return int(float(self._sizes[name]) * (count / self._rows))


def images_by_holders(specs: Sequence[NodeSpec]) -> ImageIndex:
    """The index of the images of ``specs``, each counted by how many nodes hold it."""
    return ImageIndex(specs)


def images_by_arrival(specs: Sequence[NodeSpec]) -> ImageIndex:
    """The index of the images of ``specs``, each counted by how many nodes up to the row in question hold it."""
    return ImageIndex(specs, by_arrival=True)


def full_name(image: str) -> str:
    """The image's name with a tag: ``latest`` where it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _scaled(size: int, containers: int) -> int:
    """0 at :data:`FLOOR` or less, 100 at :data:`CEILING` a container or more."""
    ceiling = CEILING * containers
    clamped = FLOOR if size < FLOOR else min(size, ceiling)
    return MAX_SCORE * (clamped - FLOOR) // (ceiling - FLOOR)
