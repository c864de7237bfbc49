"""DaemonSets: one pod on each node that may bear it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from stromboli.cluster.body import Body, meta, part
from stromboli.cluster.owners.workload_pods import TOLERATED
from stromboli.filters.selectors import node_suits
from stromboli.filters.taints import admits
from stromboli.model.spec import NodeSpec, PodSpec, Taint, Toleration, without_nulls
from stromboli.server.controllers.workloads.objects import (
    PODS,
    Objects,
    is_ending,
    is_ready,
    label,
    phase,
    pod_parts,
    template_of,
    without_zeros,
)
from stromboli.server.controllers.workloads.revisions import HASH, Revisions, forget_old, revisions_of

DAEMON_SETS: Final = ("apps", "daemonsets")
NODES: Final = ("", "nodes")
_GENERATION: Final = "pod-template-generation"
_TOLERATIONS: Final = tuple(Toleration(key=key, operator="Exists") for key in TOLERATED)


def sync(objects: Objects, daemon_set: Body) -> None:
    """Make pods where they are missing, delete those of nodes that may not bear them.  Raises ApiFailure."""
    if meta(daemon_set).get("deletionTimestamp"):
        return
    revisions = revisions_of(objects, daemon_set)
    asked, nodes = _asked(template_of(daemon_set)), objects.store.of(NODES).sorted()
    wanted = {meta(node.body)["name"]: None for node in nodes if bears(node.body, asked)}
    try:
        _place(objects, daemon_set, revisions, wanted)
        _renew(objects, daemon_set, revisions)
    finally:
        _tell(objects, daemon_set, revisions, wanted)


def bears(node: Body, spec: PodSpec) -> bool:
    """Whether a node is one for pods of ``spec``: by its labels, its name and its taints."""
    taints = msgspec.convert(part(node, "spec", "taints") or (), tuple[Taint, ...])
    found = NodeSpec(meta(node)["name"], meta(node).get("labels") or {})
    return node_suits(spec, found) and admits((*spec.tolerations, *_TOLERATIONS), taints)


def _asked(template: Body) -> PodSpec:
    """What pods of a template ask of their nodes."""
    spec = template.get("spec") or {}
    asked = {key: spec[key] for key in ("nodeSelector", "affinity", "tolerations") if key in spec}
    return msgspec.convert(without_nulls(asked), PodSpec)


def _node_of(pod: Body) -> str:
    """The node that a pod is for: by its affinity, as it may not have one yet."""
    terms: Any = part(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    fields = [field for term in (terms or {}).get("nodeSelectorTerms") or () for field in term.get("matchFields") or ()]
    return str(fields[0]["values"][0]) if fields else str(part(pod, "spec", "nodeName") or "")


def _place(objects: Objects, daemon_set: Body, revisions: Revisions, wanted: Collection[str]) -> None:
    there: set[str] = set()
    for pod in objects.owned(daemon_set):
        node = _node_of(pod)
        over = phase(pod) in ("Failed", "Succeeded") or node not in wanted or node in there
        if over and not is_ending(pod):
            objects.delete(PODS, pod)
        there.add(node)
    for node in wanted:
        if node not in there:
            _make(objects, daemon_set, revisions, node)


def _make(objects: Objects, daemon_set: Body, revisions: Revisions, node: str) -> None:
    labels = {HASH: revisions.name.rpartition("-")[2], _GENERATION: str(meta(daemon_set).get("generation", 1))}
    metadata, spec = pod_parts(template_of(daemon_set), labels)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    tolerations = [{"key": key, "operator": "Exists", "effect": _effect(key)} for key in TOLERATED]
    spec = {
        **spec,
        "affinity": {**(spec.get("affinity") or {}), "nodeAffinity": affinity},
        "tolerations": [*(spec.get("tolerations") or ()), *tolerations],
    }
    objects.create(PODS, daemon_set, {**metadata, "generateName": f"{meta(daemon_set)['name']}-"}, spec=spec)


def _effect(key: str) -> str:
    return "NoExecute" if key in TOLERATED[:2] else "NoSchedule"


def _renew(objects: Objects, daemon_set: Body, revisions: Revisions) -> None:
    """Delete one pod of an earlier template, once all others are ready."""
    if part(daemon_set, "spec", "updateStrategy", "type") == "OnDelete":
        return
    pods = objects.owned(daemon_set)
    old = [pod for pod in pods if label(pod, HASH) != revisions.name.rpartition("-")[2] and not is_ending(pod)]
    rest = [pod for pod in pods if pod not in old]
    if old and all(is_ready(pod) and not is_ending(pod) for pod in rest):
        objects.delete(PODS, old[0])


def _tell(objects: Objects, daemon_set: Body, revisions: Revisions, wanted: Collection[str]) -> None:
    current = objects.get(DAEMON_SETS, meta(daemon_set)["namespace"], meta(daemon_set)["name"])
    if current is None:
        return
    pods = [pod for pod in objects.owned(current) if not is_ending(pod)]
    here = [pod for pod in pods if _node_of(pod) in wanted]
    ready, present = sum(map(is_ready, here)), revisions.name.rpartition("-")[2]
    updated = sum(label(pod, HASH) == present for pod in here)
    status = {
        "observedGeneration": meta(current).get("generation", 1),
        "currentNumberScheduled": len(here),
        "desiredNumberScheduled": len(wanted),
        "numberMisscheduled": len(pods) - len(here),
        "numberReady": ready,
        **without_zeros(numberAvailable=ready, numberUnavailable=len(wanted) - ready, updatedNumberScheduled=updated),
    }
    objects.set_status(DAEMON_SETS, current, status)
    name = meta(current)["name"]
    forget_old(objects, current, revisions, {f"{name}-{label(pod, HASH)}" for pod in pods})
