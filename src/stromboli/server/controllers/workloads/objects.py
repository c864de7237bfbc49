"""Objects and what they own, as the controllers of workloads read and write them."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stromboli.cluster.body import Body, changed, encode, key_of, merge_patched, meta, part, stamp
from stromboli.errors import ApiFailure
from stromboli.server.controllers.controller_loop import delete_if_possible
from stromboli.server.controllers.workloads.back_off import Failures
from stromboli.server.schema.resources import Catalogue, Resource
from stromboli.server.storage.aside import Place
from stromboli.server.storage.store import CollectionName, Store
from stromboli.server.verbs.writing import Deletion, Options, Writer

_LOG: Final = logging.getLogger(__name__)
PODS: Final = ("", "pods")
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters that make no words."""
MOST_AT_ONCE: Final = 500
"""Most pods that one look makes or deletes."""


@dataclass
class Objects:
    """The cluster's objects; ``clock`` gives seconds since 1970."""

    store: Store
    catalogue: Catalogue
    writer: Writer
    clock: Callable[[], float]
    moments: dict[Place, float] = field(default_factory=dict)
    """When objects are to be looked at again, in seconds since 1970."""
    soonest: float = math.inf
    """The earliest of these moments, or an earlier one; infinite for none."""

    failures: dict[str, Failures] = field(default_factory=dict)
    """Of batch Jobs whose pods have failed, by the Jobs' uids."""

    def now(self) -> str:
        """The time as objects tell it."""
        return stamp(self.clock())

    def is_due(self, collection: CollectionName, body: Body, moment: float) -> bool:
        """Whether a moment has come, in seconds since 1970; if not, the object is looked at again then."""
        if self.clock() >= moment:
            return True
        place = (collection, key_of(body))
        self.moments[place] = min(moment, self.moments.get(place, moment))
        self.soonest = min(moment, self.soonest)
        return False

    def due(self) -> list[Place]:
        """Take out the objects that are to be looked at again by now."""
        now = self.clock()
        if now < self.soonest:
            return []
        found = [place for place, moment in self.moments.items() if moment <= now]
        for place in found:
            del self.moments[place]
        self.soonest = min(self.moments.values(), default=math.inf)
        return found

    def get(self, collection: CollectionName, namespace: str, name: str) -> Body | None:
        """An object, or None."""
        entry = self.store.get(collection, (namespace, name))
        return None if entry is None else entry.body

    def owned(self, owner: Body, collection: CollectionName = PODS) -> list[Body]:
        """What an object controls, the oldest first."""
        uid = meta(owner).get("uid", "")
        entries = (self.store.get(name, key) for name, key in self.store.dependents.get(uid, ()) if name == collection)
        found = [entry.body for entry in entries if entry is not None and controller_of(entry.body) == uid]
        return sorted(found, key=lambda body: (meta(body).get("creationTimestamp", ""), meta(body)["name"]))

    def create(self, collection: CollectionName, owner: Body, metadata: Body, **parts: Any) -> Body:
        """Make an object that ``owner`` controls.  Raises ApiFailure."""
        metadata = {**metadata, "ownerReferences": [reference_to(owner)]}
        return self.make(collection, meta(owner)["namespace"], {"metadata": metadata, **parts})

    def make(self, collection: CollectionName, namespace: str, body: Body) -> Body:
        """Make an object that belongs to nothing.  Raises ApiFailure."""
        return self.writer.create(self._resource(collection), namespace, body, Options()).body

    def change(self, collection: CollectionName, body: Body, patch: Mapping[str, Any]) -> Body:
        """Change an object by a merge patch.  Raises ApiFailure."""
        resource = self._resource(collection)
        return self.writer.patch(resource, key_of(body), lambda old: merge_patched(old, patch), "", Options()).body

    def set_status(self, collection: CollectionName, body: Body, status: Body) -> None:
        """Write the status if it differs."""
        if status != (body.get("status") or {}):
            self.store.put(collection, changed(body, status=status))

    def delete(self, collection: CollectionName, body: Body) -> None:
        """Delete an object, if it still is this one."""
        delete_if_possible(self.writer, self._resource(collection), key_of(body), Deletion(propagation="Background"))

    def tell(self, body: Body, reason: str, message: str) -> None:
        """Store a warning about an object as an event; one that cannot be stored is logged."""
        found = meta(body)
        about = {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": found["name"]}
        event = {
            "metadata": {"generateName": f"{found['name']}."},
            "involvedObject": {**about, "namespace": found["namespace"], "uid": found["uid"]},
            "type": "Warning",
            "reason": reason,
            "message": message[:1024],
            "source": {"component": "workload-controllers"},
            "firstTimestamp": self.now(),
            "lastTimestamp": self.now(),
            "count": 1,
        }
        try:
            self.make(("", "events"), found["namespace"], event)
        except ApiFailure as failure:
            _LOG.warning("event on %s %s: %s", body["kind"], found["name"], failure)

    def _resource(self, collection: CollectionName) -> Resource:
        return self.catalogue.stored()[collection]


def controller_of(body: Body) -> str:
    """The uid of what controls an object; empty for none."""
    owners = meta(body).get("ownerReferences") or ()
    return next((str(owner.get("uid", "")) for owner in owners if owner.get("controller")), "")


def reference_to(owner: Body) -> Body:
    """The reference by which an object says that ``owner`` controls it."""
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    names = {"name": meta(owner)["name"], "uid": meta(owner)["uid"]}
    return {**found, **names, "controller": True, "blockOwnerDeletion": True}


def short_hash(value: Any) -> str:
    """Ten letters that stand for a value."""
    number = int.from_bytes(hashlib.sha256(encode(value)).digest()[:8], "big")
    letters = []
    for _ in range(10):
        number, rest = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[rest])
    return "".join(letters)


def template_of(owner: Body) -> Body:
    """The template of its pods."""
    return part(owner, "spec", "template") or {}


def pod_parts(template: Body, labels: Body | None = None, annotations: Body | None = None) -> tuple[Body, Body]:
    """Metadata and spec of a pod of a template, with more labels and annotations."""
    given = meta(template)
    named = {
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "annotations": {**(given.get("annotations") or {}), **(annotations or {})},
    }
    finalizers = {"finalizers": given["finalizers"]} if given.get("finalizers") else {}
    return {**{key: texts for key, texts in named.items() if texts}, **finalizers}, template.get("spec") or {}


# -- What pods say ---------------------------------------------------------------------------------------------------


def phase(pod: Body) -> str:
    """The pod's phase."""
    return str(part(pod, "status", "phase") or "Pending")


def is_ending(pod: Body) -> bool:
    """Whether the pod has been told to go."""
    return "deletionTimestamp" in meta(pod)


def is_active(pod: Body) -> bool:
    """Whether the pod runs or may still do so."""
    return phase(pod) not in ("Succeeded", "Failed") and not is_ending(pod)


def is_ready(pod: Body) -> bool:
    """Whether the pod says that it is ready."""
    conditions = part(pod, "status", "conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def label(body: Body, key: str) -> str:
    """A label of an object, empty where it has none of that name."""
    return str((meta(body).get("labels") or {}).get(key, ""))


def dispensable(pod: Body) -> tuple[bool, bool, bool]:
    """The order in which pods go: first those without a node, that do not run, that are not ready."""
    return bool(part(pod, "spec", "nodeName")), phase(pod) == "Running", is_ready(pod)


def without_zeros(**counts: int) -> Body:
    """Numbers of a status as the API writes them: zeros are left out."""
    return {name: count for name, count in counts.items() if count}


def with_condition(conditions: list[Body], now: str, **wanted: str) -> list[Body]:
    """Conditions with one of them renewed; its time stays while its status does."""
    known = next((one for one in conditions if one["type"] == wanted["type"]), {})
    if all(known.get(key) == text for key, text in wanted.items()):
        return conditions
    since = known.get("lastTransitionTime") if known.get("status") == wanted["status"] else None
    fresh = {**wanted, "lastTransitionTime": since or now, "lastUpdateTime": now}
    if not known:
        return [*conditions, fresh]
    return [fresh if one["type"] == wanted["type"] else one for one in conditions]
