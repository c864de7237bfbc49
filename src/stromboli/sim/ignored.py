"""What of the objects in manifests is not acted on: kinds, fields, and wishes that nothing here fulfils."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stromboli.api.batch import NO_POLICY
from stromboli.cluster.kinds import Job as VolcanoJob
from stromboli.cluster.owners.kinds import OWNER_KINDS, is_of_kubernetes
from stromboli.cluster.state import ClusterState
from stromboli.job_plugins.registry import offered
from stromboli.model.job import Job
from stromboli.model.names import NUMA_TOPOLOGY_POLICY, TOPOLOGY_GROUP_KEYS
from stromboli.model.podgroup import asks_for_group
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.plugins.network_topology_aware.wishes import ABSENT, OFF, Reader

KEEPS_CLOSE: Final = "hyper_node_gradient_for_job"
"""Without a plugin at this point pods are placed wherever there is room, whatever their network topology says."""

NUMA_AWARE: Final = "numa-aware"
"""The plugin without which policies for NUMA nodes are ignored."""

_PODS_COUNT: Final = "it counts by its pods; list these too (kubectl get pods -o yaml)"
_MADE: Final = "controllers make its Jobs on a live cluster; list these too to see where they go"
_KINDS: Final[Mapping[str, str]] = {
    "batch.volcano.sh CronJob": _MADE,
    "flow.volcano.sh JobFlow": _MADE,
    "flow.volcano.sh JobTemplate": _MADE,
    "bus.volcano.sh Command": "controllers carry it out on a live cluster",
    "batch CronJob": _PODS_COUNT,
}
"""By group and kind: why an object is not looked at, or what to do instead."""
_OTHERS: Final = "it has no part in scheduling"
_OWNERS: Final = (
    "which pods it leads to is its operator's doing, so none is counted; list them too (kubectl get pods -o yaml), or "
    "their PodGroup"
)
_FOREIGN: Final = "scheduling does not read it; pods that are made of it count where they are listed too"


NO_DEVICES: Final = "describes no devices; lint reads a configuration in it, plan takes one with --config"
"""What is said of a ConfigMap without ``device-config.yaml``."""


class Ignored(NamedTuple):
    """One thing that is ignored: whose, where in it, and a sentence; ``minor`` where it is often meant so."""

    object: str
    path: str
    text: str
    minor: bool = False

    def __str__(self) -> str:
        return f"{', '.join(part for part in (self.object, self.path) if part)}: {self.text}"


def kind_text(kind: str, count: int) -> str:
    """A sentence on ``count`` objects of ``kind``, given as ``apiVersion kind``, that are not looked at."""
    version, _, name = kind.rpartition(" ")
    why = _why(version.rpartition("/")[0], name)
    objects, are = ("object", "is") if count == 1 else ("objects", "are")
    return f"{count} {objects} of kind {kind} {are} not looked at: {why}"


def _why(group: str, kind: str) -> str:
    """Why objects of ``kind`` are not looked at, or what to do instead."""
    if told := _KINDS.get(f"{group} {kind}"):
        return told
    if (group, kind) in OWNER_KINDS:
        return _OWNERS
    return _OTHERS if is_of_kubernetes(group) else _FOREIGN


class Heeded(NamedTuple):
    """Which wishes plugins of a configuration heed: network topologies (:data:`KEEPS_CLOSE`), NUMA policies, and
    topology groups, of which ``no_groups`` says why not, if they are not.
    """

    closeness: bool = False
    numa: bool = False
    no_groups: str = ABSENT


NOTHING_HEEDED: Final = Heeded()


def wishes(state: ClusterState, jobs: Mapping[str, VolcanoJob], heeded: Heeded) -> Iterator[Ignored]:
    """What ``jobs`` and all pods ask for in vain."""
    plugins = offered().names
    for key, found in jobs.items():
        if missing := [name for name in found.spec.plugins if name not in plugins]:
            names = ", ".join(name[:40] for name in missing[:8])
            yield Ignored(f"Job {key}", "spec.plugins", _WITHOUT_PLUGINS.format(names=names))
    for uid, job in sorted(state.jobs.items()):
        if job.facts.is_close and not heeded.closeness:
            yield Ignored(f"PodGroup {uid}", "spec.networkTopology", FAR)
        yield from () if heeded.numa else _numa(job)
    yield from _groups(state, heeded)
    yield from _others(state)


_WITHOUT_PLUGINS: Final = (
    "{names}: not known here; controllers that don't know it make no pods of the job; they are planned without"
)
FAR: Final = (
    "no plugin of the configuration keeps pods close together (network-topology-aware does), so they are placed as if "
    "it were not there"
)
"""What jobs are told that ask for a network topology without such a plugin."""


def _numa(job: Job) -> Iterator[Ignored]:
    policies = (task.annotations.get(NUMA_TOPOLOGY_POLICY, NO_POLICY) for task in job.tasks.values())
    if named := next((policy for policy in policies if policy != NO_POLICY), ""):
        why = "no plugin of the configuration looks at NUMA nodes (numa-aware does)"
        text = f"topology policy {named[:40]} is ignored: {why}"
        yield Ignored(f"PodGroup {job.uid}", f"metadata.annotations[{NUMA_TOPOLOGY_POLICY}]", text)


def why_no_groups(arguments: Mapping[str, object] | None) -> str:
    """Why topology groups are not heeded with these ``arguments`` of the plugin, None without it; empty if they are."""
    if arguments is None:
        return ABSENT
    return "" if NetworkTopologyAware(arguments).heeds_groups else OFF


def _groups(state: ClusterState, heeded: Heeded) -> Iterator[Ignored]:
    """PodGroups whose annotations of topology groups have no effect."""
    asking = [job for job in state.jobs.values() if asks_for_group(job.annotations)]
    if not asking:
        return
    snapshot = state.snapshot()
    asking.sort(key=lambda job: (job.uid not in snapshot.jobs, job.created, job.uid))  # as a session has them
    reader = Reader(snapshot.hyper_node_tiers, {info.tier for info in snapshot.hyper_nodes.values() if info.known})
    for job in asking:
        _, problem = reader.read(job)
        if why := heeded.no_groups or problem:
            key = min(TOPOLOGY_GROUP_KEYS & job.annotations.keys())
            yield Ignored(f"PodGroup {job.uid}", f"metadata.annotations[{key}]", f"it has no effect: {why}")


def _others(state: ClusterState) -> Iterator[Ignored]:
    """Pods that wait for another scheduler, by its name; the first of each is named."""
    found: dict[str, list[Task]] = {}
    for task in state.tasks.values():
        if not task.job and task.status is TaskStatus.Pending:
            found.setdefault(task.scheduler or "default-scheduler", []).append(task)
    for name, tasks in sorted(found.items()):
        more = f", as are {len(tasks) - 1} more" if len(tasks) > 1 else ""
        first = min(task.key for task in tasks)
        yield Ignored(f"Pod {first}", "spec.schedulerName", f"is left to scheduler {name[:63]}{more}", minor=True)
