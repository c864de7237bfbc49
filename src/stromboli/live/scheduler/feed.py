"""From informers, and from the answers to our own writes, to the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.cluster.kinds import Object
from stromboli.cluster.mirror import Mirror, name_of
from stromboli.cluster.objects import absent
from stromboli.errors import ApiError, ManifestError, PluginError, StromboliError, in_words
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.kube.client import ALL, Client, Select
from stromboli.kube.informer import Change, Informer, What, unforeseen
from stromboli.kube.informers import Informers
from stromboli.kube.resources import RESOURCES, Resource, versions_of
from stromboli.live.process.events import Telling
from stromboli.model.resources.device_settings import DEVICE_CONFIG

FOLLOWED: Final = (
    "Namespace", "ConfigMap", "Service", "ReplicationController", "ReplicaSet", "StatefulSet", "PriorityClass",
    "ResourceQuota", "StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "PersistentVolume",
    "PersistentVolumeClaim", "VolumeAttachment", "Queue", "Node", "HyperNode", "Numatopology", "NodeShard",
    "PodDisruptionBudget", "DeviceClass", "ResourceSlice", "ResourceClaim", "PodGroup", "Workload", "UpstreamPodGroup",
    "Pod",
)  # fmt: skip
"""Kinds that scheduling looks at, the ones first that others refer to."""

OPTIONAL: Final = frozenset(
    {
        "ConfigMap",
        "NpuReport",
        "HyperNode",
        "Numatopology",
        "DeviceClass",
        "ResourceSlice",
        "ResourceClaim",
        "UpstreamPodGroup",
        "Workload",
        "CSIDriver",
        "CSIStorageCapacity",
    }
)
"""Kinds that a server may well do without, or not let us see."""

SELECTED: Final = {
    "ConfigMap": Select(fields=f"metadata.name={DEVICE_CONFIG}"), "NpuReport": Select(labels="mx-consumer-cim=true"),
}  # fmt: skip
"""Of which kinds some objects are followed only."""

_EVENTS: Final = {What.added: Added, What.modified: Modified, What.deleted: Deleted}


class Feed:
    """Brings news to a mirror; what cannot be used is told and leaves everything else as it is.

    ``clock`` gives seconds since 1970; ``refused`` is called with each object that cannot be used, and why.
    ``arrivals`` counts the PodGroups that have come, and the pods that had no node.
    """

    def __init__(
        self,
        mirror: Mirror,
        tell: Telling,
        clock: Callable[[], float] = time.time,
        refused: Callable[[Object, ManifestError], None] = lambda found, error: None,
    ) -> None:
        self.mirror, self.tell, self._clock, self._refused = mirror, tell, clock, refused
        self.arrivals = 0
        self._followed = Informers()

    def informers(self, client: Client, kinds_followed: Sequence[str] = FOLLOWED) -> Informers:
        """Informers of all kinds that tell this feed; they keep versions only."""
        self._followed = Informers()
        self.follow(client, kinds_followed)
        return self._followed

    def follow(self, client: Client, kinds: Sequence[str]) -> None:
        """Let the informers follow kinds, too, that none of them follows yet; they go on to do so."""
        for kind in kinds:
            if kind in self._followed.by_kind:
                continue
            newest, *older = versions_of(kind)
            told, optional = self._troubled(kind), kind in OPTIONAL
            informer = Informer(
                client,
                newest,
                select=SELECTED.get(kind, ALL),
                keep=False,
                troubled=told,
                older=older,
                optional=optional,
            )
            informer.subscribe(self._subscriber(kind))
            self._followed.add(informer, kind)

    def resource(self, kind: str) -> Resource[Any]:
        """How objects of a kind are reached: in the version in which the server was found to have them."""
        informer = self._followed.by_kind.get(kind)
        return RESOURCES[kind] if informer is None else informer.resource

    def take(self, event: Event, *, force: bool = False) -> bool:
        """Take news in; False when it is old or cannot be used."""
        try:
            return self.mirror.take(event, force=force)
        except ManifestError as error:
            self.tell("object_refused", error=error)
            self._refused(event.object, error)
        except Exception as error:  # noqa: BLE001  # one object's trouble must not be all others'
            kind, namespace, name = name_of(event)
            self.tell("object_refused", error=unforeseen("taken in", error, kind, (namespace, name)))
        return False

    def answer(self, found: Object, *, force: bool = False) -> None:
        """Take in what the server answered to a write or a question."""
        kind = type(found).__name__
        self.take(Modified(kind, found), force=force)

    def _troubled(self, kind: str) -> Callable[[StromboliError], None]:
        def troubled(error: StromboliError) -> None:
            if isinstance(error, ManifestError) and error.object:
                self.tell("object_refused", error=error)
            elif kind in OPTIONAL and isinstance(error, ApiError) and error.not_found:
                self.tell("not_served", resource=RESOURCES[kind])
            else:
                self.tell("following_trouble", kind=kind, error=error)

        return troubled

    def _subscriber(self, kind: str) -> Callable[[Change[Object]], None]:
        take = self.take
        told = {"Pod": self._pod_told, "PodGroup": self._group_told, "Queue": self._queue_told}.get(kind)

        def subscriber(change: Change[Object]) -> None:
            found = change.object
            if found is None:
                found = absent(kind, change.key, change.uid)
            took = take(_EVENTS[change.what](kind, found))
            if took and told is not None:
                told(change.what, found)

        return subscriber

    # ------------------------------------------------------------------ what observers hear

    def _pod_told(self, what: What, pod: Object) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if what is What.deleted:
            self.tell("pod_deleted", task=key)
            return
        task = self.mirror.state.tasks.get(key)
        if task is None:
            return
        self.tell("pod_added" if what is What.added else "pod_updated", task=key)
        if what is What.added and not task.own_node:
            self.arrivals += 1
            self.tell("metric.task_latency", stage="Watched", created=[float(task.created)])

    def _group_told(self, what: What, group: Object) -> None:
        key = f"{group.metadata.namespace}/{group.metadata.name}"
        job = self.mirror.state.jobs.get(key)
        if what is What.deleted:
            self.tell("job_deleted", uid=key, job=key)
            self.tell("metric.job_deleted", job=key)
        elif job is not None:
            self.arrivals += what is What.added
            self.tell("metric.job_started", job=key, queue=job.queue, created=job.created)

    def _queue_told(self, what: What, queue: Object) -> None:
        if what is What.deleted:
            self.tell("metric.queue_deleted", queue=queue.metadata.name)


def asked_for(config: Config, registry: Registry) -> tuple[str, ...]:
    """Kinds that are followed only because some plugin of the configuration reads them.

    Raises PluginError for a plugin that cannot say which, or names one that cannot be followed.
    """
    found: dict[str, None] = {}
    for plugin in registry.built(config):
        try:
            kinds = plugin.kinds_read()
        except Exception as error:
            raise PluginError(plugin.name, f"kinds_read fails: {in_words(error)}") from error
        if strange := [kind for kind in kinds if kind not in RESOURCES]:
            raise PluginError(plugin.name, f"kinds_read names {strange[0]}, which cannot be followed")
        found.update(dict.fromkeys(kinds))
    return tuple(found)


def selected(kinds_followed: Sequence[str], without: Collection[str]) -> tuple[str, ...]:
    """Kinds to follow, ``without`` some."""
    return tuple(kind for kind in kinds_followed if kind not in without)
