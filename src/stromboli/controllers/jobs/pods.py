"""The pods of a job, as they are made."""

from __future__ import annotations

from typing import Final

from stromboli.api.batch import Job, Task
from stromboli.cluster import job_pods, kinds
from stromboli.controllers.changes import Json
from stromboli.controllers.jobs.plugins import Plugged
from stromboli.controllers.jobs.volumes import mounted
from stromboli.controllers.pods import JOB_API, JOB_KIND
from stromboli.job_plugins.plugin import Place
from stromboli.model.names import JOB_FORWARDING

YES: Final = "true"


def owner_of(job: Job) -> Json:
    """The owner reference of everything that is made for a job."""
    meta = job.metadata
    return {
        "apiVersion": JOB_API,
        "kind": JOB_KIND,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Maker:
    """Makes the pods of one job; ``whole`` is the job as scheduling reads it, ``group`` its PodGroup's name."""

    def __init__(self, job: Job, whole: kinds.Job, group: str, plugged: Plugged, *, forwarding: bool) -> None:
        self._job, self._whole, self._group, self._forwarding = job, whole, group, forwarding
        self._plugged = plugged
        self._specs: dict[str, Json] = {}

    def body(self, number: int, index: int) -> Json:
        """The pod number ``index`` of the task number ``number``.  Raises PluginError for a plugin that fails."""
        task = self._job.spec.tasks[number]
        described = job_pods.metadata_of(self._whole.spec.tasks[number], index, self._whole, self._group)
        marks = {JOB_FORWARDING: YES} if self._forwarding else {}
        metadata: Json = {
            "name": described.name,
            "namespace": described.namespace,
            "labels": {**described.labels, **marks},
            "annotations": {**described.annotations, **marks},
            "ownerReferences": [owner_of(self._job)],
        }
        if (spec := self._specs.get(task.name)) is None:
            spec = self._specs[task.name] = self._spec(task)
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return self._plugged.edited(pod, Place(task, index))

    def _spec(self, task: Task) -> Json:
        stated = task.template.get("spec")
        spec = dict(stated) if isinstance(stated, dict) else {}
        spec["schedulerName"] = spec.get("schedulerName") or self._whole.spec.scheduler_name
        priority = spec.get("priorityClassName") or self._job.spec.priority_class_name
        if priority:
            spec["priorityClassName"] = priority
        return mounted(self._job, spec)
