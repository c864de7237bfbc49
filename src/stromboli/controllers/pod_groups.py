"""The controller of PodGroups: pods of ours that name none get one, shared by all pods of one owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from stromboli.cluster.complete import group_of_pod
from stromboli.cluster.decoding.annotations import read_int
from stromboli.cluster.kinds import OwnerReference, Pod, PodGroup
from stromboli.cluster.usage import quota_usage
from stromboli.controllers.changes import Change, Create, Json, Outcome, Patch, builtins
from stromboli.controllers.world import World
from stromboli.crds.kinds import KINDS, POD_GROUPS, PODS
from stromboli.errors import ManifestError
from stromboli.model.names import GROUP_MIN_MEMBER, GROUP_NAME

INHERITED: Final = "volcano.sh/"
"""What the keys begin with that a PodGroup inherits from the owner of its pods."""
OWNERS: Final = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job")
"""Kinds whose annotations say how their pods belong together."""

SCALED: Final = ("ReplicaSet", "StatefulSet")
"""Kinds whose PodGroup goes when they are scaled to nothing."""


def look(pod: Pod, world: World, *, inherit: bool = True) -> Outcome:
    """Put a pod of ours that names no PodGroup into one; ``inherit`` the owner's annotations."""
    if pod.metadata.annotations.get(GROUP_NAME):
        return Outcome()
    try:
        group = wanted(pod, world, inherit=inherit)
    except ManifestError as error:
        return Outcome(error=str(error))
    meta, name = pod.metadata, group.metadata.name
    missing = world.pod_groups.get(meta.namespace, name) is None
    creation: list[Change] = [Create(POD_GROUPS, meta.namespace, body_of(group))] if missing else []
    joining: Json = {"metadata": {"uid": meta.uid, "annotations": {GROUP_NAME: name}}}
    return Outcome().then(*creation).then(Patch(PODS, meta.namespace, meta.name, joining))


def wanted(pod: Pod, world: World, *, inherit: bool = True) -> PodGroup:
    """The PodGroup that ``pod`` belongs into.  Raises :class:`~stromboli.errors.ManifestError`."""
    group = group_of_pod(pod)
    if not inherit:
        return group
    owned = [_annotations(owner, pod.metadata.namespace, world) for owner in pod.metadata.owner_references]
    minimum = _minimum(owned)
    inherited = {key: text for texts in owned for key, text in texts.items() if key.startswith(INHERITED)}
    spec = replace(group.spec, min_member=minimum, min_resources=quota_usage([(pod.spec, minimum)]))
    metadata = replace(group.metadata, annotations={**inherited, **group.metadata.annotations})
    return replace(group, spec=spec, metadata=metadata)


def _annotations(owner: OwnerReference, namespace: str, world: World) -> Mapping[str, str]:
    return world.owners.get((owner.kind, namespace, owner.name), {}) if owner.kind in OWNERS else {}


def _minimum(owned: list[Mapping[str, str]]) -> int:
    """How many pods must run at once: what the first owner says that says anything; 1 for what is no such number."""
    text = next((texts[GROUP_MIN_MEMBER] for texts in owned if GROUP_MIN_MEMBER in texts), "1")
    number = read_int(text, 32)
    return 1 if number is None or number < 0 else number


def body_of(group: PodGroup) -> Json:
    """A PodGroup as it is written."""
    row = KINDS["PodGroup"]
    body = builtins(group)
    metadata = body.get("metadata")
    kept = (
        {key: value for key, value in metadata.items() if key != "creationTimestamp"}
        if isinstance(metadata, dict)
        else {}
    )
    return {"apiVersion": row.api_version, "kind": row.kind, **body, "metadata": kept}
