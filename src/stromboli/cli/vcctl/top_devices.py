"""Devices as ``stromboli top`` shows them: how many there are on each node, and what of them is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from stromboli.cluster.kinds import ResourceClaim
from stromboli.cluster.state import ClusterState
from stromboli.filters.devices.offers import Key, milli, newest_pools
from stromboli.filters.devices.usage import Usage, share_of
from stromboli.model.claims import Device, DeviceObjects
from stromboli.plugins.deviceshare import cards_in_use, every_kind
from stromboli.plugins.deviceshare.kind import CardUse

SEVERAL: Final = "(several nodes)"


class Amounts(NamedTuple):
    """How much devices that claims share have of a capacity, and what of it is taken, in thousandths."""

    name: str
    all: int
    used: int


class DeviceLine(NamedTuple):
    """Devices of one type on one node: how many, how many of them in use; memory in MB, cores in percent of one.

    A device that claims share is in use once one of its capacities is exhausted; ``shared`` has the sums of those, and
    ``claimed`` is the part that claims have, from 0 to 1.
    """

    node: str
    type: str
    all: int
    used: int
    memory: int = 0
    used_memory: int = 0
    cores: int = 0
    used_cores: int = 0
    shared: tuple[Amounts, ...] = ()
    claimed: float | None = None

    @property
    def part(self) -> float:
        """Which part is in use: of the memory where that is known, else of the devices."""
        if self.claimed is not None:
            return self.claimed
        return self.used_memory / self.memory if self.memory else self.used / self.all if self.all else 0.0


def device_lines(state: ClusterState) -> list[DeviceLine]:
    """All devices of a cluster, by node and type."""
    return [*_shared(state), *_claimed(state.storage.devices.shown())]


def _shared(state: ClusterState) -> Iterator[DeviceLine]:
    kinds = every_kind(state.device_settings)
    for name, entry in sorted(state.nodes.entries().items()):
        by_type: dict[str, list[CardUse]] = {}
        for card in cards_in_use(kinds, entry.spec, entry.tasks.values()) if entry.spec is not None else ():
            by_type.setdefault(card.type, []).append(card)
        for kind, cards in by_type.items():
            yield _line(name, kind, cards)


def _line(node: str, kind: str, cards: Sequence[CardUse]) -> DeviceLine:
    _, _, memories, used, cores, used_cores, _ = zip(*cards, strict=True)
    busy = sum(bool(card.used or card.used_cores) for card in cards)
    return DeviceLine(node, kind, len(cards), busy, sum(memories), sum(used), sum(cores), sum(used_cores))


def _claimed(devices: DeviceObjects) -> Iterator[DeviceLine]:
    """Devices that drivers publish, and how many of them claims have."""
    usage = _usage(devices.claims.values())
    found: dict[tuple[str, str], list[_Use]] = {}
    for members in newest_pools(devices.slices.values()):
        for spec in (each.spec for each in members):
            for device in spec.devices:
                node = (device.node_name if spec.per_device_node_selection else spec.node_name) or SEVERAL
                use = _use(device, (spec.driver, spec.pool.name, device.name), usage)
                found.setdefault((node, spec.driver), []).append(use)
    for (node, driver), uses in sorted(found.items()):
        full = sum(use.part >= 1 for use in uses)
        part = sum(use.part for use in uses) / len(uses)
        yield DeviceLine(node, driver, len(uses), full, shared=_sums(uses), claimed=part)


def _usage(claims: Iterable[ResourceClaim]) -> Usage:
    """The devices that claims have for themselves, and their shares of others."""
    found = Usage()
    allocations = (claim.status.allocation for claim in claims)
    for one in (each for given in allocations if given is not None for each in given.devices.results):
        if not one.admin_access:
            found.count((one.driver, one.pool, one.device), share_of(one), (), 1)
    return found


class _Use(NamedTuple):
    """Which part of a device is taken, 1 if it cannot be shared; amounts of a device that claims share."""

    part: float
    amounts: tuple[Amounts, ...] = ()


def _use(device: Device, key: Key, usage: Usage) -> _Use:
    """What is taken of a device: as much as of its scarcest capacity, where claims share it."""
    if not device.allow_multiple_allocations:
        return _Use(float(usage.uses(key)))
    is_whole = key in usage.whole
    amounts = []
    for name, capacity in sorted(device.capacity.items()):
        there = milli(capacity, 0)
        amounts.append(Amounts(name, there, there if is_whole else min(usage.amounts[key, name], there)))
    parts = (each.used / each.all for each in amounts if each.all)
    return _Use(1.0 if is_whole else max(parts, default=0.0), tuple(amounts))


def _sums(uses: Iterable[_Use]) -> tuple[Amounts, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for name, there, used in (amounts for use in uses for amounts in use.amounts):
        every, taken = sums.get(name, (0, 0))
        sums[name] = every + there, taken + used
    return tuple(Amounts(name, *both) for name, both in sorted(sums.items()))
