"""The commands that people issue to the controllers."""

from __future__ import annotations

from typing import Any, Final

from stromboli.api.batch import Job
from stromboli.api.fields import Resource
from stromboli.api.kinds import KINDS, Kind
from stromboli.api.scheduling import Queue

QUEUE_NAMESPACE: Final = "default"
"""Where commands to queues are put, which have no namespace themselves."""


def job_order(job: Job, action: str) -> dict[str, Any]:
    """A command to a job."""
    return _order(KINDS["Job"], job, action, job.metadata.namespace)


def queue_order(queue: Queue, action: str) -> dict[str, Any]:
    """A command to a queue."""
    return _order(KINDS["Queue"], queue, action, QUEUE_NAMESPACE)


def _order(kind: Kind, target: Resource, action: str, namespace: str) -> dict[str, Any]:
    row, meta = KINDS["Command"], target.metadata
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": row.api_version,
        "kind": row.kind,
        "metadata": {
            "generateName": f"{meta.name}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "action": action,
        "target": owner,
    }
