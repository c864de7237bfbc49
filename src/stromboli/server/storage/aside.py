"""Objects of the journal that cannot be used.  They count as existing: what belongs to them is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from stromboli.cluster.body import Body, Key, meta

Place = tuple[Key, Key]
"""A collection, and the key of an object in it."""


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


def _uid_of(encoded: bytes) -> str:
    """The uid of an object, of which nothing else has to be readable; empty if it has none that can be read."""
    try:
        return msgspec.json.decode(encoded, type=_Object).metadata.uid
    except (msgspec.MsgspecError, RecursionError):
        return ""


@dataclass
class Aside:
    """What was set aside, by this start or an earlier one."""

    _places: dict[Place, None] = field(default_factory=dict)
    _owners: dict[str, Place] = field(default_factory=dict)
    """Places by uid."""
    _unread: dict[tuple[str, Key], Place] = field(default_factory=dict)
    """Places of objects without a readable uid, by API group and key."""

    def add(self, collection: Key, key: Key, encoded: bytes) -> None:
        """Remember an object that was set aside."""
        place, uid = (collection, key), _uid_of(encoded)
        self._places[place] = None
        if uid:
            self._owners[uid] = place
        else:
            self._unread[collection[0], key] = place

    def replace(self, collection: Key, key: Key) -> None:
        """Another object stands at this place now; dependents of the earlier one are still kept."""
        self._places.pop((collection, key), None)

    def holds(self, collection: Key, key: Key) -> bool:
        """Whether the object of this place was set aside, and no other has replaced it."""
        return (collection, key) in self._places

    def owner_of(self, body: Body) -> Place | None:
        """An owner of this object that was set aside; one without a readable uid is known by its group and name."""
        return next(self._owners_of(body), None)

    def _owners_of(self, body: Body) -> Iterator[Place]:
        namespace = meta(body).get("namespace", "")
        for owner in meta(body).get("ownerReferences") or ():
            group, slash, _ = owner.get("apiVersion", "").partition("/")
            keys = ((namespace, owner.get("name", "")), ("", owner.get("name", "")))
            places = (self._unread.get((group if slash else "", key)) for key in keys)
            yield from (place for place in (self._owners.get(owner.get("uid", "")), *places) if place is not None)
