"""Kubernetes objects as the importers of traces write them: plain dicts, the way YAML manifests hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Final, TypeAlias

from stromboli.api.kinds import KINDS
from stromboli.api.scheduling import POD_GROUP_PENDING
from stromboli.model.names import CPU, EPHEMERAL_STORAGE, GPU, GROUP_NAME, HOSTNAME, MEMORY, PODS, SCHEDULER_NAME

Manifest: TypeAlias = dict[str, object]

START: Final = datetime(2023, 1, 1, tzinfo=UTC)
"""The moment that second 0 of every trace is given."""

GPU_MODEL: Final = "nvidia.com/gpu.product"
"""Label of a node: its GPU model, under the key that NVIDIA's feature discovery sets on real clusters."""

RDMA: Final = "rdma/hca"
"""Extended resource of the network card that does remote direct memory access."""

PODS_PER_NODE: Final = 110
"""Kubernetes' default limit; the traces have none."""

CREATION_TIME: Final = "stromboli.io/creation-time"
SCHEDULED_TIME: Final = "stromboli.io/scheduled-time"
DELETION_TIME: Final = "stromboli.io/deletion-time"
"""Annotations of a pod: seconds since the trace's start; absent where the trace has none."""
RECORDED_PHASE: Final = "stromboli.io/recorded-phase"
"""Annotation of a pod: the phase it had when the trace was taken."""
MAX_PER_NODE: Final = "stromboli.io/max-instances-per-node"
"""Annotation of a pod: how many of its application's instances one node may hold."""


def timestamp(seconds: int) -> str:
    """RFC 3339 text of a moment given in seconds since the trace's start."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def cores(amount: Fraction) -> str:
    """Quantity of so many cores, rounded up to thousandths."""
    return str(amount) if amount.denominator == 1 else f"{ceil(amount * 1000)}m"


def gibibytes(amount: Fraction) -> str:
    """Quantity of so many GiB in the largest unit that is exact: Gi, Mi, or bytes rounded up."""
    if amount.denominator == 1:
        return f"{amount}Gi"
    mebibytes = amount * 1024
    return f"{mebibytes}Mi" if mebibytes.denominator == 1 else str(ceil(amount * 2**30))


def node(name: str, model: str, resources: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Manifest:
    """A Node with its hostname label, its GPU model (none when empty) and these allocatable resources."""
    room = {**resources, PODS: str(PODS_PER_NODE)}
    labels = {HOSTNAME: name, **({GPU_MODEL: model} if model else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, **({"annotations": dict(annotations)} if annotations else {})},
        "status": {"capacity": room, "allocatable": room},
    }


def queue(name: str) -> Manifest:
    """A Queue of weight 1."""
    return {
        "apiVersion": KINDS["Queue"].api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }


def priority_class(name: str, value: int) -> Manifest:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def pod_group(name: str, line: int, created: int, spec: Mapping[str, object]) -> Manifest:
    """A PodGroup; `line` (of its first row) and `created` (seconds) place it in the trace's order."""
    return {
        "apiVersion": KINDS["PodGroup"].api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", **origin(line, created)},
        "spec": dict(spec),
        "status": {"phase": POD_GROUP_PENDING},
    }


def origin(line: int, created: int) -> Manifest:
    """The uid and creationTimestamp: schedulers order by time, then uid, so a uid by line keeps the trace's order."""
    return {"uid": f"trace-{line:08d}", "creationTimestamp": timestamp(created)}


def pod(
    name: str,
    line: int,
    times: Mapping[str, int | None],
    annotations: Mapping[str, str],
    spec: Mapping[str, object],
    requests: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """A pending Pod with one container.

    `times` are the three times of the trace in seconds by annotation, `annotations` its others (the PodGroup's among
    them), `spec` what its spec says besides the container, `requests` quantities by resource; zeros are left out, and
    extended resources are stated as limits too, as Kubernetes demands.
    """
    stated = {key: str(seconds) for key, seconds in times.items() if seconds is not None}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            **origin(line, times[CREATION_TIME] or 0),
            **({"labels": dict(labels)} if labels else {}),
            "annotations": {**annotations, **stated},
        },
        "spec": {"schedulerName": SCHEDULER_NAME, **spec, "containers": [container(requests)]},
        "status": {"phase": "Pending"},
    }


def container(requests: Mapping[str, str]) -> Manifest:
    """The one container of a pod; the image is never run."""
    wanted = {resource: amount for resource, amount in requests.items() if amount.rstrip("mMGi") != "0"}
    limits = {
        resource: amount for resource, amount in wanted.items() if resource not in (CPU, MEMORY, EPHEMERAL_STORAGE)
    }
    resources = {"requests": wanted, **({"limits": limits} if limits else {})}
    return {"name": "main", "image": "pause", "resources": resources}


def membership(group: str) -> dict[str, str]:
    """The annotation that makes a pod a member of a PodGroup."""
    return {GROUP_NAME: group}


def on_gpu_models(models: Sequence[str]) -> Manifest:
    """Part of a pod's spec: only nodes with one of these GPU models; nothing when there are none."""
    if not models:
        return {}
    expression = {"key": GPU_MODEL, "operator": "In", "values": list(models)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def one_per_node(label: str, value: str) -> Manifest:
    """Part of a pod's spec: no two pods with this label on a node."""
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": HOSTNAME}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def gpus(count: int) -> dict[str, str]:
    """So many whole GPUs; nothing for none."""
    return {GPU: str(count)} if count else {}
