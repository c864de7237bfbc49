"""The PodGroup and the pods that the job controller makes of a Volcano Job."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from stromboli.api.batch import Task as BatchTask
from stromboli.api.fields import LabelSelector
from stromboli.api.kinds import KINDS
from stromboli.api.scheduling import POD_GROUP_PENDING, PodGroupSpec, PodGroupStatus, SubGroupPolicy
from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.decoding.templates import check_spec
from stromboli.cluster.kinds import Job, JobTask, NamespacedMetadata, OwnerReference, Pod, PodGroup, PodStatus, title
from stromboli.cluster.usage import quota_usage
from stromboli.errors import ManifestError
from stromboli.model.names import (
    COOLDOWN_TIME,
    DEFAULT_QUEUE,
    GROUP_NAME,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    JOB_NAME,
    JOB_NAMESPACE,
    JOB_QUEUE_NAME,
    JOB_RETRY_COUNT,
    JOB_VERSION,
    NUMA_TOPOLOGY_POLICY,
    PARTITION_ID,
    POD_PENDING,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    SCHEDULER_NAME,
    TASK_INDEX,
    TASK_SPEC,
    TEMPLATE_UID,
)
from stromboli.model.resources.request import with_default_requests
from stromboli.model.spec import PodSpec

MOST_PODS: Final = 1_000_000
"""A job with more pods than this is refused."""

PASSED_LABELS: Final = (PREEMPTABLE, COOLDOWN_TIME)
"""Labels that the controllers pass on between pods, PodGroups and jobs."""
PASSED_ANNOTATIONS: Final = (*PASSED_LABELS, REVOCABLE_ZONE, JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
"""Annotations that the controllers pass on between pods, PodGroups and jobs."""


ANY_OF: Final = "any"
"""Iteration of a task's dependencies: one is enough."""


def with_defaults(job: Job) -> Job:
    """``job`` as admission completes it: names, minimums, queue and scheduler of its own where it states none.

    Templates request what they limit, as the API server will have it of their pods.

    Raises :class:`~stromboli.errors.ManifestError` for numbers and amounts that cannot be used.
    """
    _check(job)
    tasks = tuple(_task_with_defaults(task, number) for number, task in enumerate(job.spec.tasks))
    _check_names([task.name for task in tasks], job)
    spec = replace(
        job.spec,
        tasks=tasks,
        queue=job.spec.queue or DEFAULT_QUEUE,
        scheduler_name=job.spec.scheduler_name or SCHEDULER_NAME,
        min_available=job.spec.min_available or sum(task.min_available or 0 for task in tasks),
    )
    return replace(job, spec=spec)


def _check(job: Job) -> None:
    name = title("Job", job.metadata)
    try:
        check_whole(job.spec.min_available, COUNT, "spec.minAvailable")
        for number, task in enumerate(job.spec.tasks):
            path = f"spec.tasks[{number}]"
            check_whole(task.replicas, COUNT, f"{path}.replicas")
            check_whole(task.min_available, range(task.replicas + 1), f"{path}.minAvailable")
            check_spec(task.template.spec, f"{path}.template.spec")
        if sum(task.replicas for task in job.spec.tasks) > MOST_PODS:
            raise ManifestError(f"its tasks have more than {MOST_PODS} replicas together", path="spec.tasks")
    except ManifestError as error:
        raise ManifestError(error.problem, object=name, path=error.path) from error


def _check_names(names: list[str], job: Job) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            path = f"spec.tasks[{number}].name"
            raise ManifestError(f"duplicated task name {name}", object=title("Job", job.metadata), path=path)


def _task_with_defaults(task: JobTask, number: int) -> JobTask:
    policy = task.partition_policy
    parts = policy.min_partitions * policy.partition_size if policy else 0
    minimum = (parts or task.replicas) if task.min_available is None else task.min_available
    template = replace(task.template, spec=with_default_requests(task.template.spec))
    return replace(task, name=task.name or f"default{number}", min_available=minimum, template=template)


def why_never_started(tasks: Sequence[JobTask | BatchTask], least: int) -> str:
    """Why a gang of ``least`` pods of these tasks waits for itself; empty if pods enough wait for no other to run."""
    awaited = {task.name for task in tasks if task.min_available}
    first = sum(task.replicas for task in tasks if not _waits(task, awaited))
    text = f"minAvailable is {least}, but only {first} of its pods wait for no other task (dependsOn)"
    return text if first < min(least, sum(task.replicas for task in tasks)) else ""


def _waits(task: JobTask | BatchTask, awaited: Container[str]) -> bool:
    """Whether a task's pods are made only once others run: ``awaited`` are the tasks that are not ready without any."""
    needs = task.depends_on
    if needs is None or not needs.name:
        return False
    unmet = [name in awaited for name in needs.name]
    return all(unmet) if needs.iteration == ANY_OF else any(unmet)


def group_name_of(job: Job) -> str:
    """Name of the job's PodGroup; that of the job itself when it has no uid."""
    return f"{job.metadata.name}-{job.metadata.uid}" if job.metadata.uid else job.metadata.name


def group_of(job: Job, priorities: Mapping[str, int]) -> PodGroup:
    """The PodGroup of a complete job; ``priorities`` are the values of the priority classes."""
    spec, meta = job.spec, job.metadata
    return PodGroup(
        metadata=NamespacedMetadata(
            name=group_name_of(job),
            namespace=meta.namespace,
            creation_timestamp=meta.creation_timestamp,
            labels=meta.labels,
            annotations=meta.annotations,
            owner_references=(_owner(job),),
        ),
        spec=PodGroupSpec(
            min_member=spec.min_available,
            min_task_member={task.name: task.min_available or 0 for task in spec.tasks},
            queue=spec.queue,
            priority_class_name=spec.priority_class_name,
            min_resources=quota_usage(_first_pods(job, priorities)),
            network_topology=spec.network_topology,
            sub_group_policy=tuple(_sub_groups(job)),
        ),
        status=PodGroupStatus(phase=POD_GROUP_PENDING),
    )


def _first_pods(job: Job, priorities: Mapping[str, int]) -> Iterator[tuple[PodSpec, int]]:
    """The pods that must run at once, as (spec, number): each task's minimum first, higher priorities before others."""
    tasks = sorted(job.spec.tasks, key=lambda task: -priorities.get(_class_of(task, job), 0))
    minimum, wanted = sum(task.min_available or 0 for task in tasks), job.spec.min_available
    enough = wanted >= minimum
    left = wanted - minimum if enough else wanted
    for task in tasks:
        first = min(task.min_available or 0, task.replicas) if enough else 0
        more = min(left, task.replicas - first)
        left -= more
        yield task.template.spec, first + more


def _class_of(task: JobTask, job: Job) -> str:
    return task.template.spec.priority_class_name or job.spec.priority_class_name


def _sub_groups(job: Job) -> Iterator[SubGroupPolicy]:
    for task in job.spec.tasks:
        policy = task.partition_policy
        if policy is not None:
            yield SubGroupPolicy(
                name=task.name,
                sub_group_size=policy.partition_size,
                min_sub_groups=policy.min_partitions,
                label_selector=LabelSelector(match_labels={TASK_SPEC: task.name}),
                match_label_keys=(PARTITION_ID,),
                network_topology=policy.network_topology,
            )


def pods_of(job: Job, priorities: Mapping[str, int], group: str = "") -> Iterator[Pod]:
    """The pods ``<job>-<task>-<index>`` of a complete job, in the PodGroup ``group`` (empty: its own)."""
    for task in job.spec.tasks:
        spec = _spec_of(task, job, priorities)
        for index in range(task.replicas):
            metadata = metadata_of(task, index, job, group or group_name_of(job))
            yield Pod(metadata=metadata, spec=spec, status=PodStatus(phase=POD_PENDING))


def _spec_of(task: JobTask, job: Job, priorities: Mapping[str, int]) -> PodSpec:
    spec, class_name = task.template.spec, _class_of(task, job)
    priority = priorities.get(class_name) if spec.priority is None else spec.priority
    return replace(
        spec,
        scheduler_name=spec.scheduler_name or job.spec.scheduler_name,
        priority_class_name=class_name,
        priority=priority,
        node_name="",
    )


def metadata_of(task: JobTask, index: int, job: Job, group: str) -> NamespacedMetadata:
    """Name, owner, labels and annotations of the pod number ``index`` of a task, as a member of PodGroup ``group``."""
    meta, own, queue = job.metadata, task.template.metadata, job.spec.queue
    shared = {TASK_INDEX: str(index), TASK_SPEC: task.name, JOB_NAME: meta.name, JOB_QUEUE_NAME: queue}
    labels = {**own.labels, **shared, JOB_NAMESPACE: meta.namespace, **passed(meta.labels, PASSED_LABELS)}
    if task.partition_policy is not None:
        size = task.partition_policy.partition_size
        labels[PARTITION_ID] = str(index // size if size > 0 else 0)
    annotations = {
        **own.annotations,
        **shared,
        GROUP_NAME: group,
        JOB_VERSION: str(job.status.version),
        JOB_RETRY_COUNT: str(job.status.retry_count),
        TEMPLATE_UID: f"{meta.name}-{task.name}",
        **passed(meta.annotations, PASSED_ANNOTATIONS),
    }
    if task.topology_policy:
        annotations[NUMA_TOPOLOGY_POLICY] = task.topology_policy
    return NamespacedMetadata(
        name=f"{meta.name}-{task.name}-{index}",
        namespace=meta.namespace,
        creation_timestamp=meta.creation_timestamp,
        labels=labels,
        annotations=annotations,
        owner_references=(_owner(job),),
    )


def passed(texts: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    """The entries of ``texts`` that are passed on; of the two forms of a disruption budget only the first."""
    found = {key: texts[key] for key in keys if key in texts}
    if JDB_MIN_AVAILABLE in found:
        found.pop(JDB_MAX_UNAVAILABLE, None)
    return found


def _owner(job: Job) -> OwnerReference:
    meta = job.metadata
    return OwnerReference(KINDS["Job"].api_version, "Job", meta.name, meta.uid, controller=True)
