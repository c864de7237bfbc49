"""What is submitted: gangs with PodGroups of their own, single pods, Jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stromboli.kube.client import Client
from stromboli.kube.resources import JOBS, POD_GROUPS, PODS, Resource, nothing

NAMESPACE = "bench"
NAMESPACES: Resource[None] = Resource("v1", "namespaces", "Namespace", False, nothing)

Json = dict[str, Any]
Item = tuple[Resource[Any], Json]
Kind = Literal["gangs", "singles", "jobs"]


@dataclass(frozen=True)
class Load:
    """``groups`` gangs or Jobs of ``size`` pods each; ``backlog``: all there before the scheduler starts."""

    name: str
    kind: Kind
    groups: int
    size: int
    backlog: bool

    @property
    def pods(self) -> int:
        """How many pods there will be."""
        return self.groups * self.size

    def items(self) -> Iterator[Item]:
        """What is submitted, in order."""
        for number in range(self.groups):
            if self.kind == "jobs":
                yield JOBS, _job(number, self.size)
            else:
                yield from _gang(number, self.size)


def _template() -> Json:
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": amounts, "limits": amounts}}
    return {"schedulerName": "volcano", "containers": [container], "terminationGracePeriodSeconds": 0}


def _gang(number: int, size: int) -> Iterator[Item]:
    name = f"pg-{number}"
    least = {"cpu": str(size), "memory": f"{size}Gi"}
    spec = {"minMember": size, "queue": "default", "minResources": least}
    yield POD_GROUPS, _object("scheduling.volcano.sh/v1beta1", "PodGroup", name, spec)
    for index in range(size):
        annotations = {"scheduling.k8s.io/group-name": name}
        yield PODS, _object("v1", "Pod", f"{name}-{index}", _template(), annotations)


def _job(number: int, size: int) -> Json:
    template = {"spec": {**_template(), "restartPolicy": "OnFailure"}}
    task = {"name": "worker", "replicas": size, "minAvailable": size, "template": template}
    spec = {"schedulerName": "volcano", "minAvailable": size, "queue": "default", "maxRetry": 3, "tasks": [task]}
    return _object("batch.volcano.sh/v1alpha1", "Job", f"job-{number}", spec)


def _object(version: str, kind: str, name: str, spec: Json, annotations: dict[str, str] | None = None) -> Json:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


async def submit(client: Client, items: Sequence[Item], connections: int = 4) -> None:
    """Create all of them, in order, over a few connections.  Raises what the server answers."""
    waiting = iter(items)

    async def work() -> None:
        for resource, body in waiting:
            namespace = body["metadata"].get("namespace", "")
            await client.create(resource.read_as(nothing), body, namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(work())
