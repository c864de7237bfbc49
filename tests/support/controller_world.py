"""A cluster with controllers, a scheduler and kubelets on a server in memory, in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options
from tests.support.live_world import Json, LiveWorld
from tests.support.memory_server import merged


def job(name: str, replicas: int, **spec: Any) -> Json:
    """A job as admission leaves it."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    task = {
        "name": "t",
        "replicas": replicas,
        "minAvailable": replicas,
        "template": {"spec": {"containers": [container]}},
    }
    spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "maxRetry": 3, **spec}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"tasks": [task], **spec}}


class ControllerWorld(LiveWorld):
    """A cluster with controllers, a scheduler, kubelets and Kubernetes' own garbage collector."""

    def __init__(self, on: str = "memory") -> None:
        super().__init__(on=on)
        self.controllers = self.controlling()

    def controlling(self, **options: Any) -> Controllers:
        client = Client(self.server, dice=random.Random(5), agent="stromboli-controllers")
        return Controllers(client, Options(**options), observer=self.told, clock=self.clock)

    async def go(self, *, scheduling: bool = True) -> asyncio.Task[None]:
        """Start everything and let the lists be read."""
        task = asyncio.create_task(self.controllers.run())
        self.tasks += [task, asyncio.create_task(self.kubelets())]
        if scheduling:
            self.start(self.scheduler())
        await asyncio.sleep(3)
        return task

    async def kubelets(self) -> None:
        """Pods that were asked to end do so in time; what belongs to nothing goes."""
        while True:
            await asyncio.sleep(0.5)
            for pod in self.server.all("pods"):
                meta = pod["metadata"]
                if meta.get("deletionTimestamp") or self.is_orphan(pod):
                    self.server.drop("pods", meta["name"], meta["namespace"])
            for group in self.server.all("podgroups"):
                if self.is_orphan(group):
                    self.server.drop("podgroups", group["metadata"]["name"], "ns")

    def is_orphan(self, found: Json) -> bool:
        owners = found["metadata"].get("ownerReferences", [])
        jobs = {one["metadata"]["uid"] for one in self.server.all("jobs")}
        return any(owner["kind"] == "Job" and owner["uid"] not in jobs for owner in owners)

    def phase(self, name: str) -> str:
        state = self.server.get("jobs", name, "ns").get("status", {}).get("state", {})
        return str(state.get("phase", ""))

    def end_pods(self, job: str, phase: str, code: int = 0) -> None:
        """The containers of a job's pods end."""
        for pod in self.server.all("pods"):
            if pod["metadata"]["name"].startswith(f"{job}-t-") and pod["status"].get("phase") == "Running":
                ended = {"state": {"terminated": {"exitCode": code}}}
                self.server.put("pods", merged(pod, {"status": {"phase": phase, "containerStatuses": [ended]}}))

    def command(self, action: str, kind: str, name: str) -> None:
        target = {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": ""}
        meta = {"name": f"c{self.server.version}", "namespace": "ns"}
        self.server.put("commands", {"metadata": meta, "action": action, "target": target})
