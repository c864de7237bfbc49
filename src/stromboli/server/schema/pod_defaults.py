"""What the API server fills into a pod: defaults of its fields, priority, tolerations, its class of service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stromboli.cluster.body import Body

_SPEC: Final[Body] = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_CONTAINERS: Final = ("initContainers", "containers")
_CONTAINER: Final[Body] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: Final[Body] = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_HTTP: Final[Body] = {"path": "/", "scheme": "HTTP"}
_PATIENCE: Final = 300
"""Seconds for which a pod tolerates that its node is not ready, where it says nothing else."""
_OUTAGES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MODES: Final = {"configMap": 420, "secret": 420, "projected": 420, "downwardAPI": 420}
"""Sources of volumes whose files have a default mode (0644)."""


def with_pod_defaults(spec: Mapping[str, Any]) -> Body:
    """A pod's spec with the values of fields that it leaves out."""
    result = {**_SPEC, **spec}
    for name in _CONTAINERS:
        if isinstance(spec.get(name), list):
            result[name] = [_container(one) for one in spec[name]]
    if "serviceAccountName" in spec:
        result["serviceAccount"] = spec["serviceAccountName"]
    if spec.get("volumes"):
        result["volumes"] = [_volume(one) for one in spec["volumes"]]
    return result


def _container(container: Body) -> Body:
    result = {"imagePullPolicy": _pull_policy(container.get("image", "")), **_CONTAINER, **container}
    for name in _PROBES:
        if name in container:
            result[name] = {**_PROBE, **_handler(container[name])}
    if "lifecycle" in container:
        hooks = {name: _handler(hook) if name in _HOOKS else hook for name, hook in container["lifecycle"].items()}
        result["lifecycle"] = hooks
    return result


def _handler(handler: Body) -> Body:
    return {**handler, "httpGet": {**_HTTP, **handler["httpGet"]}} if "httpGet" in handler else handler


def with_requests(spec: Mapping[str, Any]) -> Body:
    """A pod's spec that requests what it limits where it says nothing else; templates stay as they are."""
    parts = {name: [_requesting(one) for one in spec[name]] for name in _CONTAINERS if spec.get(name)}
    return {**spec, **parts}


def _requesting(container: Body) -> Body:
    resources = container.get("resources", {})
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **resources.get("requests", {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _pull_policy(image: str) -> str:
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"


def _volume(volume: Body) -> Body:
    for source, mode in _MODES.items():
        if source in volume:
            return {**volume, source: {"defaultMode": mode, **volume[source]}}
    return volume


def with_outage_tolerations(spec: Mapping[str, Any]) -> Body:
    """A pod's spec that tolerates a node's outage for a while, unless it says how long it does."""
    tolerations = list(spec.get("tolerations") or ())
    for key in _OUTAGES:
        if not any(one.get("key") in (key, None) and one.get("effect") in ("NoExecute", None) for one in tolerations):
            tolerations.append(
                {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": _PATIENCE}
            )
    return {**spec, "tolerations": tolerations}


def class_of_service(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, from the requests and limits of cpu and memory."""
    amounts = [_amounts(one) for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    guaranteed = all(len(limits) == 2 and requests == limits for requests, limits in amounts)
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(container: Body) -> tuple[Body, Body]:
    resources = container.get("resources", {})
    requests, limits = (
        {name: resources.get(kind, {}).get(name) for name in ("cpu", "memory")} for kind in ("requests", "limits")
    )
    return _set(requests), _set(limits)


def _set(amounts: Body) -> Body:
    return {name: amount for name, amount in amounts.items() if amount not in (None, "0")}
