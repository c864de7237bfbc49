"""Pods as they are created: the gate of their queue, the nodes of their group, and their disruption budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from stromboli.crds.admission.resource_groups import ResourceGroup
from stromboli.crds.admission.world import Object, Scene
from stromboli.model.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_ALLOCATION_GATE

_BUDGETS: Final = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def default_pod(pod: Object, scene: Scene) -> Object:
    """A pod with the gate that it asks for, and with what the first group of nodes that takes it prescribes.

    Foreign gates stay as they are.
    """
    spec, metadata = _mapping(pod, "spec"), _mapping(pod, "metadata")
    annotations = _mapping(metadata, "annotations")
    changed = dict(spec)
    if scene.settings.gates_pods and annotations.get(QUEUE_ALLOCATION_GATE) == "true":
        changed |= _gated(spec)
    namespace = str(metadata.get("namespace") or "")
    group = next((one for one in scene.settings.resource_groups if one.takes(namespace, annotations)), None)
    if group is not None:
        changed |= _sent_to(group, spec)
    return pod if changed == spec else {**pod, "spec": changed}


def _gated(spec: Mapping[str, object]) -> dict[str, object]:
    gates = _rows(spec, "schedulingGates")
    if any(isinstance(gate, Mapping) and gate.get("name") == QUEUE_ALLOCATION_GATE for gate in gates):
        return {}
    return {"schedulingGates": [*gates, {"name": QUEUE_ALLOCATION_GATE}]}


def _sent_to(group: ResourceGroup, spec: Mapping[str, object]) -> dict[str, object]:
    """The fields of a pod's spec that the group changes."""
    changed: dict[str, object] = {}
    if group.labels:
        changed["nodeSelector"] = {**_mapping(spec, "nodeSelector"), **group.labels}
    if group.affinity is not None and not spec.get("affinity"):
        changed["affinity"] = group.affinity
    if group.tolerations:
        changed["tolerations"] = [*_rows(spec, "tolerations"), *group.tolerations]
    if group.scheduler:
        changed["schedulerName"] = group.scheduler
    return changed


def check_new_pod(pod: Object, scene: Scene) -> list[str]:
    """What is wrong with the disruption budget that a new pod of ours carries in its annotations."""
    if _mapping(pod, "spec").get("schedulerName") not in scene.settings.scheduler_names:
        return []
    annotations = _mapping(_mapping(pod, "metadata"), "annotations")
    given = [key for key in _BUDGETS if key in annotations]
    problem = next(filter(None, (_budget_problem(key, str(annotations[key])) for key in given)), "")
    if not problem and len(given) > 1:
        problem = f"not allow configure multiple annotations <[{' '.join(_BUDGETS)}]> at same time"
    return [problem] if problem else []


def _budget_problem(key: str, value: str) -> str:
    if _INTEGER.fullmatch(value):
        return "" if int(value) > 0 else f'invalid value <"{value}"> for {key}, it must be a positive integer'
    number = value.replace("%", "")
    if not _INTEGER.fullmatch(number):
        return f'invalid value strconv.Atoi: parsing "{number}": invalid syntax for {key}'
    if 0 < int(number) < 100:
        return ""
    return f'invalid value <"{value}"> for {key}, it must be a valid percentage which between 1% ~ 99%'


def _mapping(value: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _rows(value: Mapping[str, object], key: str) -> list[object]:
    found = value.get(key)
    return found if isinstance(found, list) else []
