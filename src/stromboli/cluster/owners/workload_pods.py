"""The pods that Kubernetes' own controllers make of a workload, for plans from files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.kinds import (
    BatchJob,
    DaemonSet,
    Deployment,
    NamespacedMetadata,
    Node,
    OwnerReference,
    Pod,
    PodStatus,
    ReplicaSet,
)
from stromboli.cluster.kinds import StatefulSet as StatefulSetKind
from stromboli.errors import ManifestError
from stromboli.filters.selectors import node_suits
from stromboli.filters.taints import admits
from stromboli.model.names import POD_PENDING
from stromboli.model.resources.request import with_default_requests
from stromboli.model.spec import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    NodeSpec,
    PodSpec,
    Requirement,
    Toleration,
)

MOST_PODS: Final = 1_000_000
"""A workload with more pods than this is refused."""

TOLERATED: Final = tuple(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Taints that pods of DaemonSets tolerate."""

Whose = tuple[str, str, str, str]
"""API version, kind, namespace and name of an owner."""

_WIRE: Final[dict[type, tuple[str, str]]] = {
    Deployment: ("apps/v1", "Deployment"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSetKind: ("apps/v1", "StatefulSet"),
    BatchJob: ("batch/v1", "Job"),
    DaemonSet: ("apps/v1", "DaemonSet"),
}


def whose(workload: ReplicaSet) -> Whose:
    """What the references of its pods say."""
    version, kind = _WIRE[type(workload)]
    return version, kind, workload.metadata.namespace, workload.metadata.name


def owners_of(metadata: NamespacedMetadata) -> Iterator[Whose]:
    """What an object belongs to, by the names that :func:`whose` gives."""
    return ((one.api_version, one.kind, metadata.namespace, one.name) for one in metadata.owner_references)


def size_of(workload: ReplicaSet) -> int:
    """How many pods it has at once.  Raises ManifestError."""
    spec = workload.spec
    counts = {"replicas": spec.replicas, "parallelism": spec.parallelism, "completions": spec.completions}
    for name, number in counts.items():
        check_whole(number, COUNT, f"spec.{name}")
    if isinstance(workload, BatchJob):
        most = 1 if spec.parallelism is None else spec.parallelism
        size = 0 if spec.suspend else most if spec.completions is None else min(most, spec.completions)
    else:
        size = 1 if spec.replicas is None else spec.replicas
    if size > MOST_PODS:
        raise ManifestError(f"it has more than {MOST_PODS} pods", path="spec")
    return size


def pods_of(workload: ReplicaSet, nodes: Iterable[Node] = ()) -> Iterator[Pod]:
    """Its pods, as the API server completes them, a DaemonSet's for ``nodes``; without a uid names tell them apart."""
    template, meta = workload.spec.template, workload.metadata
    if template is None:
        return
    version, kind, _, name = whose(workload)
    owner = OwnerReference(version, kind, name, meta.uid or f"{kind.lower()}-{name}", controller=True)
    spec = with_default_requests(template.spec)
    specs = _for_nodes(spec, nodes) if isinstance(workload, DaemonSet) else itertools.repeat(spec, size_of(workload))
    for number, each in enumerate(specs):
        metadata = NamespacedMetadata(
            name=f"{name}-{number}",
            namespace=meta.namespace,
            creation_timestamp=meta.creation_timestamp,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(owner,),
        )
        yield Pod(metadata=metadata, spec=each, status=PodStatus(phase=POD_PENDING))


def _for_nodes(spec: PodSpec, nodes: Iterable[Node]) -> Iterator[PodSpec]:
    """The pod for each node that bears it, bound to that node by its affinity, as the DaemonSet controller makes it."""
    tolerations = (*spec.tolerations, *(Toleration(key, "Exists") for key in TOLERATED))
    for node in nodes:
        found = NodeSpec(node.metadata.name, node.metadata.labels)
        if node_suits(spec, found) and admits(tolerations, node.spec.taints):
            term = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (found.name,)),))
            wanted = replace(
                (spec.affinity or Affinity()).node_affinity or NodeAffinity(), required=NodeSelector((term,))
            )
            affinity = replace(spec.affinity or Affinity(), node_affinity=wanted)
            yield replace(spec, affinity=affinity, tolerations=tolerations)
