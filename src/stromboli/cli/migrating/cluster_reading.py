"""A cluster's objects as files, as far as the change of the scheduler is about them; only lists are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from stromboli.api.kinds import KINDS
from stromboli.errors import ApiError
from stromboli.kube.client import Client
from stromboli.kube.resources import RESOURCES, Resource, plain
from stromboli.model.names import NAMESPACE

ENDING: Final = ".cluster.json"
"""How names of the files end."""

SCHEDULED: Final = (
    "Namespace", "PriorityClass", "ResourceQuota", "Queue", "Node", "HyperNode", "PodDisruptionBudget", "NodeShard",
    "PodGroup", "Pod",
)  # fmt: skip
"""Kinds that scheduling reads."""

_ADMISSION: Final = "admissionregistration.k8s.io/v1"

_OURS: Final = tuple(KINDS[kind] for kind in ("Job", "CronJob", "JobFlow", "JobTemplate"))
OTHERS: Final = tuple(
    Resource(version, plural, kind, namespaced, plain)
    for version, plural, kind, namespaced in (
        ("apps/v1", "deployments", "Deployment", True),
        ("apps/v1", "daemonsets", "DaemonSet", True),
        ("v1", "configmaps", "ConfigMap", True),
        ("coordination.k8s.io/v1", "leases", "Lease", True),
        *((row.api_version, row.plural, row.kind, row.namespaced) for row in _OURS),
        (_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False),
        (_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False),
    )
)

OWN: Final = frozenset({"ConfigMap", "Lease"})
"""Kinds that are read in the scheduler's namespace alone: others' are none of our business."""


async def read_into(client: Client, folder: Path, namespace: str = NAMESPACE) -> None:
    """Write a list of each kind into ``folder``; kinds that the server has not are left out.

    Raises ApiError where something may not be read, and Unreachable.
    """
    for resource in (*(RESOURCES[kind].read_as(plain) for kind in SCHEDULED), *OTHERS):
        try:
            found = await client.list_all(resource, namespace if resource.kind in OWN else "")
        except ApiError as error:
            if not error.not_found:
                raise
            continue
        items = [{**one, "apiVersion": resource.api_version, "kind": resource.kind} for one in found]
        body = {"apiVersion": "v1", "kind": "List", "items": items}
        (folder / f"{resource.plural}{ENDING}").write_bytes(msgspec.json.encode(body))
