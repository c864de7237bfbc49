"""ReplicaSets: as many pods as they ask for."""

from __future__ import annotations

from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.server.controllers.workloads.objects import (
    MOST_AT_ONCE,
    PODS,
    Objects,
    dispensable,
    is_active,
    is_ready,
    pod_parts,
    template_of,
    without_zeros,
)

REPLICA_SETS: Final = ("apps", "replicasets")


def sync(objects: Objects, replica_set: Body) -> None:
    """Make or delete pods until there are as many as asked for, and count them.  Raises ApiFailure."""
    pods = [pod for pod in objects.owned(replica_set) if is_active(pod)]
    try:
        if not meta(replica_set).get("deletionTimestamp"):
            _scale(objects, replica_set, pods)
    finally:
        _count(objects, replica_set)


def _scale(objects: Objects, replica_set: Body, pods: list[Body]) -> None:
    missing = part(replica_set, "spec", "replicas") - len(pods)
    metadata, spec = pod_parts(template_of(replica_set))
    metadata["generateName"] = f"{meta(replica_set)['name']}-"
    for _ in range(min(missing, MOST_AT_ONCE)):
        objects.create(PODS, replica_set, metadata, spec=spec)
    youngest_first = pods[::-1]
    for pod in sorted(youngest_first, key=dispensable)[: max(-missing, 0)]:
        objects.delete(PODS, pod)


def _count(objects: Objects, replica_set: Body) -> None:
    current = objects.get(REPLICA_SETS, meta(replica_set)["namespace"], meta(replica_set)["name"])
    if current is None:
        return
    pods = [pod for pod in objects.owned(current) if is_active(pod)]
    ready = sum(map(is_ready, pods))
    counts = without_zeros(fullyLabeledReplicas=len(pods), readyReplicas=ready, availableReplicas=ready)
    status = {"replicas": len(pods), **counts, "observedGeneration": meta(current).get("generation", 1)}
    objects.set_status(REPLICA_SETS, current, status)
