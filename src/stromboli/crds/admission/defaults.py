"""What admission fills in when an object is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from stromboli.api.batch import DEFAULT_RETRIES, Job, Task
from stromboli.api.read import read
from stromboli.api.scheduling import DEFAULT_WEIGHT, PodGroup, Queue
from stromboli.crds.admission.world import Object, Scene
from stromboli.model.names import DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, QUEUE_NAME, ROOT_QUEUE

DEFAULT_TASK: Final = "default"
NEED_SERVICE: Final = ("tensorflow", "mpi", "pytorch", "ray")
"""Job plugins whose pods must find each other by name."""

Fields = dict[str, object]


def default_job(value: Object, scene: Scene) -> Object:
    """A job with queue, scheduler, retries, names, minimums and the plugins that others need."""
    job = read(Job, value)
    spec, stated = job.spec, _mapping(value, "spec")
    filled: Fields = {
        "queue": spec.queue or DEFAULT_QUEUE,
        "schedulerName": spec.scheduler_name or scene.settings.scheduler_names[0],
        "maxRetry": spec.max_retry or DEFAULT_RETRIES,
        "minAvailable": spec.min_available or sum(least(task) for task in spec.tasks),
    }
    tasks = stated.get("tasks")
    if spec.tasks and isinstance(tasks, list):
        rows = [row for row in tasks if row is not None]
        filled["tasks"] = [
            _default_task(row, task, number) for number, (row, task) in enumerate(zip(rows, spec.tasks, strict=True))
        ]
    if spec.plugins:
        filled["plugins"] = {**_mapping(stated, "plugins"), **_needed_plugins(spec.plugins)}
    return {**value, "spec": {**stated, **filled}}


def completed(job: Job) -> Job:
    """``job`` with what :func:`default_job` fills in and its pods depend on; itself where nothing is missing.

    On clusters without the webhooks jobs are stored as they were written.
    """
    spec = job.spec
    tasks = tuple(
        replace(task, name=task.name or f"{DEFAULT_TASK}{number}", min_available=least(task))
        for number, task in enumerate(spec.tasks)
    )
    minimum = spec.min_available or sum(task.min_available or 0 for task in tasks)
    plugins = {**spec.plugins, **dict.fromkeys(_needed_plugins(spec.plugins), ())}
    queue = spec.queue or DEFAULT_QUEUE
    whole = replace(spec, queue=queue, tasks=tasks, min_available=minimum, plugins=plugins)
    return job if whole == spec else replace(job, spec=whole)


def least(task: Task) -> int:
    """How many pods of a task must run at once, as admission settles it."""
    parts = task.partition_policy
    if task.min_available is not None:
        return task.min_available
    return parts.min_partitions * parts.partition_size if parts and parts.min_partitions > 0 else task.replicas


def _default_task(row: Object, task: Task, number: int) -> Object:
    filled: Fields = {
        "name": task.name or f"{DEFAULT_TASK}{number}",
        "minAvailable": least(task),
        "maxRetry": task.max_retry or DEFAULT_RETRIES,
    }
    spec = _mapping(task.template, "spec")
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        filled["template"] = {**task.template, "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return {**row, **filled}


def _needed_plugins(plugins: Mapping[str, tuple[str, ...]]) -> Fields:
    needed = {"svc": any(name in plugins for name in NEED_SERVICE), "ssh": "mpi" in plugins}
    return {name: [] for name, wanted in needed.items() if wanted and name not in plugins}


def default_queue(value: Object, scene: Scene) -> Object:
    """A queue with a weight, reclaimable unless it says no, its annotated path beginning at root."""
    queue = read(Queue, value)
    reclaimable = queue.spec.reclaimable is not False
    filled: Fields = {"reclaimable": reclaimable, "weight": queue.spec.weight or DEFAULT_WEIGHT}
    whole = {**value, "spec": {**_mapping(value, "spec"), **filled}}
    path, weights = (queue.metadata.annotations.get(key, "") for key in (HIERARCHY, HIERARCHY_WEIGHTS))
    if not path or not weights or path.startswith(ROOT_QUEUE):
        return whole
    metadata = _mapping(value, "metadata")
    rooted = {HIERARCHY: f"{ROOT_QUEUE}/{path}", HIERARCHY_WEIGHTS: f"1/{weights}"}
    return {**whole, "metadata": {**metadata, "annotations": {**_mapping(metadata, "annotations"), **rooted}}}


def default_pod_group(value: Object, scene: Scene) -> Object:
    """A PodGroup in the queue of its namespace, when it names none but the default one."""
    group = read(PodGroup, value)
    queue = scene.namespace_annotation(group.metadata.namespace, QUEUE_NAME)
    if group.spec.queue != DEFAULT_QUEUE or not queue:
        return value
    return {**value, "spec": {**_mapping(value, "spec"), "queue": queue}}


def _mapping(value: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}
