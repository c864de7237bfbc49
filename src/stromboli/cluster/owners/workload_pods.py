"""The pods that Kubernetes' own controllers make of a workload, for plans from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.kinds import BatchJob, Deployment, NamespacedMetadata, OwnerReference, Pod, PodStatus, ReplicaSet
from stromboli.cluster.kinds import StatefulSet as StatefulSetKind
from stromboli.errors import ManifestError
from stromboli.model.names import POD_PENDING
from stromboli.model.resources.request import with_default_requests

MOST_PODS: Final = 1_000_000
"""A workload with more pods than this is refused."""

Whose = tuple[str, str, str, str]
"""API version, kind, namespace and name of an owner."""

_WIRE: Final[dict[type, tuple[str, str]]] = {
    Deployment: ("apps/v1", "Deployment"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSetKind: ("apps/v1", "StatefulSet"),
    BatchJob: ("batch/v1", "Job"),
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


def pods_of(workload: ReplicaSet) -> Iterator[Pod]:
    """Its pods, as the API server completes them; those of what has no uid are told apart by names."""
    template, meta = workload.spec.template, workload.metadata
    if template is None:
        return
    version, kind, _, name = whose(workload)
    owner = OwnerReference(version, kind, name, meta.uid or f"{kind.lower()}-{name}", controller=True)
    spec = with_default_requests(template.spec)
    for number in range(size_of(workload)):
        metadata = NamespacedMetadata(
            name=f"{name}-{number}",
            namespace=meta.namespace,
            creation_timestamp=meta.creation_timestamp,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(owner,),
        )
        yield Pod(metadata=metadata, spec=spec, status=PodStatus(phase=POD_PENDING))
