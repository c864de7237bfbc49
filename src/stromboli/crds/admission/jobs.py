"""Whether a job may be created, or changed as asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from stromboli.api.batch import NO_POLICY, Job, JobSpec, PartitionPolicy, Task, Volume
from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.crds.admission.pod_templates import check_template
from stromboli.crds.admission.policies import check_policies
from stromboli.crds.admission.texts import dns_subdomain, listed, qualified_name
from stromboli.crds.admission.world import Scene, queue_missing
from stromboli.errors import QuantityError
from stromboli.model.names import CPU, ROOT_QUEUE
from stromboli.model.resources import quantity
from stromboli.model.spec import without_nulls
from stromboli.model.values.go_flags import Value, parse_flags

TOPOLOGY_CLASH: Final = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
CANNOT_CHANGE: Final = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)
_MPI_FLAGS: Final[Mapping[str, Value]] = {"master": "master", "worker": "worker", "port": 22}


def check_new_job(job: Job, scene: Scene) -> list[str]:
    """What is wrong with a job that is to be created, as one text; nothing when it is sound."""
    if not job.spec.tasks:
        return ["No task specified in job spec"]
    if not _has_mpi_master(job.spec):
        return ["The specified mpi master task was not found"]
    text = "".join(_problems(job, scene)).strip()
    return [text] if text else []


def _problems(job: Job, scene: Scene) -> Iterator[str]:
    spec = job.spec
    yield topology_problem(spec.network_topology)
    yield from _task_problems(job)
    problems = qualified_name(job.metadata.name)
    if problems:
        yield f"create job with name {job.metadata.name} validate failed {listed(problems)}"
    if sum(task.replicas for task in spec.tasks) < spec.min_available:
        yield " job 'minAvailable' should not be greater than total replicas in tasks;"
    yield check_policies(spec.policies, "spec.policies")
    yield from (
        f" unable to find job plugin: {name};" for name in spec.plugins if name not in scene.settings.job_plugins
    )
    yield _volume_problem(spec.volumes)
    yield _queue_problem(spec.queue, scene)
    if not _in_order(spec.tasks):
        yield " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


def _has_mpi_master(spec: JobSpec) -> bool:
    arguments = spec.plugins.get("mpi")
    if arguments is None:
        return True
    master = parse_flags(arguments, _MPI_FLAGS).values["master"]
    return any(task.name == master for task in spec.tasks)


def topology_problem(topology: NetworkTopology | None) -> str:
    """That a topology names its highest tier twice."""
    clash = topology is not None and topology.highest_tier_allowed is not None and topology.highest_tier_name
    return TOPOLOGY_CLASH if clash else ""


# -- Tasks -----------------------------------------------------------------------------------------------------------


def _task_problems(job: Job) -> Iterator[str]:
    name, seen = job.metadata.name, dict[str, None]()
    for number, task in enumerate(job.spec.tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            yield f" 'minAvailable' is greater than 'replicas' in task: {task.name}, job: {name};"
        if task.name in seen:
            yield f" duplicated task name {task.name};"
            return
        seen[task.name] = None
        yield check_policies(task.policies, "spec.tasks.policies")
        pod = f"{name}-{task.name}-{number}"
        if problems := qualified_name(pod):
            yield f"create pod with name {pod} validate failed {listed(problems)};"
        yield _template_problem(task, number)
        yield partition_problem(task, name)


def _template_problem(task: Task, number: int) -> str:
    problems = list(check_template(task.template))
    if problems:
        return f"spec.task[{number}]." + "".join(f"{problem}. " for problem in problems)
    if task.topology_policy in ("", NO_POLICY):
        return ""
    spec = task.template["spec"]
    return _cpu_problem(spec if isinstance(spec, Mapping) else {}, number)


def _cpu_problem(spec: Mapping[str, object], number: int) -> str:
    """That a container of a task with a NUMA policy does not ask for whole CPUs."""
    containers = [row for key in ("containers", "initContainers") for row in _rows(spec.get(key))]
    for place, container in enumerate(containers):
        if not _whole_cpus(container):
            return f"the cpu request isn't an integer in spec.task[{number}] container[{place}]."
    return ""


def _whole_cpus(container: Mapping[str, object]) -> bool:
    resources = container.get("resources")
    stated = resources if isinstance(resources, Mapping) else {}
    amounts = stated.get("requests") or stated.get("limits") or {}
    try:
        amount = quantity.milli(amounts.get(CPU, 0))
    except QuantityError:
        return False
    return amount > 0 and amount % 1000 == 0


def _rows(value: object) -> list[Mapping[str, object]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def partition_problem(task: Task, job: str) -> str:
    """What is wrong with how a task is split."""
    parts = task.partition_policy
    if parts is None:
        return ""
    problem = _partition_sums(parts, task)
    where = f" in task: {task.name}, job: {job}" if problem else ""
    return f"{problem}{where}{topology_problem(parts.network_topology)}"


def _partition_sums(parts: PartitionPolicy, task: Task) -> str:
    if parts.total_partitions <= 0:
        return "'TotalPartitions' must be greater than 0"
    if parts.partition_size <= 0:
        return "'PartitionSize' must be greater than 0"
    if task.replicas != parts.total_partitions * parts.partition_size:
        return "'Replicas' are not equal to TotalPartitions*PartitionSize"
    least = parts.min_partitions * parts.partition_size
    if parts.min_partitions > 0 and task.min_available not in (None, least):
        return "'MinAvailable' is not equal to MinPartitions*PartitionSize"
    return ""


def _in_order(tasks: tuple[Task, ...]) -> bool:
    """Whether the tasks can be started one after the other: none waits for itself or for a missing one."""
    waiting = {task.name: set(task.depends_on.name) for task in tasks if task.depends_on is not None}
    started = {task.name for task in tasks if task.depends_on is None}
    while waiting:
        ready = [name for name, needed in waiting.items() if needed <= started]
        if not ready:
            return False
        started.update(ready)
        for name in ready:
            del waiting[name]
    return True


# -- Volumes and queue -----------------------------------------------------------------------------------------------


def _volume_problem(volumes: tuple[Volume, ...]) -> str:
    seen: dict[str, None] = {}
    for volume in volumes:
        if volume.mount_path in seen:
            return f" duplicated mountPath: {volume.mount_path};"
        if problem := _one_volume_problem(volume):
            return problem
        seen[volume.mount_path] = None
    return ""


def _one_volume_problem(volume: Volume) -> str:
    if not volume.mount_path:
        return " mountPath is required;"
    if volume.volume_claim is None:
        if not volume.volume_claim_name:
            return " either VolumeClaim or VolumeClaimName must be specified;"
        problems = dns_subdomain(volume.volume_claim_name)
        return f"invalid VolumeClaimName {volume.volume_claim_name} : {listed(problems)}" if problems else ""
    if volume.volume_claim_name:
        return (
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new"
            " PVC, you do not need to specify VolumeClaimName"
        )
    return ""


def _queue_problem(name: str, scene: Scene) -> str:
    queue = scene.queue(name)
    if queue is None:
        return f" unable to find job queue: {queue_missing(name)};"
    state, problem = queue.status.state, ""
    if state != QUEUE_OPEN:
        problem = f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
    if name == ROOT_QUEUE:
        return f"{problem} can not submit job to root queue;"
    children = len(scene.children(name))
    if children:
        problem += f" can only submit job to leaf queue, queue `{name}` has {children} child queues;"
    return problem


# -- Changes ---------------------------------------------------------------------------------------------------------


def check_changed_job(job: Job, old: Job) -> list[str]:
    """What is wrong with a change of a job: the first fault, or nothing."""
    problem = next(filter(None, _change_problems(job, old)), "")
    return [problem] if problem else []


def _change_problems(job: Job, old: Job) -> Iterator[str]:
    for task in job.spec.tasks:
        yield _sizes_problem(task)
        yield partition_problem(task, job.metadata.name)
    if job.spec.min_available > sum(task.replicas for task in job.spec.tasks):
        yield "job 'minAvailable' must not be greater than total replicas"
    if job.spec.min_available < 0:
        yield "job 'minAvailable' must be >= 0"
    yield topology_problem(job.spec.network_topology)
    if len(job.spec.tasks) != len(old.spec.tasks):
        yield "job updates may not add or remove tasks"
    if _fixed(job.spec) != _fixed(old.spec):
        yield CANNOT_CHANGE


def _sizes_problem(task: Task) -> str:
    if task.replicas < 0:
        return f"'replicas' must be >= 0 in task: {task.name}"
    if task.min_available is None:
        return ""
    if task.min_available < 0:
        return f"'minAvailable' must be >= 0 in task: {task.name}"
    return f"'minAvailable' must be <= 'replicas' in task: {task.name}" if task.min_available > task.replicas else ""


def _fixed(spec: JobSpec) -> object:
    """What of a job's spec may not change, in a form that can be compared."""
    tasks = tuple(replace(task, replicas=0, min_available=None) for task in spec.tasks)
    volumes = tuple(
        volume if volume.volume_claim is None else replace(volume, volume_claim_name="") for volume in spec.volumes
    )
    fixed = replace(spec, min_available=0, priority_class_name="", tasks=tasks, volumes=volumes)
    return _without_empty(without_nulls(msgspec.json.decode(msgspec.json.encode(fixed))))


def _without_empty(value: object) -> object:
    """``value`` without what is empty, as absent and empty are the same."""
    if isinstance(value, dict):
        kept = {key: _without_empty(entry) for key, entry in value.items()}
        return {key: entry for key, entry in kept.items() if entry not in ({}, [], "")}
    return [_without_empty(entry) for entry in value] if isinstance(value, list) else value
