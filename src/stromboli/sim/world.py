"""A cluster without a server, in virtual time: objects as they stand on the wire, and followers that hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from stromboli.cluster.body import Body, merge_patched, meta, part, stamp, with_meta
from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.cluster.objects import from_value
from stromboli.errors import ApiError
from stromboli.model.task import GRACE
from stromboli.sim.timeline import Timeline


class SimChange(NamedTuple):
    """An object of ``kind`` was added, modified or deleted; ``body`` is how it stands now, or stood last."""

    how: type[Event]
    kind: str
    body: Body

    @property
    def event(self) -> Event:
        """The same for a cluster's state.  Raises ManifestError when the object cannot be used."""
        return self.how(self.kind, from_value(self.kind, self.body))


Hear = Callable[[SimChange], object]
"""What a follower does when it hears of a change."""


class SimWorld:
    """The objects of a cluster by kind and key (``namespace/name``, or the name alone), each with uid and version.

    Bodies are never changed in place.  Writes raise ApiError as an API server refuses them: 404 for what is not there,
    409 for another object of that name.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._objects: dict[str, dict[str, Body]] = {}
        self._followers: list[Hear] = []
        self._version = 0

    # ------------------------------------------------------------------ reading

    def get(self, kind: str, key: str) -> Body | None:
        """The object as it stands; None when there is none."""
        return self._objects.get(kind, {}).get(key)

    def all(self, kind: str) -> Iterator[Body]:
        """All objects of a kind, older ones first."""
        return iter(list(self._objects.get(kind, {}).values()))

    def listed(self) -> Iterator[SimChange]:
        """Everything there is, as news for a new follower."""
        for kind in list(self._objects):
            yield from (SimChange(Added, kind, body) for body in self.all(kind))

    def follow(self, hear: Hear) -> None:
        """Have ``hear`` called with every change from now on."""
        self._followers.append(hear)

    def leave(self, hear: Hear) -> None:
        """Have it called no more."""
        self._followers.remove(hear)

    # ------------------------------------------------------------------ writing

    def create(self, body: Mapping[str, Any]) -> Body:
        """Add an object: with a uid of its own unless it brings one, made at this moment unless it says when."""
        kind, key = body["kind"], key_of(body)
        if self.get(kind, key) is not None:
            raise ApiError(409, "AlreadyExists", f'{kind} "{key}" already exists')
        given = meta(body)
        made = with_meta(
            body,
            uid=given.get("uid") or f"uid-{self._version + 1}",
            creationTimestamp=given.get("creationTimestamp") or stamp(self.timeline.now),
        )
        return self._stands(Added, kind, key, made)

    def patch(self, kind: str, key: str, change: Mapping[str, Any], uid: str = "") -> Body:
        """Apply a merge patch (RFC 7386) to an object, of that ``uid`` if one is given."""
        found = self._there(kind, key, uid)
        return self._stands(Modified, kind, key, merge_patched(found, change))

    def replace(self, body: Mapping[str, Any]) -> Body:
        """Put an object in the place of the one of its name, which keeps its uid and the time at which it was made."""
        kind, key = body["kind"], key_of(body)
        kept = meta(self._there(kind, key, ""))
        made = with_meta(body, uid=kept["uid"], creationTimestamp=kept["creationTimestamp"])
        return self._stands(Modified, kind, key, made)

    def remove(self, kind: str, key: str, uid: str = "") -> None:
        """Take an object away at once."""
        found = self._there(kind, key, uid)
        del self._objects[kind][key]
        self._version += 1
        self._told(SimChange(Deleted, kind, with_meta(found, resourceVersion=str(self._version))))

    # ------------------------------------------------------------------ pods

    def bind(self, key: str, uid: str, node: str) -> Body:
        """Give a pod its node; 409 when it has one."""
        found = self._there("Pod", key, uid)
        if at := part(found, "spec", "nodeName"):
            raise ApiError(409, "Conflict", f"pod {key} is already assigned to node {at}")
        return self.patch("Pod", key, {"spec": {"nodeName": node}})

    def delete(self, key: str, uid: str = "") -> None:
        """Tell a pod to go: it has its grace period to do so where a node holds it, and is gone at once elsewhere."""
        found = self._there("Pod", key, uid)
        if self.get("Node", part(found, "spec", "nodeName") or "") is None:
            self.remove("Pod", key)
        elif "deletionTimestamp" not in meta(found):
            given = part(found, "spec", "terminationGracePeriodSeconds")
            grace = GRACE if given is None else given
            ends = stamp(self.timeline.now + grace)
            self.patch("Pod", key, {"metadata": {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace}})

    # ------------------------------------------------------------------ inside

    def _there(self, kind: str, key: str, uid: str) -> Body:
        found = self.get(kind, key)
        if found is None:
            raise ApiError(404, "NotFound", f'{kind} "{key}" not found')
        if uid and meta(found)["uid"] != uid:
            raise ApiError(409, "Conflict", f"{kind} {key} has uid {meta(found)['uid']}, not {uid}")
        return found

    def _stands(self, how: type[Event], kind: str, key: str, body: Body) -> Body:
        self._version += 1
        body = with_meta(body, resourceVersion=str(self._version))
        self._objects.setdefault(kind, {})[key] = body
        self._told(SimChange(how, kind, body))
        return body

    def _told(self, change: SimChange) -> None:
        for hear in tuple(self._followers):
            hear(change)


def key_of(body: Mapping[str, Any]) -> str:
    """``namespace/name``, or the name of an object that has no namespace."""
    found = meta(body)
    return f"{found['namespace']}/{found['name']}" if found.get("namespace") else str(found["name"])
