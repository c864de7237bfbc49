"""The chain of a pod's owners: its owner, the owner's owner, and so on, as far as that decides its PodGroup.

What is not followed anyway is read when a pod comes, one object at a time: a cluster without an operator, or without
pods of its jobs, pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stromboli.cluster.kinds import OwnerReference, Pod
from stromboli.cluster.owners.gangs import Owner
from stromboli.cluster.owners.kinds import FOLLOWED, OwnerKind, row_of
from stromboli.controllers.changes import Read
from stromboli.controllers.world import World

GROUP_BY: Final = "scheduling.volcano.sh/group-by"
"""Annotation of a pod or of any owner of it: what its pods' PodGroup is made for."""
TOP_OWNER: Final = "top-owner"
DEEPEST: Final = 8
"""Most owners above each other that are looked at."""

MOST_OWNERS: Final = 8
"""Owners of a pod whose annotations its PodGroup gets; each may have to be read first, one after the other."""


class Denied(NamedTuple):
    """An owner that cannot be looked at, and why."""

    reference: OwnerReference
    why: str


class Level(NamedTuple):
    """One owner above a pod."""

    reference: OwnerReference
    owner: Owner

    @property
    def row(self) -> OwnerKind | None:
        """The row of its kind."""
        return row_of(self.reference)


class Climb:
    """The owners above one pod, from the bottom, as far as they are needed.

    ``kinds`` are those that are grouped by unasked.  ``missing`` is what must be read first; ``denied`` what could not
    be looked at although it matters.  ``inherited`` are the annotations of the pod's own owners, in their order, where
    ``inherit`` asks for them and the PodGroup is not made for an owner above.
    """

    def __init__(self, pod: Pod, world: World, kinds: frozenset[str], now: float, *, inherit: bool = True) -> None:
        self._world, self._namespace, self._kinds, self._now = world, pod.metadata.namespace, kinds, now
        self.asked = pod.metadata.annotations.get(GROUP_BY) == TOP_OWNER
        self.levels: list[Level] = []
        self.missing: Read | None = None
        self.denied: Denied | None = None
        reference = _controller(pod.metadata.owner_references)
        while reference is not None and len(self.levels) < DEEPEST and self._looks_at(reference):
            owner = self._owner(reference)
            if owner is None:
                break
            self.levels.append(Level(reference, owner))
            self.asked |= owner.annotations.get(GROUP_BY) == TOP_OWNER
            reference = owner.controller
        self.inherited = list(self._inherited(pod.metadata.owner_references)) if inherit else []

    @property
    def top(self) -> int | None:
        """Which level the PodGroup is made for, counted from the bottom; None where nothing else is asked for."""
        if self.asked:
            return len(self.levels) - 1 if self.levels else None
        named = [number for number, level in enumerate(self.levels) if level.reference.kind in self._kinds]
        return named[-1] if named else None

    def _deep(self) -> bool:
        return self.asked or bool(self._kinds)

    def _looks_at(self, reference: OwnerReference) -> bool:
        row = row_of(reference)
        if row is None:
            return self.asked
        if row.apart and self.levels:
            return False
        return self._deep() or bool(row.roles) or _is_followed(reference)

    def _owner(self, reference: OwnerReference) -> Owner | None:
        """The owner as it is known; None where it has to be read first, or cannot be."""
        if _is_followed(reference) and not self._deep():
            owner = self._followed(reference)
            if owner is None or owner.annotations.get(GROUP_BY) != TOP_OWNER:
                return owner
            self.asked = True  # the size of its gang is not followed
        found = self._world.readings.of(reference, self._namespace, self._now)
        if isinstance(found, Owner):
            return found
        if found is None:
            self.missing = read_of(reference, self._namespace)
        elif self._deep():
            self.denied = Denied(reference, found)
        return None

    def _followed(self, reference: OwnerReference) -> Owner | None:
        """An owner of a followed kind; None where it has to be read first, as its pod has come before news of it.

        One that is gone, or cannot be read, says nothing.
        """
        known = self._world.owners.get((reference.kind, self._namespace, reference.name))
        if known is not None and known.uid == reference.uid:
            return known
        found = self._world.readings.of(reference, self._namespace, self._now)
        if found is None:
            self.missing = read_of(reference, self._namespace)
        return Owner(reference.uid) if isinstance(found, str) else found

    def _inherited(self, references: tuple[OwnerReference, ...]) -> Iterator[Mapping[str, str]]:
        if self.missing is not None or self.top is not None:
            return
        for reference in references[:MOST_OWNERS]:
            if _is_followed(reference) and (owner := self._followed(reference)) is not None:
                yield owner.annotations


def _is_followed(reference: OwnerReference) -> bool:
    return reference.kind in FOLLOWED and reference.api_version in ("apps/v1", "batch/v1")


def read_of(reference: OwnerReference, namespace: str) -> Read:
    """The request for an owner."""
    row = row_of(reference)
    plural = row.plural if row else f"{reference.kind.lower()}s"
    return Read(reference.api_version, plural, reference.kind, namespace, reference.name)


def _controller(references: tuple[OwnerReference, ...]) -> OwnerReference | None:
    return next((reference for reference in references if reference.controller), None)


def texts_of(levels: list[Level]) -> Iterator[Mapping[str, str]]:
    """The annotations of owners, from the bottom."""
    return (level.owner.annotations for level in levels)
