"""The rules for Volcano Jobs, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.cli.linting.cluster_rules import Cluster
from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cluster.job_pods import why_never_started, with_defaults
from stromboli.cluster.kinds import Job, JobTask
from stromboli.crds.admission.defaults import NEED_SERVICE
from stromboli.errors import ManifestError
from stromboli.job_plugins.hosts import pod_name
from stromboli.job_plugins.svc import Svc
from stromboli.model.values.go_flags import parse_flags

LONGEST_HOSTS: Final = 20_000
"""Characters of a list of hosts in a variable; many runtimes allow 32 KiB, other text included."""


def _jobs(cluster: Cluster) -> Iterator[tuple[str, Job]]:
    """Jobs as admission completes them, as messages name them; those that it refuses are told elsewhere."""
    for key, job in cluster.loading.jobs.items():
        try:
            yield f"Job {key}", with_defaults(job)
        except ManifestError:
            continue


def _gang_waits_for_itself(cluster: Cluster) -> Iterator[Spot]:
    for where, job in _jobs(cluster):
        if text := why_never_started(job.spec.tasks, job.spec.min_available):
            yield Spot(text, 0, where, "spec.minAvailable")


def _long_lists_of_hosts(cluster: Cluster) -> Iterator[Spot]:
    for where, job in _jobs(cluster):
        if _states_hosts(job):
            for number, task in enumerate(job.spec.tasks):
                if (size := _size(job.metadata.name, task)) > LONGEST_HOSTS:
                    text = f"the variable with the hosts of task {task.name} has {size} characters in every pod"
                    yield Spot(text, 0, where, f"spec.tasks[{number}].replicas")


def _states_hosts(job: Job) -> bool:
    """Whether plugin svc, which others bring along, puts lists of hosts into variables."""
    plugins = job.spec.plugins
    values, _ = parse_flags(plugins.get(Svc.name, ()), Svc.flags())
    return any(name in plugins for name in (Svc.name, *NEED_SERVICE)) and bool(values[Svc.inject_env.name])


def _size(job: str, task: JobTask) -> int:
    """Length of the names of a task's pods with commas between, unless its template names them otherwise."""
    count, width = task.replicas, len(f"{pod_name(job, task.name, 0)}.{job},")
    more = sum(max(count - 10**digits, 0) for digits in range(1, len(str(count))))  # numbers of two digits and more
    return max(count * width + int(more) - 1, 0)


JOB_RULES: Final[tuple[Rule[Cluster], ...]] = (
    Rule("gang-waits-for-itself", "warning", _gang_waits_for_itself,
         "Tasks that wait get no pods until others run, and a gang runs only once minAvailable pods are there.",
         "Lower minAvailable to the pods that start first, or split the job and order its parts in a JobFlow."),
    Rule("long-lists-of-hosts", "warning", _long_lists_of_hosts,
         "Container runtimes limit variables, many to 32 KiB, and containers beyond it do not start.",
         'Set svc: ["--inject-hosts-env=false"] and read /etc/volcano instead.'),
)  # fmt: skip
"""All rules for Volcano Jobs."""
