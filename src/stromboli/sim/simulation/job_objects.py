"""The objects of a simulated job: its PodGroup and its pods, as a controller would make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.kinds import KINDS
from stromboli.api.scheduling import POD_GROUP_PENDING, QUEUE_OPEN
from stromboli.cluster.body import Body
from stromboli.model.names import GROUP_NAME, SCHEDULER_NAME
from stromboli.sim.simulation.workload import SimJob, text_of
from stromboli.sim.traces.trace_objects import container


def objects_of(job: SimJob, number: int, created: str) -> Iterator[dict[str, Any]]:
    """The PodGroup and the pods of a job; uids keep the order of jobs that come in the same second."""
    uid = f"job-{number:08d}"
    yield _group_of(job, uid, created)
    urgent = {"priorityClassName": job.priority_class} if job.priority_class else {}
    index = 0
    for some in job.pods:
        containers = [container(some.requests)]
        spec = {"schedulerName": SCHEDULER_NAME, **urgent, "containers": containers, **some.spec}
        for _ in range(some.count):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **some.metadata,
                    "name": f"{job.name}-{index}",
                    "namespace": job.namespace,
                    "uid": f"{uid}-{index:05d}",
                    "creationTimestamp": created,
                    "annotations": {**some.metadata.get("annotations", {}), GROUP_NAME: job.name},
                },
                "spec": spec,
                "status": {"phase": "Pending"},
            }
            index += 1


def _group_of(job: SimJob, uid: str, created: str) -> dict[str, Any]:
    more = job.group
    spec = {
        "minMember": job.least or job.size,
        "queue": job.queue,
        **({"priorityClassName": job.priority_class} if job.priority_class else {}),
        "minResources": {name: text_of(amount) for name, amount in job.asks().items()},
        **more.get("spec", {}),
    }
    named = {"name": job.name, "namespace": job.namespace, "uid": uid, "creationTimestamp": created}
    return {
        "apiVersion": KINDS["PodGroup"].api_version,
        "kind": "PodGroup",
        "metadata": {**more.get("metadata", {}), **named},
        "spec": spec,
        "status": {"phase": POD_GROUP_PENDING, **more.get("status", {})},
    }


def unplaced(pod: dict[str, Any]) -> Body:
    """The pod as it comes again: without the node on which it stood from the beginning."""
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}


def opened(body: dict[str, Any]) -> Body:
    """An object as it stands once controllers have seen it: a Queue is open."""
    return {**body, "status": {"state": QUEUE_OPEN, **body.get("status", {})}} if body["kind"] == "Queue" else body
