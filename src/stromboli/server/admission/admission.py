"""What is decided about an object between its reading and its storing: a chain of admissions, each with one concern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ApiFailure
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import forbidden

STATUS: Final = "status"
"""The subresource whose writes are admitted, too."""


class World(Protocol):
    """What an admission may look up."""

    def body(self, group: str, plural: str, namespace: str, name: str) -> Body | None:
        """An object, or None."""

    def bodies(self, group: str, plural: str, namespace: str = "") -> Iterable[Body]:
        """All objects of a kind, or those in a namespace."""


class Admission(Protocol):
    """One concern.  Refusals are raised as :class:`ApiFailure`."""

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object as it may be stored; ``old`` is None for a new one."""

    def admit_status(self, resource: Resource, body: Body, old: Body, world: World) -> Body:
        """The object, of which the status alone is written, as it may be stored."""

    def admit_deletion(self, resource: Resource, body: Body, world: World) -> None:
        """Raise if the object must stay."""


class Rule:
    """An admission that lets everything pass; base of others."""

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object as it is."""
        return body

    def admit_status(self, resource: Resource, body: Body, old: Body, world: World) -> Body:
        """The object as it is."""
        return body

    def admit_deletion(self, resource: Resource, body: Body, world: World) -> None:
        """Nothing must stay."""


IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that are never deleted."""


class NamespaceLifecycle(Rule):
    """Objects are made only in namespaces that are there and will stay."""

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object as it is, if its namespace takes new ones."""
        if old is not None or not resource.namespaced:
            return body
        name = meta(body).get("namespace", "")
        namespace = world.body("", "namespaces", "", name)
        if namespace is None:
            raise ApiFailure(404, "NotFound", f'namespaces "{name}" not found', {"name": name, "kind": "namespaces"})
        if "deletionTimestamp" in meta(namespace):
            raise _terminating(resource, meta(body).get("name", ""), name)
        return body

    def admit_deletion(self, resource: Resource, body: Body, world: World) -> None:
        """Some namespaces must stay."""
        if resource.collection == ("", "namespaces") and meta(body).get("name") in IMMORTAL:
            raise forbidden(resource, meta(body)["name"], "this namespace may not be deleted")


def _terminating(resource: Resource, name: str, namespace: str) -> ApiFailure:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    told = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": told, "field": "metadata.namespace"}
    return forbidden(resource, name, why, [cause])


_PRIORITISED: Final = {
    ("", "pods"): "",
    ("scheduling.k8s.io", "podgroups"): "pod group",
    ("scheduling.k8s.io", "compositepodgroups"): "composite pod group",
}
"""What has a priority; groups are told by these words that theirs is not that of its class."""


class Priority(Rule):
    """Pods and Kubernetes' groups of pods take the number and the preemption policy of their priority class."""

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object with its priority."""
        if resource.collection not in _PRIORITISED:
            return body
        if old is not None:
            kept = {name: old["spec"][name] for name in ("priority", "preemptionPolicy") if name in old["spec"]}
            return {**body, "spec": {**kept, **body["spec"]}}
        name = part(body, "spec", "priorityClassName")
        found = self._class(resource, body, name, world)
        value, stated = found.get("value", 0), body["spec"].get("priority")
        if (what := _PRIORITISED[resource.collection]) and stated not in (None, value):
            told = f"priority set in the {what} ({stated}) must match the priority computed ({value}) based on the"
            raise forbidden(resource, meta(body).get("name", ""), f"{told} priority class set in the spec")
        spec = {**body["spec"], "priority": value}
        spec["preemptionPolicy"] = found.get("preemptionPolicy", "PreemptLowerPriority")
        if found and not name:
            spec["priorityClassName"] = meta(found)["name"]
        return {**body, "spec": spec}

    def _class(self, resource: Resource, body: Body, name: str | None, world: World) -> Body:
        if name:
            found = world.body("scheduling.k8s.io", "priorityclasses", "", name)
            if found is None:
                raise forbidden(resource, meta(body).get("name", ""), f"no PriorityClass with name {name} was found")
            return found
        chosen = [one for one in world.bodies("scheduling.k8s.io", "priorityclasses") if one.get("globalDefault")]
        return min(chosen, key=lambda one: one.get("value", 0), default={})


class Definitions(Rule):
    """A custom resource definition must not take the place of another kind."""

    def __init__(self, taken: Callable[[str, str], Resource | None]) -> None:
        self._taken = taken

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The definition as it is, if its kind is free."""
        if old is None and resource.plural == "customresourcedefinitions":
            group, plural = part(body, "spec", "group"), part(body, "spec", "names", "plural")
            found = self._taken(group, plural)
            if found is not None and not found.custom:
                raise forbidden(
                    resource, meta(body).get("name", ""), f"{found.title} is served by the API server itself"
                )
        return body


def standard(taken: Callable[[str, str], Resource | None]) -> list[Admission]:
    """The admissions of every server, in order."""
    return [NamespaceLifecycle(), Priority(), Definitions(taken)]
