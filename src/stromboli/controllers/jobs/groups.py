"""The PodGroup of a job: what it must say, and what to change where it says something else."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from stromboli.api.batch import Job
from stromboli.api.kinds import POD_GROUPS
from stromboli.api.scheduling import POD_GROUP_PENDING, PodGroup, PodGroupSpec
from stromboli.cluster import job_pods, kinds
from stromboli.controllers.changes import Change, Create, Json, Patch, builtins
from stromboli.controllers.pod_groups import body_of
from stromboli.controllers.world import World
from stromboli.errors import ManifestError
from stromboli.model.values.reading import convert

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that is about one object only."""
FOLLOWING: Final = ("priority_class_name", "min_member", "min_resources", "min_task_member", "sub_group_policy")
"""Fields of the spec that follow the job when it changes."""
_WIRE: Final = {field.name: field.encode_name for field in msgspec.structs.fields(PodGroupSpec)}


def slim(job: Job) -> kinds.Job:
    """A job in the form that scheduling reads, completed as admission would.

    Raises :class:`~stromboli.errors.ManifestError` for one that cannot be used.
    """
    meta = job.metadata
    try:
        read = convert(msgspec.to_builtins(job), kinds.Job)
    except ManifestError as error:
        raise ManifestError(error.problem, object=f"Job {meta.namespace}/{meta.name}", path=error.path) from error
    return job_pods.with_defaults(read)


def group_of(job: Job, world: World) -> PodGroup | None:
    """The PodGroup that a job has, under today's name or an earlier one."""
    meta = job.metadata
    found = world.pod_groups.get(meta.namespace, f"{meta.name}-{meta.uid}")
    if found is not None:
        return found
    earlier = world.pod_groups.get(meta.namespace, meta.name)
    owned = earlier is not None and any(owner.uid == meta.uid for owner in earlier.metadata.owner_references)
    return earlier if owned else None


def gate_is_open(group: PodGroup | None) -> bool:
    """Whether the job may have pods: the scheduler has let its PodGroup in."""
    return group is not None and group.status.phase not in ("", POD_GROUP_PENDING)


class Groups:
    """What the PodGroup of each job must say, kept until the job or a priority class changes."""

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[object, kinds.PodGroup]] = {}

    def changes(self, job: Job, world: World) -> list[Change]:
        """What makes the PodGroup of a job say what it must."""
        wanted = self._wanted_for(job, world)
        found = group_of(job, world)
        if found is None:
            return [Create(POD_GROUPS, job.metadata.namespace, _body(wanted))]
        patch = _patch(found.spec, msgspec.convert(msgspec.to_builtins(wanted.spec), PodGroupSpec))
        if not patch:
            return []
        return [Patch(POD_GROUPS, found.metadata.namespace, found.metadata.name, {"spec": patch})]

    def _wanted_for(self, job: Job, world: World) -> kinds.PodGroup:
        key = (job.spec, tuple(world.priorities.items()), job.metadata.labels, job.metadata.annotations)
        known = self._wanted.get(job.metadata.uid)
        if known is None or known[0] != key:
            known = self._wanted[job.metadata.uid] = (key, job_pods.group_of(slim(job), world.priorities))
        return known[1]

    def forget(self, uid: str) -> None:
        """A job is gone."""
        self._wanted.pop(uid, None)


def _body(wanted: kinds.PodGroup) -> Json:
    kept = {key: text for key, text in wanted.metadata.annotations.items() if key != LAST_APPLIED}
    return body_of(replace(wanted, metadata=replace(wanted.metadata, annotations=kept)))


def _patch(found: PodGroupSpec, wanted: PodGroupSpec) -> Json:
    before, after = builtins(found), builtins(wanted)
    differing = [_WIRE[name] for name in FOLLOWING if getattr(found, name) != getattr(wanted, name)]
    return {name: after.get(name) for name in differing if before.get(name) != after.get(name)}
