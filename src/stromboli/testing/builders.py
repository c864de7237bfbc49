"""Small clusters for tests: manifests with sensible defaults, and the snapshot that they make.

::

    snapshot = cluster(
        node("n1", cpu=4),
        pod_group("train", min_member=2),
        pod("train-0", group="train", cpu=1),
        pod("train-1", group="train", cpu=1),
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stromboli.api.kinds import KINDS
from stromboli.api.scheduling import POD_GROUP_INQUEUE, QUEUE_OPEN
from stromboli.api.topology import HYPER_NODE, NODE
from stromboli.cluster.complete import namespace_named
from stromboli.cluster.events import Added
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.model.names import DEFAULT_QUEUE, GROUP_NAME, HOSTNAME, HUGE_PAGES_PREFIX, TASK_SPEC
from stromboli.model.resources.scalar_names import is_extended
from stromboli.model.snapshot import Snapshot
from stromboli.model.spec import Amount
from stromboli.model.values.times import stamp

Manifest = dict[str, Any]
"""An object as it stands in a manifest: mappings, lists, texts and numbers."""

Texts = Mapping[str, str]


def node(
    name: str,
    *,
    cpu: Amount = 4,
    memory: Amount = "8Gi",
    pods: int = 110,
    resources: Mapping[str, Amount] | None = None,
    labels: Texts | None = None,
    annotations: Texts | None = None,
    images: Mapping[str, int] | None = None,
    **spec: Any,
) -> Manifest:
    """A Node that offers so much and is labelled with its host name.

    ``resources`` are further ones by name, ``images`` sizes in bytes by name; ``spec`` as in a manifest (taints,
    unschedulable).
    """
    offer = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    held = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    found = _object("v1", "Node", name, labels={HOSTNAME: name, **(labels or {})}, annotations=annotations)
    return {**found, "spec": spec, "status": {"allocatable": offer, "capacity": offer, "images": held}}


def pod(
    name: str,
    *,
    group: str = "",
    cpu: Amount = 1,
    memory: Amount = "1Gi",
    requests: Mapping[str, Amount] | None = None,
    on: str = "",
    phase: str = "",
    deleting: bool = False,
    role: str = "",
    nominated: str = "",
    namespace: str = "default",
    labels: Texts | None = None,
    annotations: Texts | None = None,
    created: int = 0,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Manifest:
    """A Pod with one container that requests so much (``requests``: further resources by name); 0 requests nothing.

    Extended resources and huge pages are limits, too, as Kubernetes demands.
    ``group`` is its PodGroup, ``on`` its node (it is Running there unless ``phase`` says otherwise), ``deleting`` marks
    it for deletion, ``nominated`` is the node that a preemption made room on, ``created`` is in seconds since 1970.
    ``container`` (ports, image) and ``spec`` (nodeSelector, affinity, tolerations) are fields as in a manifest.
    """
    wanted = {"cpu": cpu, "memory": memory, **(requests or {})}
    asked = {name: amount for name, amount in wanted.items() if amount}
    notes = {**({GROUP_NAME: group} if group else {}), **({TASK_SPEC: role} if role else {}), **(annotations or {})}
    found = _object("v1", "Pod", name, namespace=namespace, labels=labels, annotations=notes, created=created)
    if deleting:
        found["metadata"]["deletionTimestamp"] = stamp(1)
    containers = [{"name": "main", "resources": resources_of(asked), **(container or {})}]
    status = {"phase": phase or ("Running" if on else "Pending"), "nominatedNodeName": nominated}
    return {**found, "spec": {"nodeName": on, "containers": containers, **spec}, "status": status}


def resources_of(requests: Mapping[str, Amount]) -> dict[str, dict[str, Amount]]:
    """The ``resources`` of a container that requests so much, with the limits without which Kubernetes refuses it.

    Those are the requests of extended resources and huge pages, which cannot be overcommitted.
    """
    limits = {
        name: amount for name, amount in requests.items() if is_extended(name) or name.startswith(HUGE_PAGES_PREFIX)
    }
    return {"requests": dict(requests), **({"limits": limits} if limits else {})}


def pod_group(
    name: str,
    *,
    min_member: int = 1,
    queue: str = DEFAULT_QUEUE,
    phase: str = POD_GROUP_INQUEUE,
    namespace: str = "default",
    labels: Texts | None = None,
    annotations: Texts | None = None,
    created: int = 0,
    **spec: Any,
) -> Manifest:
    """A PodGroup, admitted already unless ``phase`` is Pending; ``spec`` as in a manifest (minResources)."""
    found = _object(
        KINDS["PodGroup"].api_version,
        "PodGroup",
        name,
        namespace=namespace,
        labels=labels,
        annotations=annotations,
        created=created,
    )
    return {**found, "spec": {"minMember": min_member, "queue": queue, **spec}, "status": {"phase": phase}}


def queue(
    name: str,
    *,
    weight: int = 1,
    annotations: Texts | None = None,
    created: int = 0,
    state: str = QUEUE_OPEN,
    **spec: Any,
) -> Manifest:
    """A Queue; ``spec`` as in a manifest (capability, deserved, guarantee, parent, reclaimable)."""
    found = _object(KINDS["Queue"].api_version, "Queue", name, annotations=annotations, created=created)
    return {**found, "spec": {"weight": weight, **spec}, "status": {"state": state}}


def hyper_node(
    name: str, tier: int, *members: str | Manifest, below: Iterable[str] = (), tier_name: str = ""
) -> Manifest:
    """A HyperNode of a tier: its ``members`` are nodes by name or made by :func:`member`, ``below`` are HyperNodes."""
    found = [*map(_named(NODE), members), *map(_named(HYPER_NODE), below)]
    spec = {"tier": tier, "tierName": tier_name, "members": found}
    return {**_object(KINDS["HyperNode"].api_version, "HyperNode", name), "spec": spec}


def member(kind: str, **selector: Any) -> Manifest:
    """A member of a HyperNode: ``kind`` Node or HyperNode, and how it is selected (exactMatch, regexMatch)."""
    return {"type": kind, "selector": selector}


def _named(kind: str) -> Callable[[str | Manifest], Manifest]:
    return lambda each: member(kind, exactMatch={"name": each}) if isinstance(each, str) else each


def cluster(*objects: Manifest, complete: bool = True) -> Snapshot:
    """The cluster that the objects make.

    With ``complete`` it also has what they name and the caller does not give: queue ``default``, namespaces, and
    PodGroups with a minimum of one.  Raises :class:`~stromboli.errors.ManifestError` for an object that cannot be used.
    """
    return state(*objects, complete=complete).snapshot()


def state(*objects: Manifest, complete: bool = True) -> ClusterState:
    """:func:`cluster`, before the snapshot is taken; later events may follow."""
    found = ClusterState()
    for event in events([*objects, *(_missing(objects) if complete else ())]):
        found.apply(event)
    if complete:
        for name in dict.fromkeys(each["metadata"].get("namespace", "") for each in objects):
            if name and name not in found.namespace_labels:
                found.apply(Added("Namespace", namespace_named(name)))
    return found


def events(objects: Iterable[Manifest]) -> Iterator[Added]:
    """The objects as what happens to a cluster's state."""
    return (Added(each["kind"], from_value(each["kind"], each)) for each in objects)


def _missing(objects: Iterable[Manifest]) -> Iterator[Manifest]:
    given = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects}
    if ("Queue", "", DEFAULT_QUEUE) not in given:
        yield queue(DEFAULT_QUEUE)
    pods = (each["metadata"] for each in objects if each["kind"] == "Pod")
    named = dict.fromkeys((meta["namespace"], meta["annotations"].get(GROUP_NAME, "")) for meta in pods)
    for namespace, name in named:
        if name and ("PodGroup", namespace, name) not in given:
            yield pod_group(name, namespace=namespace)


def _object(
    version: str,
    kind: str,
    name: str,
    *,
    namespace: str = "",
    labels: Texts | None = None,
    annotations: Texts | None = None,
    created: int = 0,
) -> Manifest:
    metadata: Manifest = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    if namespace:
        metadata["namespace"] = namespace
    if created:
        metadata["creationTimestamp"] = stamp(created)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
