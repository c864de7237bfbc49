"""Housekeeping: what Kubernetes' own controllers do that a cluster without them would miss at once.

Objects whose owners are gone are deleted, namespaces are emptied, each namespace gets its service account, disruption
budgets count their pods and quotas what is used, nodes bear the taints that their state calls for, and custom resources
come and go with their definitions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from stromboli.cluster.body import Body, Key, changed, key_of, meta, with_meta
from stromboli.errors import ApiFailure
from stromboli.server.admission import disruption, quotas
from stromboli.server.admission.admission import World
from stromboli.server.admission.disruption import budgets_of
from stromboli.server.admission.quotas import Usage
from stromboli.server.controllers.controller_loop import delete_if_possible, one_by_one
from stromboli.server.controllers.outages import tainted
from stromboli.server.schema.decoding import refuse_unreadable, shaped
from stromboli.server.schema.definitions import COLLECTION, collection_of, resources_of
from stromboli.server.schema.resources import Catalogue, Resource
from stromboli.server.storage.aside import Place
from stromboli.server.storage.store import Change, CollectionName, Entry, Store
from stromboli.server.verbs.writing import FOREGROUND, ORPHAN, Deletion, Options, Writer

_LOG: Final = logging.getLogger(__name__)
_NAMESPACES: Final = ("", "namespaces")
_BUDGETS: Final = ("policy", "poddisruptionbudgets")
_PODS: Final = ("", "pods")
_NODES: Final = ("", "nodes")
_SPAWNED: Final = (("serviceaccounts", "ServiceAccount", "default"), ("configmaps", "ConfigMap", "kube-root-ca.crt"))
"""What every namespace has."""


@dataclass
class Keeper:
    """Notes what changed, and does afterwards what follows from it; ``later`` calls :meth:`settle` soon.

    ``usage`` is what is used of quotas, ``certificate`` the text that each namespace gets as the cluster's certificate
    authority.
    """

    store: Store
    catalogue: Catalogue
    writer: Writer
    world: World
    later: Callable[[Callable[[], None]], object]
    usage: Usage
    certificate: str = ""
    clock: Callable[[], float] = time.time
    _owners: dict[str, None] = field(default_factory=dict)
    _objects: dict[tuple[CollectionName, Key], set[str]] = field(default_factory=dict)
    """Objects to look at, each with the uids of those of its owners that have gone."""
    _namespaces: dict[str, None] = field(default_factory=dict)
    _budgets: dict[Key, None] = field(default_factory=dict)
    _nodes: dict[Key, None] = field(default_factory=dict)
    _told: set[Place] = field(default_factory=set)
    """Owners set aside of which the log says that their dependents are kept."""
    _called: bool = False

    def start(self) -> None:
        """Serve what is defined already, look at what an earlier process may have left undone, listen from now on."""
        for name in self.store.names():
            for entry in self.store.of(name).sorted():
                self._restore(name, entry)
        self.store.listeners.append(self.note)

    def _restore(self, name: CollectionName, entry: Entry) -> None:
        """What an earlier process kept and cannot be looked after keeps the rest from nothing: it is set aside."""
        try:
            resource = self.catalogue.stored().get(name)
            if resource is not None and not resource.custom:
                refuse_unreadable(resource, shaped(resource, entry.body)[1])
            self.note(name, Change(entry.version, "ADDED", entry, None))
        except Exception as error:  # noqa: BLE001 - whatever it is, the cluster has to start
            self.store.set_aside(name, entry, f"{type(error).__name__}: {error}")

    # ------------------------------------------------------------------------------------------- noting

    def note(self, name: CollectionName, change: Change) -> None:
        """Remember what a change may call for."""
        body = change.entry.body
        if name == COLLECTION:
            self._note_definition(change)
        elif name == _NAMESPACES:
            self._namespaces[key_of(body)[1]] = None
        elif name == _BUDGETS:
            self._budgets[key_of(body)] = None
        elif name == _NODES:
            self._nodes[key_of(body)] = None
        elif name == _PODS:
            self._note_pod(change)
        self._note_owned(name, change)
        if not self._called and self._due:
            self._called = True
            self.later(self.settle)

    def _note_definition(self, change: Change) -> None:
        body = change.entry.body
        if change.type == "DELETED":
            collection = collection_of(body)
            self.catalogue.remove(collection)
            for key in list(self.store.of(collection).entries):
                self.store.drop(collection, key)
        else:
            self._serve(body)

    def _serve(self, definition: Body) -> None:
        served = list(resources_of(definition))
        self.catalogue.remove(collection_of(definition))
        for resource in served:
            self.catalogue.add(resource)

    def _note_pod(self, change: Change) -> None:
        if self.store.of(_BUDGETS).entries:
            self._budgets |= {key_of(budget): None for budget in budgets_of(change.entry.body, self.world)}

    @property
    def _due(self) -> bool:
        owned = self._owners or self._objects or self._namespaces
        return bool(owned or self._budgets or self.usage.touched or self._nodes)

    def _note_owned(self, name: CollectionName, change: Change) -> None:
        found = meta(change.entry.body)
        if change.type == "DELETED":
            self._owners[found.get("uid", "")] = None
            for owner in found.get("ownerReferences") or ():
                if (place := self.store.places.get(owner.get("uid", ""))) is not None:
                    self._objects.setdefault(place, set())
            if "deletionTimestamp" in meta(self._namespace(found.get("namespace", ""))):
                self._namespaces[found["namespace"]] = None
        elif ("deletionTimestamp" in found and found.get("finalizers")) or (
            change.type == "ADDED" and found.get("ownerReferences")
        ):
            self._objects.setdefault((name, change.entry.key), set())

    def _namespace(self, name: str) -> Body:
        return (self.world.body("", "namespaces", "", name) if name else None) or {}

    # ------------------------------------------------------------------------------------------ settling

    def settle(self) -> None:
        """Do everything that is to be done, and what follows from that; one object's trouble keeps no other waiting."""
        self._called = False
        while self._due:
            for what, names, work in self._taken():
                one_by_one(what, names, work)

    def _taken(self) -> Sequence[tuple[str, Iterable[Any], Callable[[Any], None]]]:
        """Everything that has been noted: sorts of objects, their names, and what is done with one."""
        owners, self._owners = self._owners, {}
        objects, self._objects = self._objects, {}
        namespaces, self._namespaces = self._namespaces, {}
        budgets, self._budgets = self._budgets, {}
        nodes, self._nodes = self._nodes, {}
        return (
            ("owner", owners, self._release_dependents),
            ("object", objects, lambda place: self._settle_object(place, objects[place])),
            ("namespace", namespaces, self._settle_namespace),
            ("disruption budget", budgets, partial(self._settle_status, _BUDGETS, disruption.status_of)),
            ("quota", self.usage.taken(), partial(self._settle_status, quotas.COLLECTION, self.usage.status_of)),
            ("node", nodes, self._settle_node),
        )

    def _release_dependents(self, uid: str) -> None:
        for collection, key in sorted(self.store.dependents.get(uid, ())):
            self._objects.setdefault((collection, key), set()).add(uid)

    def _settle_object(self, place: tuple[CollectionName, Key], gone: Container[str]) -> None:
        collection, key = place
        entry = self.store.get(collection, key)
        resource = self.catalogue.stored().get(collection)
        if entry is None or resource is None:
            return
        found = meta(entry.body)
        if "deletionTimestamp" in found:
            self._settle_dying(resource, entry.body)
        elif found.get("ownerReferences") and not self._is_owned(entry.body, gone):
            self._delete(Deletion(propagation="Background"), place)

    def _is_owned(self, body: Body, gone: Container[str]) -> bool:
        """Whether an owner exists; one that was set aside does, and is told once.

        So may one of a kind that is not served, unless it is among those that have ``gone``.
        """
        owners = [owner for owner in meta(body).get("ownerReferences") or () if owner.get("uid") not in gone]
        if any(owner.get("uid") in self.store.places or self._is_of_unknown_kind(owner) for owner in owners):
            return True
        aside = self.store.aside.owner_of(body)
        if aside is not None and aside not in self._told:
            self._told.add(aside)
            (_, plural), (namespace, name) = aside
            what = "%s %s was set aside: objects that it owns, such as %s, are kept until they are deleted"
            _LOG.warning(what, plural, f"{namespace}/{name}".lstrip("/"), "/".join(filter(None, key_of(body))))
        return aside is not None

    def _is_of_unknown_kind(self, owner: Body) -> bool:
        return self.catalogue.of_kind(owner.get("apiVersion", ""), owner.get("kind", "")) is None

    def _settle_dying(self, resource: Resource, body: Body) -> None:
        """An object that waits for its dependents, or for being taken out of their owners."""
        finalizers = meta(body).get("finalizers") or []
        for finalizer, step in ((ORPHAN, self._orphan), (FOREGROUND, self._bury)):
            if finalizer in finalizers and step(meta(body).get("uid", "")):
                left = [name for name in finalizers if name != finalizer]
                entry = self.writer.entry(resource, key_of(body))
                freed = with_meta(entry.body, finalizers=left or None)
                self.writer.store_change(resource, entry, freed, "", Options())
                return

    def _orphan(self, uid: str) -> bool:
        for collection, key in sorted(self.store.dependents.get(uid, ())):
            entry = self.store.get(collection, key)
            if entry is not None:
                owners = [owner for owner in meta(entry.body)["ownerReferences"] if owner.get("uid") != uid]
                self.store.put(collection, with_meta(entry.body, ownerReferences=owners or None))
        return True

    def _bury(self, uid: str) -> bool:
        """Delete the dependents; whether none is left."""
        dependents = sorted(self.store.dependents.get(uid, ()))
        one_by_one("dependent", dependents, partial(self._delete, Deletion(propagation="Foreground")))
        left = self.store.dependents.get(uid, set())
        return not any(self._blocks(collection, key, uid) for collection, key in left)

    def _blocks(self, collection: CollectionName, key: Key, uid: str) -> bool:
        entry = self.store.get(collection, key)
        owners = meta(entry.body).get("ownerReferences") or () if entry else ()
        return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)

    def _delete(self, how: Deletion, place: tuple[CollectionName, Key]) -> None:
        """Delete an object that is not being deleted yet."""
        collection, key = place
        resource, entry = self.catalogue.stored().get(collection), self.store.get(collection, key)
        if resource is not None and entry is not None and "deletionTimestamp" not in meta(entry.body):
            delete_if_possible(self.writer, resource, key, how)

    def _settle_namespace(self, name: str) -> None:
        namespace = self._namespace(name)
        if not namespace:
            return
        if "deletionTimestamp" not in meta(namespace):
            self._furnish(name)
        elif not self._emptied(name):
            self.store.drop(_NAMESPACES, ("", name))

    def _furnish(self, namespace: str) -> None:
        for plural, kind, name in _SPAWNED:
            resource = self.catalogue.find("", "v1", plural)
            if resource is not None and self.store.get(("", plural), (namespace, name)) is None:
                body: Body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
                if kind == "ConfigMap":
                    body["data"] = {"ca.crt": self.certificate}
                self.writer.create(resource, namespace, body, Options())

    def _emptied(self, namespace: str) -> bool:
        """Delete what stands in the namespace; whether something is left for now."""
        left = False
        for collection, resource in self.catalogue.stored().items():
            if resource.namespaced:
                inside = [(collection, key) for key in self.store.of(collection).entries if key[0] == namespace]
                one_by_one("object", inside, partial(self._delete, Deletion()))
                left |= any(key[0] == namespace for key in self.store.of(collection).entries)
        return left

    def _settle_node(self, key: Key) -> None:
        entry = self.store.get(_NODES, key)
        if entry is not None:
            node = tainted(entry.body, self.clock())
            if node is not entry.body:
                self.store.put(_NODES, node)

    def _settle_status(self, collection: CollectionName, status_of: Callable[[Body, World], Body], key: Key) -> None:
        entry = self.store.get(collection, key)
        if entry is None:
            return
        status = status_of(entry.body, self.world)
        if status != entry.body.get("status"):
            self.store.put(collection, changed(entry.body, status=status))


def preinstalled(bodies: Iterable[Body], catalogue: Catalogue, writer: Writer) -> None:
    """Create objects that are not there yet."""
    for body in bodies:
        resource = catalogue.of_kind(body["apiVersion"], body["kind"])
        if resource is None:
            raise _unserved(body)
        try:
            writer.create(resource, meta(body).get("namespace", ""), body, Options())
        except ApiFailure as failure:
            if failure.reason != "AlreadyExists":
                raise


def renewed(bodies: Iterable[Body], catalogue: Catalogue, writer: Writer, *, sound: bool = False) -> None:
    """Create objects, or bring all of those that are there up to date but their metadata and status.

    ``sound`` objects are created without being read and checked once more.
    """
    for body in bodies:
        resource = catalogue.of_kind(body["apiVersion"], body["kind"])
        if resource is None:
            raise _unserved(body)
        try:
            parts = {name: value for name, value in body.items() if name not in _LASTING}
            writer.patch(resource, key_of(body), partial(changed, **parts), "", Options())
        except ApiFailure as failure:
            if failure.reason != "NotFound":
                raise
            writer.create(resource, meta(body).get("namespace", ""), body, Options(sound=sound))


_LASTING: Final = ("apiVersion", "kind", "metadata", "status")


def _unserved(body: Body) -> ApiFailure:
    return ApiFailure(404, "NotFound", f"{body['apiVersion']} {body['kind']} is not served")
