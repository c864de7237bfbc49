"""``mpi``: the master learns the workers' names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from stromboli.job_plugins.hosts import MOST_ENV, check_size, hosts
from stromboli.job_plugins.plugin import AddEnv, AddPorts, Edit, JobPlugin, Place, flag


class Mpi(JobPlugin):
    """The port of ssh on every container, and ``MPI_HOST`` on the master's."""

    name = "mpi"
    master = flag("master", "master")
    worker = flag("worker", "worker")
    port = flag("port", 22)

    def problem(self) -> str:
        """Raises PluginError where the names of the pods are too many for a variable."""
        task = self.task(self.worker)
        check_size(self.name, hosts(self.job, task) if task else (), MOST_ENV, "a variable")
        return ""

    @cached_property
    def _workers(self) -> str | None:
        """The workers' hosts; None without a task of workers."""
        task = self.task(self.worker)
        return ",".join(map(str, hosts(self.job, task))) if task else None

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """Port and, for the master, hosts; a master without workers gets neither."""
        is_master = place.task.name == self.master
        if is_master and self._workers is None:
            return
        if is_master:
            yield AddEnv(({"name": "MPI_HOST", "value": self._workers or ""},))
        yield AddPorts(({"name": "mpijob-port", "containerPort": self.port},), init=True)
