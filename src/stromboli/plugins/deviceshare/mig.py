"""MIG: a card is cut into instances, each for one container; cuts are made as pods need them.

A card has one geometry at a time, the first that suits the first container it gets.  When its last instance is free
again, another may be chosen.  An instance is named ``UUID[GROUP-POSITION]``; positions count through the geometry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from stromboli.model.resources.device_settings import Geometry
from stromboli.plugins.deviceshare.kind import number


class Slot(NamedTuple):
    """One instance of a card: its geometry, its position there, and its memory in MB."""

    group: str
    position: int
    memory: int

    def id_of(self, uuid: str) -> str:
        """The name of this instance of card ``uuid``."""
        return f"{uuid}[{self.group}-{self.position}]"


def slots_of(geometry: Geometry) -> Iterator[tuple[str, Slot]]:
    """All instances of a geometry, each with the name of its size."""
    position = 0
    for instance in geometry.geometries:
        for _ in range(instance.count):
            yield instance.name, Slot(geometry.group, position, instance.memory)
            position += 1


def slot_for(
    memory: int, geometries: Collection[Geometry], used: Collection[tuple[str, int]], *, started_only: bool = False
) -> Slot | None:
    """The smallest free instance with at least ``memory`` MB of a card whose instances ``used`` are taken.

    ``used`` are groups and positions.  With ``started_only`` a geometry in use offers only sizes of which one is taken.
    """
    present = {group for group, _ in used}
    possible = (geometry for geometry in geometries if not present or geometry.group in present)
    found = (_smallest(memory, geometry, used, started_only=started_only and bool(used)) for geometry in possible)
    return next((slot for slot in found if slot is not None), None)


def _smallest(memory: int, geometry: Geometry, used: Collection[tuple[str, int]], *, started_only: bool) -> Slot | None:
    slots = [*slots_of(geometry)]
    if started_only:
        sizes = {name for name, slot in slots if slot[:2] in used}
        slots = [(name, slot) for name, slot in slots if name in sizes]
    free = (slot for _, slot in slots if slot.memory >= memory and slot[:2] not in used)
    return min(free, key=lambda slot: (slot.memory, slot.position), default=None)


def split(name: str) -> tuple[str, str, int] | None:
    """Card, group and position that the name of an instance states; None for the name of a whole card."""
    uuid, _, rest = name.partition("[")
    group, _, position = rest.rstrip("]").rpartition("-")
    found = number(position)
    return (uuid, group, found) if group and found is not None else None


def slot_at(geometries: Collection[Geometry], group: str, position: int) -> Slot | None:
    """The instance at a position; None where no geometry has it."""
    slots = (slot for geometry in geometries if geometry.group == group for _, slot in slots_of(geometry))
    return next((slot for slot in slots if slot.position == position), None)
