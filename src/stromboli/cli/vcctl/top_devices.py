"""Devices as ``stromboli top`` shows them: how many there are on each node, and what of them is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from stromboli.cluster.kinds import ResourceClaim
from stromboli.cluster.state import ClusterState
from stromboli.filters.devices.offers import newest_pools
from stromboli.model.claims import DeviceObjects
from stromboli.model.resources.device_settings import DEFAULTS, DEVICE_CONFIG, DEVICE_CONFIG_NAMESPACE
from stromboli.plugins.deviceshare import cards_in_use, every_kind
from stromboli.plugins.deviceshare.kind import CardUse

SEVERAL: Final = "(several nodes)"


class DeviceLine(NamedTuple):
    """Devices of one type on one node: how many, how many of them in use; memory in MB, cores in percent of one."""

    node: str
    type: str
    all: int
    used: int
    memory: int = 0
    used_memory: int = 0
    cores: int = 0
    used_cores: int = 0

    @property
    def part(self) -> float:
        """Which part is in use: of the memory where that is known, else of the devices."""
        return self.used_memory / self.memory if self.memory else self.used / self.all if self.all else 0.0


def device_lines(state: ClusterState) -> list[DeviceLine]:
    """All devices of a cluster, by node and type."""
    return [*_shared(state), *_claimed(state.storage.devices.shown())]


def _shared(state: ClusterState) -> Iterator[DeviceLine]:
    kinds = every_kind(state.device_settings.get(f"{DEVICE_CONFIG_NAMESPACE}/{DEVICE_CONFIG}", DEFAULTS))
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
    given = {device for claim in devices.claims.values() for device in _devices_of(claim)}
    numbers: dict[tuple[str, str], list[bool]] = {}
    for members in newest_pools(devices.slices.values()):
        for spec in (each.spec for each in members):
            for device in spec.devices:
                node = (device.node_name if spec.per_device_node_selection else spec.node_name) or SEVERAL
                is_given = (spec.driver, spec.pool.name, device.name) in given
                numbers.setdefault((node, spec.driver), []).append(is_given)
    for (node, driver), used in sorted(numbers.items()):
        yield DeviceLine(node, driver, len(used), sum(used))


def _devices_of(claim: ResourceClaim) -> Iterator[tuple[str, str, str]]:
    """Driver, pool and name of each device that a claim has for itself."""
    given = claim.status.allocation
    for one in given.devices.results if given is not None else ():
        if not one.admin_access:
            yield one.driver, one.pool, one.device
