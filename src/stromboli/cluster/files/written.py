"""A state written down as manifests, so that ``stromboli plan`` can look at what a live scheduler saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from stromboli.cluster.kinds import KINDS, Object
from stromboli.cluster.state import ClusterState
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.names import POD_SCHEDULED
from stromboli.model.objects.storage import Mount
from stromboli.model.podgroup import PodGroup
from stromboli.model.queue import Queue
from stromboli.model.spec import LabelSelector, NodeSpec
from stromboli.model.status import TaskStatus
from stromboli.model.task import GRACE, Task
from stromboli.model.values.redaction import without_secrets
from stromboli.model.values.times import stamp

Manifest = dict[str, Any]

_PHASES: Final = {TaskStatus.Succeeded: "Succeeded", TaskStatus.Failed: "Failed", TaskStatus.Running: "Running"}


def manifests(state: ClusterState, now: float) -> Iterator[Manifest]:
    """All objects of ``state``, decisions that are being carried out included; ``now`` marks pods that are going.

    What is taken of the state is taken at once, and is not changed any more: the manifests may be made elsewhere, while
    the state goes on.
    """
    few = [*_of_the_cluster(state), *_of_namespaces(state)]
    nodes = [entry.spec for entry in state.nodes.entries().values() if entry.spec is not None]
    groups = [job.group for job in state.jobs.values() if job.group.uid]
    pods = list(state.tasks.values())
    return chain(
        few, map(node_manifest, nodes), map(group_manifest, groups), (pod_manifest(task, now) for task in pods)
    )


def _of_the_cluster(state: ClusterState) -> Iterable[Manifest]:
    yield from (_object("Namespace", name, labels=labels) for name, labels in state.namespace_labels.items())
    for name, row in state.priorities.items():
        yield _object("PriorityClass", name) | {"value": row.value, "globalDefault": row.global_default}
    yield from map(_queue, state.queues.values())
    for name, spec in state.hyper_nodes.specs().items():
        yield _object("HyperNode", name) | {"spec": msgspec.to_builtins(spec)}


def _of_namespaces(state: ClusterState) -> Iterable[Manifest]:
    for namespace, quotas in state.quotas.items():
        for name, quota in quotas.items():
            yield _object("ResourceQuota", name, namespace) | {"status": {"hard": quota.hard, "used": quota.used}}
    for namespace, named in state.services.items():
        yield from (_selecting(namespace, key, selector) for key, selector in named.items())
    yield from map(_budget, state.budgets.values())
    for kind, found in (*state.storage.written(), *state.storage.devices.written()):
        yield as_read(kind, found)


def as_list(found: Iterable[Manifest]) -> Iterator[bytes]:
    """Manifests as pieces of a JSON ``List``, an object a line."""
    yield b'{"apiVersion":"v1","kind":"List","items":[\n'
    for number, manifest in enumerate(found):
        yield (b",\n" if number else b"") + msgspec.json.encode(manifest)
    yield b"\n]}\n"


def _object(kind: str, name: str, namespace: str = "", created: int = 0, **metadata: object) -> Manifest:
    """An object's head; annotations tell no secrets, and those that repeat it as it was applied are left out."""
    meta: Manifest = {"name": name} | {key: value for key, value in metadata.items() if value}
    if annotations := without_secrets(meta.get("annotations", {})):
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)
    if namespace:
        meta["namespace"] = namespace
    if created:
        meta["creationTimestamp"] = stamp(created)
    return {"apiVersion": KINDS[kind].api_versions[0], "kind": kind, "metadata": meta}


def node_manifest(spec: NodeSpec) -> Manifest:
    """A node."""
    found = _object("Node", spec.name, labels=spec.labels, annotations=spec.annotations)
    images = msgspec.to_builtins(spec.images)
    found["spec"] = {"taints": msgspec.to_builtins(spec.taints), "unschedulable": spec.unschedulable}
    found["status"] = {"allocatable": spec.allocatable, "capacity": spec.capacity, "images": images}
    return found


def _selecting(namespace: str, key: str, selector: LabelSelector) -> Manifest:
    """A Service, or what else holds pods of its labels together; ``key`` is kind and name."""
    kind, _, name = key.partition("/")
    plain = kind in ("Service", "ReplicationController")
    chosen = selector.match_labels if plain else msgspec.to_builtins(selector)
    return _object(kind, name, namespace) | {"spec": {"selector": chosen}}


def _budget(budget: DisruptionBudget) -> Manifest:
    found = _object("PodDisruptionBudget", budget.name, budget.namespace)
    disrupted = dict.fromkeys(budget.disrupted, "1970-01-01T00:00:00Z")
    found["spec"] = {"selector": msgspec.to_builtins(budget.selector)}
    found["status"] = {"disruptionsAllowed": budget.allowed, "disruptedPods": disrupted}
    return found


def _queue(queue: Queue) -> Manifest:
    found = _object(
        "Queue", queue.name, created=queue.created, uid=queue.uid, labels=queue.labels, annotations=queue.annotations
    )
    return found | {"spec": msgspec.to_builtins(queue.spec), "status": msgspec.to_builtins(queue.status)}


def group_manifest(group: PodGroup) -> Manifest:
    """A PodGroup."""
    found = _object(
        "PodGroup", group.name, group.namespace, group.created,
        uid=group.uid, labels=group.labels, annotations=group.annotations,
    )  # fmt: skip
    return found | {"spec": msgspec.to_builtins(group.spec), "status": msgspec.to_builtins(group.status)}


def as_read(kind: str, read: Object) -> Manifest:
    """An object that is kept as it was read."""
    meta = read.metadata
    owners = msgspec.to_builtins(meta.owner_references)
    head = _object(
        kind, meta.name, meta.namespace, uid=meta.uid, labels=meta.labels, annotations=meta.annotations,
        ownerReferences=owners, deletionTimestamp=meta.deletion_timestamp,
    )  # fmt: skip
    return {**msgspec.to_builtins(read), **head}


def _volume(task: Task, number: int, mount: Mount) -> Manifest:
    name = mount.claim.partition("/")[2]
    if mount.owner:
        return {"name": name.removeprefix(f"{task.name}-"), "ephemeral": {}}
    return {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}


def pod_manifest(task: Task, now: float) -> Manifest:
    """A pod; ``now`` is when one that is going goes, where nothing else is known."""
    owners = [{"apiVersion": "", "kind": "", "name": task.owner, "uid": ""}] if task.owner else []
    found = _object(
        "Pod", task.name, task.namespace, task.created,
        uid=task.uid, labels=dict(task.labels), annotations=dict(task.annotations), ownerReferences=owners,
    )  # fmt: skip
    if task.status is TaskStatus.Releasing:
        found["metadata"]["deletionTimestamp"] = stamp(task.ends or now)
    found["spec"] = msgspec.to_builtins(task.template.spec) | {"nodeName": task.own_node}
    if task.grace != GRACE:
        found["spec"]["terminationGracePeriodSeconds"] = task.grace
    if task.volumes:
        found["spec"]["volumes"] = [_volume(task, number, mount) for number, mount in enumerate(task.volumes)]
    if task.claims:
        names = (claim.partition("/")[2] for claim in task.claims)
        found["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
    found["status"] = {"phase": _PHASES.get(task.status) or task.phase, "nominatedNodeName": task.nominated_node}
    if task.condition is not None:
        said = task.condition
        condition = {"type": POD_SCHEDULED, "status": said.status, "reason": said.reason, "message": said.message}
        found["status"]["conditions"] = [condition]
    return found
