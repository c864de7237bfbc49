"""What is applied to a cluster so that Stromboli schedules it: everything that ``stromboli manifests`` prints.

Namespace, ConfigMap and Leases bear the names that Volcano's installation uses, so that a cluster which has them keeps
its configuration, and so that the two never write at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stromboli.crds.manifests import definitions
from stromboli.live.permissions import CONTROLLING, LEADING, SCHEDULING, merged, rules

Manifest = Mapping[str, object]

NAMESPACE: Final = "volcano-system"
NAME: Final = "stromboli"
CONFIG_MAP: Final = "volcano-scheduler-configmap"
CONFIG_KEY: Final = "volcano-scheduler.conf"
CONFIG_FOLDER: Final = "/volcano.scheduler"
METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 11251
REPLICAS: Final = 2
USER: Final = 65532
"""Nobody in particular: not root."""
CONFIGURATION: Final = """\
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
"""The configuration that a new installation begins with; Volcano's own."""


class Parts(NamedTuple):
    """What differs between installations; ``config`` is a configuration's text."""

    image: str
    namespace: str = NAMESPACE
    config: str = CONFIGURATION
    crds: bool = True


def manifests(parts: Parts) -> list[Manifest]:
    """All objects in the order in which they may be applied."""
    kinds: list[Manifest] = list(definitions()) if parts.crds else []
    return [
        *kinds,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": parts.namespace}},
        _object("v1", "ServiceAccount", parts),
        *_access(parts),
        {**_object("v1", "ConfigMap", parts, CONFIG_MAP), "data": {CONFIG_KEY: parts.config}},
        {**_object("apps/v1", "Deployment", parts), "spec": _deployment(parts)},
        {**_object("v1", "Service", parts), "spec": _service()},
        {**_object("policy/v1", "PodDisruptionBudget", parts), "spec": _budget()},
    ]


def _labels() -> dict[str, str]:
    return {"app.kubernetes.io/name": NAME}


def _object(api_version: str, kind: str, parts: Parts, name: str = NAME) -> dict[str, object]:
    metadata = {"name": name, "namespace": parts.namespace, "labels": _labels()}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _access(parts: Parts) -> list[Manifest]:
    """The least that the scheduler and the controllers need: in the cluster, and in their own namespace."""
    api, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": parts.namespace}
    found: list[Manifest] = []
    for kind, grants in (("ClusterRole", merged(SCHEDULING, CONTROLLING)), ("Role", list(LEADING))):
        role = _object(api, kind, parts)
        binding = _object(api, f"{kind}Binding", parts)
        if kind == "ClusterRole":
            for made in (role, binding):
                made["metadata"] = {"name": NAME, "labels": _labels()}
        reference = {"apiGroup": group, "kind": kind, "name": NAME}
        found += [{**role, "rules": rules(grants)}, {**binding, "roleRef": reference, "subjects": [subject]}]
    return found


def _deployment(parts: Parts) -> Manifest:
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(parts)],
        "volumes": [{"name": "config", "configMap": {"name": CONFIG_MAP}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _labels()},
            }
        ],
    }
    return {
        "replicas": REPLICAS,
        "selector": {"matchLabels": _labels()},
        "template": {"metadata": {"labels": _labels()}, "spec": pod},
    }


def _container(parts: Parts) -> Manifest:
    arguments = [
        "serve",
        "--controllers",
        f"--scheduler-conf={CONFIG_FOLDER}/{CONFIG_KEY}",
        f"--leader-elect-resource-namespace={parts.namespace}",
        "--enable-metrics",
        f"--listen-address=:{METRICS_PORT}",
        "--enable-healthz",
        f"--healthz-address=:{HEALTH_PORT}",
        "--log-format=json",
        "-v=2",
    ]
    return {
        "name": NAME,
        "image": parts.image,
        "args": arguments,
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 60},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
    }


def _service() -> Manifest:
    return {
        "selector": _labels(),
        "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
    }


def _budget() -> Manifest:
    return {"minAvailable": 1, "selector": {"matchLabels": _labels()}}
