"""``pytorch``: containers learn where the master is, how many they are, and their rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stromboli.api.batch import Task
from stromboli.job_plugins.hosts import host
from stromboli.job_plugins.plugin import AddEnv, AddInitContainer, AddPorts, Edit, JobPlugin, Place, flag

_WAIT: Final = """\
echo "Waiting for master node {address}:{port} to be ready..."
TIMEOUT={timeout}
ELAPSED=0
until {{ nc -z {address} {port} || echo > /dev/tcp/{address}/{port}; }} 2>/dev/null; do
  if [ $ELAPSED -ge $TIMEOUT ]; then
    echo "Timeout waiting for master after ${{TIMEOUT}} seconds"
    exit 1
  fi
  echo "Master not ready yet, retrying in 2 seconds... (elapsed: ${{ELAPSED}}s)"
  sleep 2
  ELAPSED=$((ELAPSED + 2))
done
echo "Master node is ready!\""""


class Pytorch(JobPlugin):
    """``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE`` and ``RANK``; workers may wait for the master."""

    name = "pytorch"
    master = flag("master", "master")
    worker = flag("worker", "worker")
    port = flag("port", 23456)
    waits = flag("wait-master-enabled", False)
    timeout = flag("wait-master-timeout", 300)
    image = flag("wait-master-image", "busybox:1.36.1")

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """Port and variables; nothing in a job without a master."""
        master = self.task(self.master)
        if master is None:
            return
        address, task = str(host(self.job, master, 0)), place.task.name
        yield AddPorts(({"name": "pytorchjob-port", "containerPort": self.port},))
        yield AddEnv(tuple({"name": key, "value": text} for key, text in self._variables(master, place)), init=False)
        if task == self.worker and self.waits:
            script = _WAIT.format(address=address, port=self.port, timeout=self.timeout)
            yield AddInitContainer({"name": "wait-for-master", "image": self.image, "command": ["sh", "-c", script]})

    def _variables(self, master: Task, place: Place) -> Iterator[tuple[str, str]]:
        worker = self.task(self.worker)
        yield "MASTER_ADDR", str(host(self.job, master, 0))
        yield "MASTER_PORT", str(self.port)
        yield "WORLD_SIZE", str(master.replicas + (worker.replicas if worker else 0))
        if place.task.name == self.worker:
            yield "RANK", str(place.index + 1)
        elif place.task.name == self.master:
            yield "RANK", "0"
