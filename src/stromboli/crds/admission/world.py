"""What admission looks at besides the object itself, and how it is set up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from stromboli.api.batch import JOB_PLUGINS
from stromboli.api.kinds import NAMESPACES, QUEUES
from stromboli.api.read import read
from stromboli.api.scheduling import Queue
from stromboli.crds.admission.resource_groups import ResourceGroup
from stromboli.errors import ManifestError
from stromboli.model.names import SCHEDULER_NAME

Object = Mapping[str, object]
"""An object as its JSON says it; never changed in place."""


class World(Protocol):
    """The objects that are there.  Resources are ``queues.scheduling.volcano.sh``, ``namespaces`` and so on."""

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""

    def list(self, resource: str) -> Iterable[Object]:
        """All objects of a resource, in all namespaces."""


class Objects:
    """A world of objects given by resource; a :class:`World`."""

    def __init__(self, objects: Mapping[str, Iterable[Object]]) -> None:
        self._objects = {resource: {_key(found): found for found in listed} for resource, listed in objects.items()}

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: str) -> Iterable[Object]:
        """All objects of a resource."""
        return self._objects.get(resource, {}).values()


def _key(found: Object) -> tuple[str, str]:
    metadata = found.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return str(named.get("namespace") or ""), str(named.get("name") or "")


@dataclass(frozen=True, slots=True)
class Settings:
    """How admission is set up: the flags of Volcano's webhook manager, with their defaults."""

    scheduler_names: tuple[str, ...] = (SCHEDULER_NAME,)
    max_queue_depth: int = 5
    check_allocated_pods: bool = False
    """Whether a queue that holds pods may not be deleted (``--enable-queue-allocated-pods-check``)."""
    protect_root: bool = True
    """Whether root's amounts are fixed (``--enable-root-queue-protection``)."""
    job_plugins: tuple[str, ...] = JOB_PLUGINS
    """What jobs may name in ``spec.plugins``."""
    gates_pods: bool = False
    """Whether pods get the gate of their queue that they ask for (gate ``SchedulingGatesQueueAdmission``)."""
    scales_queues: bool = False
    """Whether queues may have an overcommit factor of their own (gate ``QueueScopedOvercommit``)."""
    resource_groups: tuple[ResourceGroup, ...] = ()
    """Which pods go to which nodes and scheduler (``--admission-conf``)."""


@dataclass(frozen=True)
class Scene:
    """One question to admission: the world and the settings.  Queues are read once."""

    world: World
    settings: Settings

    def queue(self, name: str) -> Queue | None:
        """The queue of that name; None when there is none that can be read."""
        found = self.world.get(QUEUES, name)
        return None if found is None else _readable(found)

    @cached_property
    def queues(self) -> list[Queue]:
        """All queues that can be read."""
        return [queue for found in self.world.list(QUEUES) if (queue := _readable(found)) is not None]

    @cached_property
    def _children(self) -> dict[str, list[Queue]]:
        children: dict[str, list[Queue]] = {}
        for queue in self.queues:
            children.setdefault(queue.spec.parent, []).append(queue)
        return children

    def children(self, name: str) -> list[Queue]:
        """The queues right below the one of that name."""
        return self._children.get(name, [])

    def namespace_annotation(self, namespace: str, key: str) -> str:
        """An annotation of a namespace, or an empty text."""
        metadata = (self.world.get(NAMESPACES, namespace) or {}).get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        return str(annotations.get(key) or "") if isinstance(annotations, Mapping) else ""


class KnownQueue(dict[str, Any]):
    """A queue's values that stay as they are; they are read once, however often they are asked about."""

    @cached_property
    def queue(self) -> Queue | None:
        """The queue, None if it cannot be read."""
        return _read(self)


def _readable(found: Object) -> Queue | None:
    return found.queue if isinstance(found, KnownQueue) else _read(found)


def _read(found: Object) -> Queue | None:
    try:
        return read(Queue, found)
    except ManifestError:
        return None


def queue_missing(name: str) -> str:
    """How a lookup of a queue that is not there fails."""
    return f'queue.scheduling.volcano.sh "{name}" not found'
