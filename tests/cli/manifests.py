"""Small manifests for the tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Obj = dict[str, Any]

CHART = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""The configuration of the reference's chart."""


def node(name: str, cpu: str = "4", memory: str = "8Gi", **more: Any) -> Obj:
    """A node; ``labels`` and ``taints`` in ``more``, everything else there is a resource."""
    labels, taints = more.pop("labels", {}), more.pop("taints", [])
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def queue(name: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **{k: v for k, v in spec.items() if k != "state"}},
        "status": {"state": spec["state"]} if "state" in spec else {},
    }


def group(
    name: str, members: int = 1, queue: str = "default", status: Mapping[str, Any] | None = None, **spec: Any
) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"minMember": members, "queue": queue, **spec},
        "status": dict(status or {}),
    }


def pod(name: str, group: str = "", cpu: str = "1", memory: str = "1Gi", node: str = "", **spec: Any) -> Obj:
    """A pod; with ``cpu`` empty it requests nothing.  ``deleted`` marks it as ending."""
    metadata: Obj = {"name": name, "namespace": "ns"}
    if group:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
    if spec.pop("deleted", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    requests = {"cpu": cpu, "memory": memory} if cpu else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def gang(name: str, count: int, queue: str = "default", members: int | None = None, **pods: Any) -> list[Obj]:
    """A PodGroup and its pods."""
    spec = pods.pop("group", {})
    first = group(name, count if members is None else members, queue, **spec)
    return [first, *(pod(f"{name}-{number}", name, **pods) for number in range(count))]


def write(directory: Path, objects: Iterable[Obj], name: str = "cluster.json") -> str:
    """The objects as a List in a file; its path."""
    path = directory / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), encoding="utf-8")
    return str(path)
