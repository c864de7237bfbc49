"""The controller of PodGroups: pods of ours that name none get one, shared by all pods of one owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from stromboli.api.fields import NetworkTopology
from stromboli.api.kinds import KINDS, POD_GROUPS, PODS
from stromboli.api.scheduling import PodGroupSpec
from stromboli.cluster.complete import INHERITED, group_of_pod, topology_of
from stromboli.cluster.decoding.annotations import read_int
from stromboli.cluster.kinds import Pod, PodGroup
from stromboli.cluster.owners.gangs import Owner
from stromboli.cluster.usage import quota_usage
from stromboli.controllers.changes import (
    Change,
    Create,
    Json,
    Outcome,
    Patch,
    Subject,
    builtins,
    difference,
    warning,
)
from stromboli.controllers.owners import Climb, Level, texts_of
from stromboli.controllers.world import World
from stromboli.errors import ManifestError
from stromboli.model.names import GROUP_MIN_MEMBER, GROUP_NAME, QUEUE_NAME, TASK_SPEC

SCALED: Final = ("ReplicaSet", "StatefulSet")
"""Kinds whose PodGroup goes when they are scaled to nothing."""

FOLLOWING: Final = ("minMember", "minTaskMember", "minResources", "subGroupPolicy")
"""Fields of a top owner's PodGroup that change with the owner."""
SOON: Final = 0.25
"""Seconds until a pod is looked at again whose owner is being read."""
NOT_READ: Final = "OwnerNotRead"
NOT_READ_TEXT: Final = (
    "{kind} {name} cannot be read ({why}), so its pods are not grouped by it; the controllers need the right to get "
    "it, as `stromboli manifests` grants it for the kinds that it knows"
)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How pods are grouped: whether owners' annotations count, and the kinds of owners that are grouped by unasked."""

    inherit: bool = True
    by: frozenset[str] = frozenset()


USUAL: Final = Grouping()


def look(pod: Pod, world: World, how: Grouping = USUAL, now: float = 0.0) -> Outcome:
    """Put a pod of ours that names no PodGroup into one."""
    if pod.metadata.annotations.get(GROUP_NAME):
        return Outcome()
    climb = Climb(pod, world, how.by, now, inherit=how.inherit)
    if climb.missing is not None:
        claimed = world.readings.claim(climb.missing, now)
        return Outcome([[climb.missing]], after=0.0) if claimed else Outcome(after=SOON)
    try:
        group = wanted(pod, climb, how)
    except ManifestError as error:
        return Outcome(error=str(error))
    return _joined(pod, group, climb, world)


def _joined(pod: Pod, group: PodGroup, climb: Climb, world: World) -> Outcome:
    """The PodGroup is made, or follows its owner, and the pod names it."""
    meta, name = pod.metadata, group.metadata.name
    outcome = Outcome()
    if climb.denied is not None:
        reference, why = climb.denied
        text = NOT_READ_TEXT.format(kind=reference.kind, name=reference.name, why=why)
        outcome.then(warning(Subject("v1", "Pod", meta.namespace, meta.name, meta.uid), NOT_READ, text))
    changes = _changes(group, world, climb.top is not None)
    annotations = {GROUP_NAME: name, **_role(pod, climb)}
    joining: Json = {"metadata": {"uid": meta.uid, "annotations": annotations}}
    return outcome.then(*changes).then(Patch(PODS, meta.namespace, meta.name, joining))


def _changes(group: PodGroup, world: World, follows: bool) -> list[Change]:
    meta = group.metadata
    known = world.pod_groups.get(meta.namespace, meta.name)
    if known is None:
        return [Create(POD_GROUPS, meta.namespace, body_of(group))]
    if not follows:
        return []
    patch = difference(_following(builtins(known.spec)), _following(builtins(group.spec)))
    return [Patch(POD_GROUPS, meta.namespace, meta.name, {"spec": patch})] if patch else []


def _following(spec: Json) -> Json:
    return {name: spec[name] for name in FOLLOWING if name in spec}


def wanted(pod: Pod, climb: Climb, how: Grouping = USUAL) -> PodGroup:
    """The PodGroup that ``pod`` belongs into.  Raises :class:`~stromboli.errors.ManifestError`."""
    group = group_of_pod(pod)
    if climb.top is not None:
        return _of_owner(group, pod, climb.levels[: climb.top + 1], how)
    if not how.inherit:
        return group
    minimum = _minimum(climb.inherited, 1)
    spec = replace(group.spec, min_member=minimum, min_resources=quota_usage([(pod.spec, minimum)]))
    return _inheriting(replace(group, spec=spec), climb.inherited)


def _inheriting(group: PodGroup, owned: list[Mapping[str, str]]) -> PodGroup:
    inherited = {key: text for texts in owned for key, text in texts.items() if key.startswith(INHERITED)}
    metadata = replace(group.metadata, annotations={**inherited, **group.metadata.annotations})
    return replace(group, metadata=metadata)


def _minimum(owned: list[Mapping[str, str]], otherwise: int) -> int:
    """How many pods must run at once: what the first owner says that says anything; 1 for what is no such number."""
    text = next((texts[GROUP_MIN_MEMBER] for texts in owned if GROUP_MIN_MEMBER in texts), None)
    if text is None:
        return otherwise
    number = read_int(text, 32)
    return 1 if number is None or number < 0 else number


# -- By an owner's own word ------------------------------------------------------------------------------------------


def _of_owner(group: PodGroup, pod: Pod, levels: list[Level], how: Grouping) -> PodGroup:
    """The one PodGroup of all pods below the last of ``levels``, or of one of its parts."""
    top = levels[-1]
    owner = replace(top.reference, controller=True)
    metadata = replace(group.metadata, name=_name(pod, top), owner_references=(owner,))
    texts = list(texts_of(levels))[::-1] if how.inherit else []
    group = replace(group, metadata=metadata, spec=_spec(group.spec, pod, levels, texts))
    return _inheriting(group, texts[::-1])


def _name(pod: Pod, top: Level) -> str:
    name = f"podgroup-{top.reference.uid}"
    part = pod.metadata.labels.get(top.row.part, "") if top.row and top.row.part else ""
    return f"{name}-{part}" if part else name


def _spec(spec: PodGroupSpec, pod: Pod, levels: list[Level], texts: list[Mapping[str, str]]) -> PodGroupSpec:
    """What the owners say of the gang, the highest first."""
    sized = _sized(levels)
    all_that_start = sized.owner.least if sized else 1
    least = _minimum(texts, all_that_start)
    whole = sized is not None and least == all_that_start
    spec = replace(
        spec,
        min_member=least,
        min_resources=sized.owner.usage() if sized and whole else quota_usage([(pod.spec, least)]),
        queue=spec.queue or _first(texts, QUEUE_NAME) or _said(levels, "queue"),
        priority_class_name=_said(levels, "priority") or spec.priority_class_name,
        network_topology=spec.network_topology or _topology(texts),
    )
    return replace(spec, **_parts(sized)) if sized and whole else spec


def _parts(sized: Level) -> dict[str, Any]:
    """How the gang is divided: into gangs within it, or into roles."""
    row = sized.row
    if row is None or not row.label:
        return {}
    if row.sub_gang:
        return {"sub_group_policy": sized.owner.sub_gangs(row)}
    return {"min_task_member": sized.owner.role_minimums()}


def _topology(texts: list[Mapping[str, str]]) -> NetworkTopology | None:
    return topology_of({key: text for one in texts[::-1] for key, text in one.items()})


def _sized(levels: list[Level]) -> Level | None:
    """The highest owner that says how many pods there are."""
    return next((level for level in reversed(levels) if level.owner.parts or level.owner.minimum is not None), None)


def _said(levels: list[Level], field: str) -> str:
    return next((text for level in reversed(levels) if (text := _field(level.owner, field))), "")


def _field(owner: Owner, field: str) -> str:
    return owner.queue if field == "queue" else owner.priority


def _first(texts: list[Mapping[str, str]], key: str) -> str:
    return next((one[key] for one in texts if one.get(key)), "")


def _role(pod: Pod, climb: Climb) -> Json:
    """The annotation that names the pod's role, where its gang counts roles and the pod names none."""
    sized = None if climb.top is None else _sized(climb.levels[: climb.top + 1])
    row = sized.row if sized else None
    role = pod.metadata.labels.get(row.label, "").lower() if row and row.label and not row.sub_gang else ""
    return {} if not role or TASK_SPEC in pod.metadata.annotations else {TASK_SPEC: role}


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
