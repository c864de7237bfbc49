"""GPU workloads as users write them (limits alone), and the configurations under which each must start."""

from __future__ import annotations

from typing import Any, Final

Body = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
RDMA: Final = "rdma/hca"

_POLICY: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, %s, {name: nodeorder}, {name: resourcequota}]
"""
CONFIGURATIONS: Final = {
    "built in": "",
    "proportion and resourcequota": _POLICY % "{name: proportion}",
    "capacity and resourcequota": _POLICY % "{name: capacity}",
    "queue tree": _POLICY % "{name: capacity, enableHierarchy: true}",
}

QUEUE: Final[Body] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "gpus"},
    "spec": {"weight": 1, "capability": {"cpu": "16", "memory": "64Gi", GPU: "7", RDMA: "7"}},
}  # fmt: skip
QUOTA: Final[Body] = {
    "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"},
    "spec": {"hard": {f"requests.{GPU}": "7", "pods": "10", "limits.cpu": "10", "limits.memory": "20Gi"}},
}  # fmt: skip


def pod_spec(gpus: int) -> Body:
    """A pod that limits its resources and requests nothing, as most manifests of GPU jobs do."""
    limits = {"cpu": "1", "memory": "1Gi", GPU: gpus, RDMA: 1}
    container = {"name": "main", "image": "busybox", "command": ["sleep", "60"], "resources": {"limits": limits}}
    return {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container]}


def job(name: str, replicas: int, gpus: int) -> Body:
    """A Volcano Job whose pods want so many GPUs each."""
    task = {"name": "worker", "replicas": replicas, "template": {"spec": pod_spec(gpus)}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": replicas, "schedulerName": "volcano", "queue": "gpus", "tasks": [task]},
    }  # fmt: skip


def pod(name: str, gpus: int, owner: Body | None = None) -> Body:
    """A pod that names no PodGroup; ``owner`` is its ReplicaSet."""
    meta: Body = {
        "name": name, "namespace": "default", "annotations": {"scheduling.volcano.sh/queue-name": "gpus"},
    }  # fmt: skip
    if owner:
        kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
        meta["ownerReferences"] = [{**kind, "name": owner["name"], "uid": owner["uid"], "controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(gpus)}


def replica_set(name: str) -> Body:
    """The ReplicaSet of a Deployment; nothing but its pods matters here."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod_spec(1), "restartPolicy": "Always"}}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template},
    }  # fmt: skip
