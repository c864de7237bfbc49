"""The volumes of a job: claims that are made for it, and how its pods mount them.

Names that must be unique are derived from the job's uid, so that a restarted controller finds what it made.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from stromboli.api.batch import Job, Volume
from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import PERSISTENT_VOLUME_CLAIMS, Change, Create, Json, Patch, builtins
from stromboli.controllers.world import World

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 12
MOST_MOUNTS: Final = 20_000
"""Mounts of a job's volumes in one pod; an API server takes no pod with so many."""


def token(*parts: str) -> str:
    """Twelve digits and small letters that follow from ``parts``."""
    number = int.from_bytes(sha256("\0".join(parts).encode()).digest())
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def claim_name(job: Job, volume: Volume) -> str:
    """Name of the claim that a volume stands for."""
    return volume.volume_claim_name or f"{job.metadata.name}-pvc-{token(job.metadata.uid, volume.mount_path)}"


def missing_claim(job: Job, world: World) -> str:
    """Name of a claim that the job relies on and that does not exist; empty when there is none."""
    namespace = job.metadata.namespace
    for volume in job.spec.volumes:
        named = volume.volume_claim_name
        if volume.volume_claim is None and named and (namespace, named) not in world.claims:
            return named
    return ""


def too_many(job: Job) -> str:
    """What is wrong with the number of volumes, which every container of a pod mounts; empty if nothing is."""
    for task in job.spec.tasks:
        spec = task.template.get("spec")
        containers = len(rows(spec.get("containers"))) if isinstance(spec, dict) else 0
        if containers * len(job.spec.volumes) > MOST_MOUNTS:
            each = f"{len(job.spec.volumes)} volumes of the job in each of {containers} containers"
            return f"task {task.name} would mount {each}; {MOST_MOUNTS} mounts in a pod are the most"
    return ""


def claim_changes(job: Job, world: World, owner: Json) -> list[Change]:
    """What makes the claims that a job brings itself, and writes their names into its spec."""
    meta = job.metadata
    changes: list[Change] = []
    named = tuple(replace(volume, volume_claim_name=claim_name(job, volume)) for volume in job.spec.volumes)
    if named != job.spec.volumes:
        changes.append(Patch(JOBS, meta.namespace, meta.name, {"spec": {"volumes": [builtins(one) for one in named]}}))
    for volume in named:
        if volume.volume_claim is not None and (meta.namespace, volume.volume_claim_name) not in world.claims:
            changes.append(Create(PERSISTENT_VOLUME_CLAIMS, meta.namespace, _claim(volume, meta.namespace, owner)))
    return changes


def _claim(volume: Volume, namespace: str, owner: Json) -> Json:
    metadata = {"name": volume.volume_claim_name, "namespace": namespace, "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": volume.volume_claim,
    }


def controlled(job: Job) -> dict[str, str]:
    """What a job's status says of the claims that it uses."""
    return {f"volume-pvc-{name}": name for name in (claim_name(job, volume) for volume in job.spec.volumes)}


def mounted(job: Job, spec: Json) -> Json:
    """A pod's spec with the job's volumes, mounted in all containers but the init containers."""
    if not job.spec.volumes:
        return spec
    names = [f"{job.metadata.name}-{token(job.metadata.uid, volume.mount_path)}" for volume in job.spec.volumes]
    claims = [{"claimName": claim_name(job, volume)} for volume in job.spec.volumes]
    volumes = [{"name": name, "persistentVolumeClaim": claim} for name, claim in zip(names, claims, strict=True)]
    mounts = [
        {"name": name, "mountPath": volume.mount_path} for name, volume in zip(names, job.spec.volumes, strict=True)
    ]
    containers = [
        {**container, "volumeMounts": [*rows(container.get("volumeMounts")), *mounts]}
        for container in rows(spec.get("containers"))
    ]
    return {**spec, "volumes": [*rows(spec.get("volumes")), *volumes], "containers": containers}


def rows(value: object) -> list[Json]:
    """The objects of a list; nothing for what is no list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list | tuple) else []
