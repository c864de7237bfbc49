"""The names by which the pods of a job find each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from stromboli.api.batch import Job, Task
from stromboli.errors import PluginError
from stromboli.model.names import JOB_NAME, JOB_NAMESPACE

MOST_DATA: Final = 1 << 20
"""Bytes that a ConfigMap or a Secret holds at most."""
MOST_ENV: Final = 1 << 17
"""Bytes of one variable with which Linux starts a process."""


class Host(NamedTuple):
    """A pod's name within the job, and the domain of the job's pods."""

    name: str
    domain: str

    def __str__(self) -> str:
        return f"{self.name}.{self.domain}"


def pod_name(job: str, task: str, index: int) -> str:
    """``<job>-<task>-<index>``."""
    return f"{job}-{task}-{index}"


def spec_of(task: Task) -> Mapping[str, Any]:
    """The spec of a task's pods as the job states it."""
    spec = task.template.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def host(job: Job, task: Task, index: int) -> Host:
    """Where the pod number ``index`` of a task is found."""
    spec, name = spec_of(task), job.metadata.name
    return Host(str(spec.get("hostname") or pod_name(name, task.name, index)), str(spec.get("subdomain") or name))


def hosts(job: Job, task: Task) -> Iterator[Host]:
    """All pods of a task; one entry where the template gives them all one name."""
    count = min(task.replicas, 1) if spec_of(task).get("hostname") else task.replicas
    return (host(job, task, index) for index in range(count))


def all_hosts(job: Job) -> Iterator[Host]:
    """All pods of all tasks, in the order of the spec, as :func:`hosts` lists them."""
    return (host for task in job.spec.tasks for host in hosts(job, task))


def check_size(plugin: str, names: Iterable[Host], most: int, what: str, *, around: int = 1) -> None:
    """Raise PluginError where ``names`` are too long for ``what``; ``around`` is what each takes besides itself."""
    size = 0
    for name in names:
        size += len(name.name) + len(name.domain) + 1 + around
        if size > most:
            text = f"the names of its pods take more than {most} bytes, too much for {what}: have fewer or shorter ones"
            raise PluginError(plugin, text)


def selector(job: Job) -> dict[str, str]:
    """The labels that all pods of a job have."""
    return {JOB_NAME: job.metadata.name, JOB_NAMESPACE: job.metadata.namespace}
