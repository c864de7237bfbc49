"""What is applied to a cluster so that Stromboli schedules it: everything that ``stromboli manifests`` prints.

Namespace, ConfigMap and Leases bear the names that Volcano's installation uses, so that a cluster which has them keeps
its configuration, and so that the two never write at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from stromboli.crds.manifests import definitions
from stromboli.live.proofs.guarding import guard
from stromboli.live.proofs.permissions import CONTROLLERS_OWN, CONTROLLING, SCHEDULER_OWN, SCHEDULING, Grant, rules
from stromboli.model.names import NAMESPACE

Manifest = Mapping[str, object]

NAME: Final = "stromboli"
CONFIG_MAP: Final = "volcano-scheduler-configmap"
CONFIG_KEY: Final = "volcano-scheduler.conf"
CONFIG_FOLDER: Final = "/volcano.scheduler"
METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 11251
REPLICAS: Final = 2
USER: Final = 65532
"""An unprivileged user: not root."""
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


class Component(NamedTuple):
    """One of the two programs, with an account of its own: ``granted`` in the cluster, ``own`` in its namespace.

    ``memory`` is what a container asks for and what it may take at most, in MiB: docs/cli.md has the measurements.
    """

    name: str
    command: Sequence[str]
    granted: Sequence[Grant]
    own: Sequence[Grant]
    memory: tuple[int, int]
    mounts: bool = False


SCHEDULER: Final = Component(
    f"{NAME}-scheduler",
    ("serve", f"--scheduler-conf={CONFIG_FOLDER}/{CONFIG_KEY}"),
    SCHEDULING,
    SCHEDULER_OWN,
    (512, 1536),
    mounts=True,
)
CONTROLLERS: Final = Component(f"{NAME}-controllers", ("controllers",), CONTROLLING, CONTROLLERS_OWN, (256, 1024))


class Parts(NamedTuple):
    """What differs between installations; ``config`` is a configuration's text."""

    image: str
    namespace: str = NAMESPACE
    config: str = CONFIGURATION
    crds: bool = True


def manifests(parts: Parts) -> list[Manifest]:
    """All objects in the order in which they may be applied."""
    kinds: list[Manifest] = list(definitions()) if parts.crds else []
    config = {**_object("v1", "ConfigMap", parts, CONFIG_MAP), "data": {CONFIG_KEY: parts.config}}
    return [
        *kinds,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": parts.namespace}},
        *guard(parts.namespace, SCHEDULER.name, _labels()),
        config,
        *_program(SCHEDULER, parts),
        *_program(CONTROLLERS, parts),
    ]


def _labels(one: Component | None = None) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": NAME,
        **({"app.kubernetes.io/component": one.name.removeprefix(f"{NAME}-")} if one is not None else {}),
    }


def _object(
    api_version: str, kind: str, parts: Parts, name: str = NAME, one: Component | None = None
) -> dict[str, object]:
    metadata = {"name": name, "namespace": parts.namespace, "labels": _labels(one)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _program(one: Component, parts: Parts) -> list[Manifest]:
    """All that one program needs."""

    def made(api_version: str, kind: str) -> dict[str, object]:
        return _object(api_version, kind, parts, one.name, one)

    return [
        made("v1", "ServiceAccount"),
        *_access(one, parts),
        {**made("apps/v1", "Deployment"), "spec": _deployment(one, parts)},
        {**made("v1", "Service"), "spec": _service(one)},
        {**made("policy/v1", "PodDisruptionBudget"), "spec": _budget(one)},
    ]


def _access(one: Component, parts: Parts) -> list[Manifest]:
    """The least that it needs: in the cluster, and in its own namespace."""
    api, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": one.name, "namespace": parts.namespace}
    found: list[Manifest] = []
    for kind, grants in (("ClusterRole", one.granted), ("Role", one.own)):
        role = _object(api, kind, parts, one.name, one)
        binding = _object(api, f"{kind}Binding", parts, one.name, one)
        if kind == "ClusterRole":
            for made in (role, binding):
                made["metadata"] = {"name": one.name, "labels": _labels(one)}
        reference = {"apiGroup": group, "kind": kind, "name": one.name}
        found += [{**role, "rules": rules(grants)}, {**binding, "roleRef": reference, "subjects": [subject]}]
    return found


def _deployment(one: Component, parts: Parts) -> Manifest:
    pod = {
        "serviceAccountName": one.name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(one, parts)],
        **({"volumes": [{"name": "config", "configMap": {"name": CONFIG_MAP}}]} if one.mounts else {}),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _labels(one)},
            }
        ],
    }
    return {
        "replicas": REPLICAS,
        "selector": {"matchLabels": _labels(one)},
        "template": {"metadata": {"labels": _labels(one)}, "spec": pod},
    }


def _container(one: Component, parts: Parts) -> Manifest:
    arguments = [
        *one.command,
        f"--leader-elect-resource-namespace={parts.namespace}",
        "--enable-metrics",
        f"--listen-address=:{METRICS_PORT}",
        "--enable-healthz",
        f"--healthz-address=:{HEALTH_PORT}",
        "--log-format=json",
        "-v=2",
    ]
    asked, most = one.memory
    mounts = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]
    return {
        "name": one.name,
        "image": parts.image,
        "args": arguments,
        "env": [{"name": "KUBE_POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 60},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": {"requests": {"cpu": "500m", "memory": f"{asked}Mi"}, "limits": {"memory": f"{most}Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **({"volumeMounts": mounts} if one.mounts else {}),
    }


def _service(one: Component) -> Manifest:
    return {
        "selector": _labels(one),
        "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
    }


def _budget(one: Component) -> Manifest:
    return {"minAvailable": 1, "selector": {"matchLabels": _labels(one)}}
