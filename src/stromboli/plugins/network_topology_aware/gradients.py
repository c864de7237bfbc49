"""Which domains a job, or a part of one, is tried in, and in which order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import compress, groupby

import numpy as np

from stromboli.errors import PlacementError
from stromboli.framework.books.domains import NOWHERE, Bools, Domains
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.table import Rows
from stromboli.model.topology import ancestors, lowest_common

Infos = Mapping[str, HyperNodeInfo]
Gradient = list[HyperNodeInfo]


def search_root(infos: Infos, within: HyperNodeInfo, highest: int, lies_in: str) -> HyperNodeInfo:
    """Where to search below ``within``: all of it, or what of it lies below the widest domain that is still allowed.

    ``lies_in`` is where the job lies already, empty if nowhere.  Raises PlacementError if that leaves nothing.
    """
    if not lies_in:
        return within
    widest = widest_around(infos, lies_in, highest)
    both = lowest_common(infos, within.name, widest)
    if both == widest:
        return within
    if both == within.name:
        return infos[widest]
    raise PlacementError(
        f"there is no intersection between hyperNodeAvailable {within.name} and hyperNodeHighestAllowed {widest}"
    )


def widest_around(infos: Infos, lies_in: str, highest: int) -> str:
    """The widest domain around ``lies_in`` whose tier, like all below it, is at most ``highest``."""
    found = ""
    for name in ancestors(infos, lies_in):
        if infos[name].tier > highest:
            break
        found = name
    if not found:
        raise PlacementError(
            f"get highest allowed hyperNode failed: allocated hyperNode {lies_in} tier is greater than highest allowed "
            f"tier {highest}"
        )
    return found


def below(infos: Infos, root: HyperNodeInfo, highest: int) -> list[HyperNodeInfo]:
    """``root`` and everything below it whose tier is at most ``highest``."""
    found, seen = [root], {root.name}
    for info in found:
        children = [infos[name] for name in info.children if name in infos and name not in seen]
        seen.update(child.name for child in children)
        found += children
    return [info for info in found if info.tier <= highest]


class Reach:
    """The gradients below each root: one a tier, the closest first, within a tier by name.  Found once a session.

    They are kept by how many tiers may be used, not by the number that a job names: of those there are any many.
    """

    def __init__(self, infos: Infos, domains: Domains) -> None:
        self._infos, self._domains = infos, domains
        self._borne = sorted({info.tier for info in infos.values()})
        self._known: dict[tuple[str, int], list[tuple[Gradient, Rows]]] = {}

    def gradients(self, root: HyperNodeInfo, highest: int, room: Bools | None = None) -> list[Gradient]:
        """The domains of ``root`` up to tier ``highest``; with ``room`` by domain only those that have it.

        Hypernodes without an object of their own have no room that could be known, and stay.
        """
        tiers = self._tiers(root, highest)
        if room is None:
            return [list(gradient) for gradient, _ in tiers]
        known = np.append(room, True)  # found at NOWHERE
        found = (list(compress(gradient, known[numbers].tolist())) for gradient, numbers in tiers)
        return [gradient for gradient in found if gradient]

    def _tiers(self, root: HyperNodeInfo, highest: int) -> list[tuple[Gradient, Rows]]:
        key = (root.name, bisect_right(self._borne, highest))
        found = self._known.get(key)
        if found is None:
            infos = sorted(below(self._infos, root, highest), key=lambda info: (info.tier, info.name))
            tiers = [list(gradient) for _, gradient in groupby(infos, key=lambda info: info.tier)]
            found = self._known[key] = [(gradient, self._numbers(gradient)) for gradient in tiers]
        return found

    def _numbers(self, gradient: Gradient) -> Rows:
        index = self._domains.index
        return np.array([index.get(info.name, NOWHERE) for info in gradient], dtype=np.intp)


def for_eviction(gradients: Sequence[Gradient], most: int) -> list[Gradient]:
    """Wide domains first, as they offer more, and at most ``most`` of them: the last ones of a tier."""
    found: list[Gradient] = []
    for gradient in reversed(gradients):
        if most > 0:
            found.append(gradient[-most:])
            most -= len(found[-1])
    return found
