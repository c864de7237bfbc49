"""What the controllers follow on an API server, and how each kind reaches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from stromboli.api.batch import CronJob, Job
from stromboli.api.bus import Command
from stromboli.api.fields import Resource as Object
from stromboli.api.flow import JobFlow, JobTemplate
from stromboli.api.kinds import (
    COMMANDS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    KINDS,
    NODE_SHARDS,
    POD_GROUPS,
    PODS,
    QUEUES,
)
from stromboli.api.read import read
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.topology import HyperNode, NodeShard
from stromboli.controllers.changes import PERSISTENT_VOLUME_CLAIMS, Subject
from stromboli.controllers.manager import Manager
from stromboli.controllers.pods import PodView, pod_view
from stromboli.controllers.sharding.controller import ShardingController
from stromboli.controllers.sharding.usage import PodOnNode, SizedNode
from stromboli.controllers.topology import TopologyController
from stromboli.controllers.work import About
from stromboli.controllers.world import Key, Shelf, key_of
from stromboli.errors import ManifestError
from stromboli.kube.client import ALL, Select
from stromboli.kube.informer import Change, What
from stromboli.kube.resources import Raw, Resource
from stromboli.live.controllers.topology_poller import TopologyPoller
from stromboli.model.spec import Wire

_Kind = TypeVar("_Kind", bound=Object)


class Described(Object, frozen=True):
    """An object of which only the metadata matters."""


class Scale(Wire, frozen=True):
    """How many pods an owner wants."""

    replicas: int | None = None


class Owner(Object, frozen=True):
    """An owner of plain pods."""

    spec: Scale = Scale()


class ConfigMap(Object, frozen=True):
    """A ConfigMap."""

    data: dict[str, str] = {}


class PriorityClass(Object, frozen=True):
    """A PriorityClass."""

    value: int = 0


class Followed(NamedTuple):
    """One kind that is followed: what to do with one that is seen, and with the key of one that is gone.

    It is followed for the sake of some ``looks``.  What is not ``needed`` may be missing on the server, and of an
    ``optional`` kind we need not be allowed to look.  ``namespace`` and ``select`` say which objects.
    """

    resource: Resource[Any]
    looks: frozenset[About]
    seen: Callable[[Any], None]
    gone: Callable[[Key], object]
    needed: bool = True
    optional: bool = False
    namespace: str = ""
    select: Select = ALL

    def hear(self, change: Change[Any]) -> None:
        """Take a change in."""
        if change.what is What.deleted:
            self.gone(change.key)
        elif change.object is not None:
            self.seen(change.object)


def decoder(kind: type[_Kind]) -> Callable[[Raw], _Kind]:
    """A function that reads objects of a kind from JSON; nulls count as absent."""
    fast = msgspec.json.Decoder(kind).decode

    def decode(raw: Raw) -> _Kind:
        try:
            return fast(raw)
        except msgspec.ValidationError:
            return read(kind, msgspec.json.decode(raw))
        except msgspec.DecodeError as error:
            raise ManifestError(str(error), object=kind.__name__) from error

    return decode


def _ours(kind: type[_Kind]) -> Resource[_Kind]:
    row = KINDS[kind.__name__]
    return Resource(row.api_version, row.plural, row.kind, row.namespaced, decoder(kind))


def _core(plural: str, kind: str, api_version: str = "v1", *, namespaced: bool = True) -> Resource[Described]:
    return Resource(api_version, plural, kind, namespaced, decoder(Described))


JOB: Final = _ours(Job)
CRON_JOB: Final = _ours(CronJob)
JOB_FLOW: Final = _ours(JobFlow)
JOB_TEMPLATE: Final = _ours(JobTemplate)
POD_GROUP: Final = _ours(PodGroup)
QUEUE: Final = _ours(Queue)
COMMAND: Final = _ours(Command)
HYPER_NODE: Final = _ours(HyperNode)
NODE_SHARD: Final = _ours(NodeShard)
CLAIM: Final = _core(PERSISTENT_VOLUME_CLAIMS, "PersistentVolumeClaim")
NODE: Final = _core("nodes", "Node", namespaced=False)
SIZED_NODE: Final = NODE.read_as(decoder(SizedNode))
POD_ON_NODE: Final = Resource("v1", PODS, "Pod", True, decoder(PodOnNode))
CONFIG_MAP: Final = Resource("v1", "configmaps", "ConfigMap", True, decoder(ConfigMap))
PRIORITY_CLASS: Final = Resource(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False, decoder(PriorityClass)
)
OWNERS: Final = tuple(
    Resource(api_version, f"{kind.lower()}s", kind, True, decoder(Owner))
    for kind, api_version in (
        ("ReplicaSet", "apps/v1"),
        ("StatefulSet", "apps/v1"),
        ("DaemonSet", "apps/v1"),
        ("Job", "batch/v1"),
    )
)


def pod_resource(schedulers: tuple[str, ...]) -> Resource[PodView]:
    """Pods as the controllers see them; those of ``schedulers`` that name no PodGroup are kept in full."""
    return Resource("v1", "pods", "Pod", True, lambda raw: pod_view(raw, schedulers))


def writable(schedulers: tuple[str, ...]) -> dict[str, Resource[Any]]:
    """What the controllers write, by the names that changes use."""
    return {
        JOBS: JOB,
        CRON_JOBS: CRON_JOB,
        JOB_FLOWS: JOB_FLOW,
        JOB_TEMPLATES: JOB_TEMPLATE,
        POD_GROUPS: POD_GROUP,
        QUEUES: QUEUE,
        COMMANDS: COMMAND,
        HYPER_NODES: HYPER_NODE,
        NODE_SHARDS: NODE_SHARD,
        PODS: pod_resource(schedulers),
        PERSISTENT_VOLUME_CLAIMS: CLAIM,
    }


_JOBS: Final = frozenset({About.job})
_PLAIN: Final = frozenset({About.pod, About.idle_group})
_TEMPLATES: Final = frozenset({About.job_flow, About.job_template})
_MAKING: Final = (About.cron_job, About.job_flow, About.job_template)
_MEMBERS: Final = frozenset({About.hyper_node, About.discovery})
_SHARDS: Final = frozenset({About.sharding})
_ORDERED: Final = frozenset({About.job, About.queue})


def followed(manager: Manager, schedulers: tuple[str, ...], looks: frozenset[About]) -> Iterator[Followed]:
    """Everything that the controllers of ``looks`` follow."""
    return (row for row in _all(manager, schedulers) if row.looks & looks)


def _all(manager: Manager, schedulers: tuple[str, ...]) -> Iterator[Followed]:
    world = manager.world
    yield Followed(JOB, _JOBS | {About.garbage, *_MAKING}, manager.seen_job, manager.gone_job)
    yield _looked_at(manager, CRON_JOB, About.cron_job, world.cron_jobs)
    yield _looked_at(manager, JOB_FLOW, About.job_flow, world.job_flows)
    yield Followed(JOB_TEMPLATE, _TEMPLATES, manager.seen_job_template, world.job_templates.drop, False, True)
    yield Followed(QUEUE, _ORDERED, manager.seen_queue, manager.gone_queue)
    yield Followed(POD_GROUP, _ORDERED | _PLAIN, manager.seen_pod_group, manager.gone_pod_group)
    yield Followed(pod_resource(schedulers), _JOBS | _PLAIN | {About.job_flow}, manager.seen_pod, manager.gone_pod)
    yield Followed(COMMAND, _ORDERED, manager.seen_command, manager.commands.drop)
    topology = manager.topology
    yield Followed(HYPER_NODE, _MEMBERS, topology.seen, topology.gone, needed=False)
    yield Followed(
        NODE, _MEMBERS, lambda node: topology.seen_node(node.metadata), lambda key: topology.gone_node(key[1])
    )
    yield from _divided(manager.sharding)
    yield Followed(
        PRIORITY_CLASS,
        _JOBS,
        lambda found: world.set_priority(found.metadata.name, found.value),
        lambda key: world.set_priority(key[1], None),
        needed=False,
    )
    yield Followed(CLAIM, _JOBS, lambda claim: world.claims.add(key_of(claim)), world.claims.discard, needed=False)
    for owner in OWNERS:
        yield _owner(manager, owner)


def _looked_at(
    manager: Manager, resource: Resource[_Kind], about: About, shelf: Shelf[_Kind], *, optional: bool = True
) -> Followed:
    """Objects of one kind that are looked at whenever they change."""
    seen, gone = partial(manager.seen, about, shelf), shelf.drop
    return Followed(resource, frozenset({about}), seen, gone, needed=False, optional=optional)


def topology_sources(topology: TopologyController, poller: TopologyPoller, namespace: str, name: str) -> Followed:
    """The ConfigMap that says where HyperNodes come from."""

    def seen(found: ConfigMap) -> None:
        topology.configure(Subject("v1", "ConfigMap", namespace, name, found.metadata.uid), found.data)
        poller.renew()

    def gone(_: Key) -> None:
        topology.discovery.stop()
        poller.renew()

    select = Select(fields=f"metadata.name={name}")
    looks = frozenset({About.discovery})
    return Followed(CONFIG_MAP, looks, seen, gone, needed=False, optional=True, namespace=namespace, select=select)


def _divided(sharding: ShardingController) -> Iterator[Followed]:
    """What nodes are divided by: sizes, and requests of the pods that are bound."""
    bound = Select(fields="spec.nodeName!=")
    yield Followed(NODE_SHARD, _SHARDS, sharding.seen_shard, sharding.gone_shard, needed=False)
    yield Followed(SIZED_NODE, _SHARDS, sharding.seen_node, sharding.gone_node)
    yield Followed(POD_ON_NODE, _SHARDS, sharding.seen_pod, sharding.gone_pod, select=bound)


def division_sources(sharding: ShardingController, namespace: str, name: str) -> Followed:
    """The ConfigMap that says how nodes are divided among schedulers."""

    def seen(found: ConfigMap) -> None:
        sharding.configure(Subject("v1", "ConfigMap", namespace, name, found.metadata.uid), found.data)

    select = Select(fields=f"metadata.name={name}")
    return Followed(
        CONFIG_MAP, _SHARDS, seen, sharding.gone, needed=False, optional=True, namespace=namespace, select=select
    )


def _owner(manager: Manager, resource: Resource[Owner]) -> Followed:
    owners, kind = manager.world.owners, resource.kind

    def seen(found: Owner) -> None:
        manager.seen_owner(kind, found.metadata, found.spec.replicas)

    def gone(key: Key) -> None:
        owners.pop((kind, *key), None)

    return Followed(resource, _PLAIN, seen, gone, needed=False)
