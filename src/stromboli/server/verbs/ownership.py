"""The managers of fields: ``metadata.managedFields``.

An object's fields are followed from its first apply on, by the client or the server; before that nothing asks for
them.  What stood
there then belongs to one manager: kubectl's client-side apply where its annotation says so, else
``before-first-apply``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from stromboli.cluster.body import Body, meta, part, stamp, with_meta
from stromboli.server.schema.resources import Resource
from stromboli.server.schema.schema import Schema
from stromboli.server.verbs.fieldsets import Fields, is_tree, leaves, of_tree, to_tree
from stromboli.server.verbs.writing import Options, Tracker

CLIENT_SIDE: Final = "kubectl-client-side-apply"
"""The manager of client-side ``kubectl apply``; its fields become kubectl's when it moves to server-side apply."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_FOLLOWED_META: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_UNCHANGED: Final = object()


@dataclass(frozen=True)
class Manager:
    """A manager of fields, and how it set them: ``operation`` is Apply or Update."""

    name: str
    operation: str
    api_version: str
    fields: Fields
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells managers apart; updates of different versions are different managers."""
        version = self.api_version if self.operation == "Update" else ""
        return self.name, self.operation, self.subresource, version

    @property
    def rank(self) -> tuple[str, ...]:
        """The order: appliers first, then the earlier, then by name."""
        return self.operation, self.time, self.name, self.api_version, self.subresource

    @property
    def entry(self) -> Body:
        """As in ``managedFields``."""
        body: Body = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        body |= {"time": self.time, "fieldsType": "FieldsV1", "fieldsV1": to_tree(self.fields)}
        return body | ({"subresource": self.subresource} if self.subresource else {})

    def __str__(self) -> str:
        sub = f' with subresource "{self.subresource}"' if self.subresource else ""
        if self.operation == "Apply":
            return f'"{self.name}"{sub}'
        return f'"{self.name}"{sub} using {self.api_version}'


def managers_of(body: Body) -> list[Manager]:
    """The managers of the object's fields."""
    return [
        Manager(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("apiVersion", ""),
            of_tree(entry.get("fieldsV1") or {}),
            entry.get("subresource", ""),
            entry.get("time", ""),
        )
        for entry in meta(body).get("managedFields") or ()
    ]


def with_managers(body: Body, managers: list[Manager]) -> Body:
    """The object with these managers in Kubernetes' order; those that own nothing any more go."""
    kept = sorted((one for one in managers if one.fields), key=lambda one: one.rank)
    return with_meta(body, managedFields=[one.entry for one in kept] or None)


def followed(resource: Resource, body: Body, subresource: str = "") -> Body:
    """The part of an object whose fields have owners."""
    kept = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
    if "status" in resource.subresources:
        kept = {name: value for name, value in kept.items() if (name == "status") == (subresource == "status")}
    found = {name: meta(body)[name] for name in _FOLLOWED_META if name in meta(body)}
    return {**kept, **({"metadata": found} if found and not subresource else {})}


def first_owner(resource: Resource, body: Body) -> Manager:
    """The owner of everything in an object that was never followed."""
    by_kubectl = LAST_APPLIED in (part(body, "metadata", "annotations") or {})
    return replace(_client_side(resource, body), name=CLIENT_SIDE if by_kubectl else "before-first-apply")


def _client_side(resource: Resource, body: Body) -> Manager:
    fields = frozenset(leaves(resource.schema, followed(resource, body)))
    return Manager(CLIENT_SIDE, "Update", resource.group_version, fields, "", meta(body).get("creationTimestamp", ""))


def differing(schema: Schema, old: Body, new: Body) -> tuple[Fields, Fields]:
    """The fields that are new or have another value, and those that are gone."""
    before, after = leaves(schema, old), leaves(schema, new)
    other = frozenset(path for path, value in after.items() if before.get(path, _UNCHANGED) != value)
    return other, frozenset(path for path in before if path not in after)


def track(clock: Callable[[], float]) -> Tracker:
    """A tracker that notes plain updates of objects that are followed."""

    def noted(resource: Resource, body: Body, old: Body | None, options: Options, subresource: str) -> Body:
        if old is None:
            return with_managers(body, [_client_side(resource, body)]) if options.manager == CLIENT_SIDE else body
        if options.owned or "managedFields" not in meta(old):
            return body
        if meta(body).get("managedFields") != meta(old).get("managedFields"):
            # The client writes the owners itself, as kubectl does when it moves to server-side apply.
            return body if _readable(body) else with_meta(body, managedFields=meta(old).get("managedFields"))
        new, known = (followed(resource, one, subresource) for one in (body, old))
        other, gone = differing(resource.schema, known, new)
        if not other and not gone:
            return body
        mine = Manager(options.manager, "Update", resource.group_version, other, subresource, stamp(clock()))
        return with_managers(body, joined(without_fields(managers_of(old), gone, other), mine))

    return noted


def _readable(body: Body) -> bool:
    """Whether managed fields can be followed; Kubernetes keeps those that it knows where they cannot."""
    entries = meta(body).get("managedFields") or ()
    return all(is_tree(entry.get("fieldsV1") or {}) for entry in entries)


def without_fields(managers: list[Manager], gone: Fields, taken: Fields) -> list[Manager]:
    """Managers without what is gone and what another manager took; that a thing is there may have many owners."""
    lost = gone | {path for path in taken if path[-1] != "."}
    return [replace(one, fields=one.fields - lost) for one in managers]


def joined(managers: list[Manager], mine: Manager) -> list[Manager]:
    """Managers with one whose fields come to those that it has already."""
    for index, one in enumerate(managers):
        if one.identity == mine.identity:
            both = replace(mine, fields=one.fields | mine.fields)
            return [*managers[:index], both, *managers[index + 1 :]]
    return [*managers, mine]
