"""What the embedded cluster's default scheduler knows of the cluster, kept up with the changes of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from stromboli.cluster.body import Body, Key, meta, part, with_meta
from stromboli.cluster.complete import group_of_pod, in_group, missing_queues, with_priority
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.kinds import Object, Pod, PodGroup
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.model import names
from stromboli.server.api import Api
from stromboli.server.storage.store import Change, CollectionName

DEFAULT_SCHEDULER: Final = "default-scheduler"
PODS: Final = ("", "pods")
_KINDS: Final = {
    ("", "namespaces"): "Namespace",
    ("", "services"): "Service",
    ("apps", "replicasets"): "ReplicaSet",
    ("apps", "statefulsets"): "StatefulSet",
    ("", "nodes"): "Node",
    ("scheduling.k8s.io", "priorityclasses"): "PriorityClass",
    PODS: "Pod",
}
"""The kinds that count, in the order in which their changes are taken in."""

Unusable = Callable[[str, Body, ManifestError], None]
"""Is told of an object of a kind that cannot be used, and why."""


class PlacingState:
    """The cluster with the pods that wait, each a job of its own.

    A change is noted when it happens and applied at the next read: frequent changes cost nothing until then.
    ``waiting`` are the pods that wait, by namespace and name.
    """

    def __init__(self, api: Api, unusable: Unusable) -> None:
        self._api, self._unusable = api, unusable
        self.begin_anew()
        api.store.listeners.append(self.note)

    def begin_anew(self) -> None:
        """Forget the state; everything that is there counts as changed."""
        self._state = ClusterState()
        self._groups: dict[Key, PodGroup] = {}
        for addition in missing_queues(()):
            self._state.apply(addition.event)
        entries = {name: self._api.store.of(name).entries for name in _KINDS}
        self._changed: dict[CollectionName, dict[Key, None]] = {name: dict.fromkeys(entries[name]) for name in _KINDS}
        self.waiting = {key: entry.body for key, entry in entries[PODS].items() if is_waiting(entry.body)}

    def note(self, collection: CollectionName, change: Change) -> None:
        """Hear of a change."""
        if (changed := self._changed.get(collection)) is None:
            return
        key, body = change.entry.key, change.entry.body
        changed[key] = None
        if collection != PODS:
            return
        if change.type != "DELETED" and is_waiting(body):
            self.waiting[key] = body
        else:
            self.waiting.pop(key, None)

    def caught_up(self) -> ClusterState:
        """The state with all that has changed; only to look at."""
        for collection, kind in _KINDS.items():
            changed, self._changed[collection] = self._changed[collection], {}
            for key in changed:
                self._take(kind, key, self._api.body(*collection, *key))
        return self._state

    def _take(self, kind: str, key: Key, body: Body | None) -> None:
        """Let an object stand as it is now; one that cannot be used counts as gone."""
        try:
            if kind == "Pod":
                self._take_pod(key, body)
            elif body is None:
                self._drop(kind, key)
            else:
                self._state.apply(Added(kind, from_value(kind, body)))
        except ManifestError as error:
            self._drop(kind, key)
            if body is not None:
                self._unusable(kind, body, error)

    def _take_pod(self, key: Key, body: Body | None) -> None:
        if (group := self._groups.pop(key, None)) is not None:
            self._state.apply(Deleted("PodGroup", group))
        if body is not None and part(body, "spec", "nodeName"):
            self._state.apply(Added("Pod", from_value("Pod", body)))
        elif body is not None and is_waiting(body):
            self._wait(key, from_value("Pod", _plain(body)))
        else:
            self._drop("Pod", key)

    def _wait(self, key: Key, found: Object) -> None:
        """Take in a pod that waits, as the only one of its group."""
        values = {name: known.value for name, known in self._state.priorities.items()}
        pod = with_priority(cast(Pod, found), values)
        group = group_of_pod(pod)
        self._state.apply(Added("Pod", in_group(pod, group.metadata.name)))
        self._state.apply(Added("PodGroup", group))
        self._groups[key] = group

    def _drop(self, kind: str, key: Key) -> None:
        namespace, name = key
        self._state.apply(Deleted(kind, from_value(kind, {"metadata": {"namespace": namespace, "name": name}})))


def is_waiting(pod: Body) -> bool:
    """Whether a pod waits for the default scheduler."""
    spec = pod.get("spec") or {}
    waits = spec.get("schedulerName") == DEFAULT_SCHEDULER and not spec.get("nodeName")
    over = part(pod, "status", "phase") in (names.POD_SUCCEEDED, names.POD_FAILED) or "deletionTimestamp" in meta(pod)
    return waits and not over and not spec.get("schedulingGates")


def _plain(pod: Body) -> Body:
    """A pod that belongs to nothing: each is placed for itself."""
    spec = {name: value for name, value in pod["spec"].items() if name != "schedulingGroup"}
    return {**with_meta(pod, annotations=None, ownerReferences=None), "spec": spec}
