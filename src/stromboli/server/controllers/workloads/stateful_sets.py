"""StatefulSets: numbered pods, each with claims of its own, in order."""

from __future__ import annotations

from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ApiFailure
from stromboli.server.controllers.workloads.objects import (
    MOST_AT_ONCE,
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

STATEFUL_SETS: Final = ("apps", "statefulsets")
_CLAIMS: Final = ("", "persistentvolumeclaims")
_NAME: Final = "statefulset.kubernetes.io/pod-name"
_INDEX: Final = "apps.kubernetes.io/pod-index"


def sync(objects: Objects, stateful_set: Body) -> None:
    """Make the next pods, delete the last ones, renew old ones, and count them.  Raises ApiFailure."""
    if meta(stateful_set).get("deletionTimestamp"):
        return
    revisions = revisions_of(objects, stateful_set)
    try:
        if _scale(objects, stateful_set, revisions):
            _renew(objects, stateful_set, revisions)
    finally:
        _tell(objects, stateful_set, revisions)


def _by_index(objects: Objects, stateful_set: Body) -> dict[int, Body]:
    prefix = f"{meta(stateful_set)['name']}-"
    found = {}
    for pod in objects.owned(stateful_set):
        rest = meta(pod)["name"].removeprefix(prefix)
        if rest.isdecimal():
            found[int(rest)] = pod
    return found


def _first(stateful_set: Body) -> int:
    return int(part(stateful_set, "spec", "ordinals", "start") or 0)


def _scale(objects: Objects, stateful_set: Body, revisions: Revisions) -> bool:
    """Make what is missing and delete what is too much; whether all is as asked for."""
    pods, first = _by_index(objects, stateful_set), _first(stateful_set)
    ordered = part(stateful_set, "spec", "podManagementPolicy") != "Parallel"
    last, made = first + int(part(stateful_set, "spec", "replicas")), 0
    for index in range(first, last):
        made += index not in pods
        if not _settled(objects, stateful_set, revisions, index, pods.get(index)) and (ordered or made == MOST_AT_ONCE):
            return False
    beyond = sorted((index for index in pods if not first <= index < last), reverse=True)
    for index in beyond[:1] if ordered else beyond:
        if not is_ending(pods[index]):
            objects.delete(PODS, pods[index])
    return not beyond


def _settled(objects: Objects, stateful_set: Body, revisions: Revisions, index: int, pod: Body | None) -> bool:
    """Whether the pod of an index is there and ready; one that is missing is made, one that has ended goes."""
    if pod is None:
        _make(objects, stateful_set, revisions, index)
        return False
    if phase(pod) in ("Failed", "Succeeded") and not is_ending(pod):
        objects.delete(PODS, pod)
    return is_ready(pod) and not is_ending(pod)


def _make(objects: Objects, stateful_set: Body, revisions: Revisions, index: int) -> None:
    name = f"{meta(stateful_set)['name']}-{index}"
    labels = {HASH: revisions.name, _NAME: name, _INDEX: str(index)}
    metadata, spec = pod_parts(template_of(stateful_set), labels)
    claims = part(stateful_set, "spec", "volumeClaimTemplates") or []
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for claim in claims:
        claimed = f"{meta(claim)['name']}-{name}"
        _claim(objects, stateful_set, claim, claimed)
        volumes[meta(claim)["name"]] = {
            "name": meta(claim)["name"],
            "persistentVolumeClaim": {"claimName": claimed},
        }
    service = part(stateful_set, "spec", "serviceName")
    spec = {**spec, "hostname": name, **({"subdomain": service} if service else {})}
    if volumes:
        spec["volumes"] = list(volumes.values())
    objects.create(PODS, stateful_set, {**metadata, "name": name}, spec=spec)


def _claim(objects: Objects, stateful_set: Body, claim: Body, name: str) -> None:
    """Claims stay when the set goes, so they have no owner."""
    namespace = meta(stateful_set)["namespace"]
    if objects.get(_CLAIMS, namespace, name) is not None:
        return
    labels = part(stateful_set, "spec", "selector", "matchLabels") or {}
    body = {"metadata": {"name": name, "labels": {**labels, **(meta(claim).get("labels") or {})}}}
    try:
        objects.make(_CLAIMS, namespace, {**body, "spec": claim.get("spec") or {}})
    except ApiFailure as failure:
        if failure.reason != "AlreadyExists":
            raise


def _renew(objects: Objects, stateful_set: Body, revisions: Revisions) -> None:
    """Delete the last pod of an earlier template, once those after it are ready."""
    strategy = part(stateful_set, "spec", "updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    pods = _by_index(objects, stateful_set)
    for index in sorted((index for index in pods if index - _first(stateful_set) >= partition), reverse=True):
        pod = pods[index]
        if label(pod, HASH) != revisions.name:
            objects.delete(PODS, pod)
            return
        if is_ending(pod) or not is_ready(pod):
            return


def _tell(objects: Objects, stateful_set: Body, revisions: Revisions) -> None:
    current = objects.get(STATEFUL_SETS, meta(stateful_set)["namespace"], meta(stateful_set)["name"])
    if current is None:
        return
    pods = [pod for pod in _by_index(objects, current).values() if not is_ending(pod)]
    ready, updated = sum(map(is_ready, pods)), sum(label(pod, HASH) == revisions.name for pod in pods)
    before = part(current, "status", "currentRevision") or revisions.name
    done = updated == len(pods) == int(part(current, "spec", "replicas")) == ready
    others = sum(label(pod, HASH) == before for pod in pods)
    status = {
        "observedGeneration": meta(current).get("generation", 1),
        "replicas": len(pods),
        "availableReplicas": ready,
        **without_zeros(readyReplicas=ready, updatedReplicas=updated, currentReplicas=updated if done else others),
        "currentRevision": revisions.name if done else before,
        "updateRevision": revisions.name,
        "collisionCount": 0,
    }
    objects.set_status(STATEFUL_SETS, current, status)
    forget_old(objects, current, revisions, {label(pod, HASH) for pod in pods})
