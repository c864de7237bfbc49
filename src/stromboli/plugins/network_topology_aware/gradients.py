"""Which domains a job, or a part of one, is tried in, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.errors import PlacementError
from stromboli.model.snapshot import HyperNodeInfo
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


def by_tier(found: Sequence[HyperNodeInfo]) -> list[Gradient]:
    """Gradients of one tier each, the closest first; within a tier by name."""
    tiers: dict[int, Gradient] = {}
    for info in sorted(found, key=lambda info: (info.tier, info.name)):
        tiers.setdefault(info.tier, []).append(info)
    return list(tiers.values())


def for_eviction(gradients: Sequence[Gradient], most: int) -> list[Gradient]:
    """Wide domains first, as they offer more, and at most ``most`` of them: the last ones of a tier."""
    found: list[Gradient] = []
    for gradient in reversed(gradients):
        if most > 0:
            found.append(gradient[-most:])
            most -= len(found[-1])
    return found
