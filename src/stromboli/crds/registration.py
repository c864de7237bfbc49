"""Webhook configurations: how an API server is told to ask the webhook server, an object for each path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from stromboli.api.kinds import PODS, RESOURCES
from stromboli.crds.admission.paths import Path
from stromboli.crds.schema import Schema
from stromboli.model.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_ALLOCATION_GATE, SCHEDULER_NAME

API_VERSION: Final = "admissionregistration.k8s.io/v1"
MUTATING_KIND: Final = "MutatingWebhookConfiguration"
VALIDATING_KIND: Final = "ValidatingWebhookConfiguration"
SERVICE_PORT: Final = 443
Labels: TypeAlias = Any
"""Labels of an object, or what makes them in a template."""

SECONDS: Final = 10
"""How long an API server waits for an answer."""

SECONDS_FOR_PODS: Final = 2
"""The same for pods, which are created without one in the end."""

_NOTES: Final = "has(object.metadata.annotations)"


def pods_of(scheduler: str) -> str:
    """That a pod is one of a scheduler's, in CEL."""
    return f"object.spec.schedulerName in ['{scheduler}']"


class Registration(NamedTuple):
    """How the webhook server is reached, and whose objects it is not asked about.

    ``url`` is its address without a path, where no Service leads to it.  ``excluded`` are namespaces; ``ours`` says in
    CEL which pods are judged; ``groups`` that any pod may belong to a resource group.
    """

    service: str
    namespace: str
    url: str = ""
    excluded: Sequence[str] = ("kube-system",)
    ours: str = pods_of(SCHEDULER_NAME)
    groups: bool = False


def configurations(
    paths: Iterable[Path], where: Registration, labels: Labels | None = None
) -> list[Mapping[str, object]]:
    """The configurations of ``paths``, without authorities: the webhook server writes those."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": MUTATING_KIND if path.is_mutating else VALIDATING_KIND,
            "metadata": {"name": path.configuration, **({"labels": labels} if labels else {})},
            "webhooks": [_webhook(path, where)],
        }
        for path in paths
    ]


def _webhook(path: Path, where: Registration) -> Schema:
    """The webhook of ``path``.

    Pods are created even if the webhook does not answer; other objects fail, as unchecked ones may harm other users.
    """
    group, version, plural = path.place
    about_pods = path.resource == PODS
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "scope": "*"}
    return {
        "name": path.webhook,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(path, where),
        "rules": [{**rule, "operations": list(path.operations)}],
        "failurePolicy": "Ignore" if about_pods else "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": SECONDS_FOR_PODS if about_pods else SECONDS,
        "objectSelector": {},
        "namespaceSelector": _namespaces(path, where),
        **({"reinvocationPolicy": "Never"} if path.is_mutating else {}),
        **({"matchConditions": conditions} if (conditions := _conditions(path, where)) else {}),
    }


def _client(path: Path, where: Registration) -> Schema:
    if where.url:
        return {"url": where.url.rstrip("/") + path.path}
    service = {"name": where.service, "namespace": where.namespace, "path": path.path, "port": SERVICE_PORT}
    return {"service": service}


def _namespaces(path: Path, where: Registration) -> Schema:
    kind = RESOURCES.get(path.resource)
    if kind is not None and not kind.namespaced:
        return {}
    excluded = list(dict.fromkeys((where.namespace, *where.excluded)))
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}]}


def _conditions(path: Path, where: Registration) -> list[Schema]:
    """Which pods the server is asked about: those that it may have something to say to."""
    if path.resource != PODS or (path.is_mutating and where.groups):
        return []
    if path.is_mutating:
        key = QUEUE_ALLOCATION_GATE
        asks = f"{_NOTES} && '{key}' in object.metadata.annotations && object.metadata.annotations['{key}'] == 'true'"
        return [{"name": "asks-for-the-gate", "expression": asks}]
    budgets = " || ".join(f"'{key}' in object.metadata.annotations" for key in (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE))
    return [
        {"name": "ours", "expression": where.ours},
        {"name": "has-a-budget", "expression": f"{_NOTES} && ({budgets})"},
    ]
