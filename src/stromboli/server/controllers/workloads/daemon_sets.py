"""DaemonSets: one pod on each node that may bear it."""

from __future__ import annotations

from typing import Any, Final

from stromboli.cluster.body import Body, meta, part
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
_TOLERATED: Final = (
    *(f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable")),
    *(f"node.kubernetes.io/{name}" for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")),
)
"""Taints that its pods tolerate."""


def sync(objects: Objects, daemon_set: Body) -> None:
    """Make pods where they are missing, delete those of nodes that may not bear them.  Raises ApiFailure."""
    if meta(daemon_set).get("deletionTimestamp"):
        return
    revisions = revisions_of(objects, daemon_set)
    nodes = {meta(entry.body)["name"]: entry.body for entry in objects.store.of(NODES).sorted()}
    wanted = [name for name, node in nodes.items() if bears(node, template_of(daemon_set).get("spec") or {})]
    try:
        _place(objects, daemon_set, revisions, wanted)
        _renew(objects, daemon_set, revisions)
    finally:
        _tell(objects, daemon_set, revisions, wanted)


def bears(node: Body, spec: Body) -> bool:
    """Whether a node is one for pods of ``spec``: by its labels and its taints."""
    labels = meta(node).get("labels") or {}
    if any(labels.get(key) != text for key, text in (spec.get("nodeSelector") or {}).items()):
        return False
    taints = part(node, "spec", "taints") or ()
    return all(_tolerates(spec, taint) for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute"))


def _tolerates(spec: Body, taint: Body) -> bool:
    if taint.get("key") in _TOLERATED:
        return True
    return any(
        one.get("effect", taint["effect"]) == taint["effect"]
        and (one.get("key") == taint["key"] or not one.get("key"))
        and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
        for one in spec.get("tolerations") or ()
    )


def _node_of(pod: Body) -> str:
    """The node that a pod is for: by its affinity, as it may not have one yet."""
    terms: Any = part(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    fields = [field for term in (terms or {}).get("nodeSelectorTerms") or () for field in term.get("matchFields") or ()]
    return str(fields[0]["values"][0]) if fields else str(part(pod, "spec", "nodeName") or "")


def _place(objects: Objects, daemon_set: Body, revisions: Revisions, wanted: list[str]) -> None:
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
    tolerations = [{"key": key, "operator": "Exists", "effect": _effect(key)} for key in _TOLERATED]
    spec = {
        **spec,
        "affinity": {**(spec.get("affinity") or {}), "nodeAffinity": affinity},
        "tolerations": [*(spec.get("tolerations") or ()), *tolerations],
    }
    objects.create(PODS, daemon_set, {**metadata, "generateName": f"{meta(daemon_set)['name']}-"}, spec=spec)


def _effect(key: str) -> str:
    return "NoExecute" if key in _TOLERATED[:2] else "NoSchedule"


def _renew(objects: Objects, daemon_set: Body, revisions: Revisions) -> None:
    """Delete one pod of an earlier template, once all others are ready."""
    if part(daemon_set, "spec", "updateStrategy", "type") == "OnDelete":
        return
    pods = objects.owned(daemon_set)
    old = [pod for pod in pods if label(pod, HASH) != revisions.name.rpartition("-")[2] and not is_ending(pod)]
    rest = [pod for pod in pods if pod not in old]
    if old and all(is_ready(pod) and not is_ending(pod) for pod in rest):
        objects.delete(PODS, old[0])


def _tell(objects: Objects, daemon_set: Body, revisions: Revisions, wanted: list[str]) -> None:
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
