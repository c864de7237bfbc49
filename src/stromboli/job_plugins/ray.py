"""``ray``: the head starts a Ray cluster, and workers join it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stromboli.job_plugins.hosts import host, selector
from stromboli.job_plugins.plugin import AddPorts, Edit, JobPlugin, Place, SetCommand, Wanted, flag, service
from stromboli.model.names import TASK_SPEC


class Ray(JobPlugin):
    """Commands of head and workers, the head's ports, and a Service that leads to them."""

    name = "ray"
    head = flag("head", "head")
    head_container = flag("headContainer", "head")
    worker = flag("worker", "worker")
    worker_container = flag("workerContainer", "worker")
    port = flag("port", 6379)
    dashboard = flag("dashboardPort", 8265)
    client = flag("clientPort", 10001)

    @property
    def _ports(self) -> tuple[tuple[str, int], ...]:
        return ("gcs", self.port), ("dashboard", self.dashboard), ("client-server", self.client)

    def problem(self) -> str:
        """A job without a head."""
        missing = self.task(self.head) is None
        return f"job {self.job.metadata.name} doesn't have head task {self.head[:63]}" if missing else ""

    def objects(self) -> Iterator[Wanted]:
        """The Service of the head."""
        ports = [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in self._ports]
        labels = {**selector(self.job), TASK_SPEC: self.head}
        yield service(f"{self.job.metadata.name}-head-svc", {"selector": labels, "ports": ports})

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """How the container of Ray starts."""
        head = self.task(self.head)
        if place.task.name == self.head:
            entries = tuple({"name": name, "containerPort": port} for name, port in self._ports)
            yield AddPorts(entries, container=self.head_container)
            yield _starts(
                self.head_container,
                f"ray start --head --block --dashboard-host=0.0.0.0 --port={self.port}"
                f" --dashboard-port={self.dashboard} --ray-client-server-port={self.client}",
            )
        elif place.task.name == self.worker and head is not None:
            address = f"{host(self.job, head, 0)}:{self.port}"
            yield _starts(self.worker_container, f"ray start --block --address={address}")


def _starts(container: str, command: str) -> Edit:
    return SetCommand(container, ("sh", "-c", command))
