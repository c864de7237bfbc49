"""Everything that a snapshot says, in a form that can be compared."""

from __future__ import annotations

from typing import Any

from stromboli.model.job import Job
from stromboli.model.snapshot import Snapshot

PARTS = ("allocated", "held", "request", "elastic", "inqueue", "admitted")


def named(snapshot: Snapshot, vector: Any) -> dict[str, int]:
    """A vector by name, zeros left out."""
    return {name: int(amount) for name, amount in zip(snapshot.axes.names, vector, strict=False) if amount}


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that a snapshot says, without the order in which columns and pods came."""
    table = snapshot.table
    columns = ("alloc", "used", "releasing", "pipelined", "requested")
    return {
        "nodes": {
            name: [named(snapshot, getattr(table, column)[:, row]) for column in columns]
            + table.nonzero[:, row].tolist()
            for row, name in enumerate(table.statics.names)
        },
        "specs": table.statics.specs,
        "on nodes": [sorted((key, task.status) for key, task in tasks.items()) for tasks in snapshot.node_tasks],
        "jobs": [(uid, job_picture(snapshot, job)) for uid, job in snapshot.jobs.items()],
        "queues": list(snapshot.queues.items()),
        "queueless": list(snapshot.queueless.items()),
        "sums": {
            name: ([named(snapshot, getattr(sums, part)) for part in PARTS], sums.jobs)
            for name, sums in snapshot.queue_sums.items()
        },
        "quotas": {namespace: quotas for namespace, quotas in snapshot.quotas.items() if quotas},
        "namespaces": dict(snapshot.namespace_labels),
    }


def job_picture(snapshot: Snapshot, job: Job) -> Any:
    sums = [named(snapshot, getattr(job.sums, part)) for part in ("allocated", "held", "request", "total")]
    index = {status: sorted(members) for status, members in job.index.items()}
    return job.facts.group, job.phase, job.priority, job.queue, sums, index
