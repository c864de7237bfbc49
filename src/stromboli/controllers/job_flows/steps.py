"""The jobs of a JobFlow: their names, how they are made of a template, and which are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.api.batch import COMPLETED, Job
from stromboli.api.fields import LONGEST_LABEL
from stromboli.api.flow import Flow, JobFlow, JobTemplate
from stromboli.controllers.changes import Json, builtins, owned_by, subject
from stromboli.controllers.pods import JOB_API, JOB_KIND
from stromboli.controllers.world import World
from stromboli.model.names import CREATED_BY_JOB_FLOW, CREATED_BY_JOB_TEMPLATE

KIND: Final = "JobFlow"


def job_name(flow: JobFlow, step: str) -> str:
    """``<jobflow>-<flow>``."""
    return f"{flow.metadata.name}-{step}"


def job_body(flow: JobFlow, step: Flow, template: JobTemplate) -> Json:
    """The job of one flow: the template's, with what the flow replaces in it."""
    namespace = flow.metadata.namespace
    marks = {
        CREATED_BY_JOB_TEMPLATE: f"{namespace}.{step.name}",
        CREATED_BY_JOB_FLOW: f"{namespace}.{flow.metadata.name}",
    }
    metadata: Json = {
        "name": job_name(flow, step.name),
        "namespace": namespace,
        "labels": {key: text for key, text in marks.items() if len(text) <= LONGEST_LABEL},
        "annotations": marks,
        "ownerReferences": [owned_by(subject(KIND, flow.metadata))],
    }
    spec = builtins(template.spec)
    if step.patch is not None:
        spec = _patched(spec, step.patch.job_spec)
    return {"apiVersion": JOB_API, "kind": JOB_KIND, "metadata": metadata, "spec": spec}


def _patched(old: Mapping[str, object], new: Mapping[str, object]) -> Json:
    """``old`` with what ``new`` states: objects key by key, lists of named objects by name, the rest replaced."""
    merged: Json = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = _patched(before, value)
        elif (changed := _by_name(value)) and (known := _by_name(before)):
            both = {name: _patched(known.get(name, {}), one) for name, one in changed.items()}
            merged[key] = list({**known, **both}.values())
        else:
            merged[key] = value
    return merged


def _by_name(value: object) -> dict[str, Mapping[str, object]]:
    """The objects of a list by name; empty if they are not all objects with a name of their own."""
    if not isinstance(value, list | tuple):
        return {}
    found = {str(item["name"]): item for item in value if isinstance(item, Mapping) and item.get("name")}
    return found if len(found) == len(value) else {}


class Jobs:
    """The jobs of one JobFlow as they stand; those that have come to their end count although they are gone."""

    def __init__(self, flow: JobFlow, world: World) -> None:
        self._flow, self._world = flow, world
        self.own = world.jobs.of_owner(flow)
        self._by_name = {job.metadata.name: job for job in self.own}
        self._recorded = {one.name: one.state for one in flow.status.job_status_list}

    def of(self, step: str) -> Job | None:
        """The job of a flow, None if it is not there."""
        return self._by_name.get(job_name(self._flow, step))

    def phase(self, step: str) -> str:
        """The phase of a flow's job, empty if it was not made yet or has to be made again.

        What has completed is not made again when it is gone: its time to live may be over.
        """
        job = self.of(step)
        if job is not None:
            return job.status.state.phase or "Pending"
        recorded = self._recorded.get(job_name(self._flow, step), "")
        return recorded if recorded == COMPLETED else ""

    def other(self, step: str) -> Job | None:
        """A job that bears the name of a flow's job and is not ours."""
        job = self._world.jobs.get(self._flow.metadata.namespace, job_name(self._flow, step))
        return None if job is None or job.metadata.name in self._by_name else job
