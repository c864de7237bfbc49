"""Deployments: a ReplicaSet for each version of their template, scaled up and down as the strategy allows."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import Body, meta, part
from stromboli.server.controllers.workloads.objects import (
    Objects,
    is_active,
    pod_parts,
    short_hash,
    template_of,
    with_condition,
    without_zeros,
)
from stromboli.server.controllers.workloads.replica_sets import REPLICA_SETS

DEPLOYMENTS: Final = ("apps", "deployments")
HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MOST: Final = "deployment.kubernetes.io/max-replicas"
_NOT_PASSED: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, _DESIRED, _MOST})


class Rollout(NamedTuple):
    """A deployment with the ReplicaSet of its present template and those of earlier ones, the oldest first."""

    deployment: Body
    new: Body | None
    old: list[Body]

    @property
    def replicas(self) -> int:
        """How many pods are asked for."""
        return int(part(self.deployment, "spec", "replicas"))

    @property
    def all(self) -> list[Body]:
        """All ReplicaSets."""
        return [*self.old, *([self.new] if self.new else ())]


def sync(objects: Objects, deployment: Body) -> None:
    """Bring the ReplicaSets one step nearer to what is asked for, and say how far that is.  Raises ApiFailure."""
    if meta(deployment).get("deletionTimestamp"):
        return
    rollout = _rollout(objects, deployment)
    if not part(deployment, "spec", "paused"):
        rollout = _with_new(objects, rollout)
        _roll(objects, rollout)
    elif len(active := list(filter(_wanted, rollout.all)) or rollout.all[-1:]) == 1:  # a rollout stays as it is
        _scale(objects, active[0], rollout.replicas)
    rollout = _rollout(objects, _current(objects, deployment))
    _forget_old(objects, rollout)
    _tell(objects, rollout)


def _current(objects: Objects, deployment: Body) -> Body:
    return objects.get(DEPLOYMENTS, meta(deployment)["namespace"], meta(deployment)["name"]) or deployment


def _rollout(objects: Objects, deployment: Body) -> Rollout:
    sets = sorted(objects.owned(deployment, REPLICA_SETS), key=_revision)
    wanted = template_of(deployment)
    new = next((one for one in sets if _without_hash(template_of(one)) == _without_hash(wanted)), None)
    return Rollout(deployment, new, [one for one in sets if one is not new])


def _without_hash(template: Body) -> Body:
    labels = {key: text for key, text in (meta(template).get("labels") or {}).items() if key != HASH}
    annotations = meta(template).get("annotations") or {}
    return {"labels": labels, "annotations": annotations, "spec": template.get("spec")}


def _revision(body: Body) -> int:
    text = str((meta(body).get("annotations") or {}).get(REVISION, "0"))
    return int(text) if text.isdecimal() else 0


def _with_new(objects: Objects, rollout: Rollout) -> Rollout:
    """The rollout with a ReplicaSet of the present template, whose revision is the highest."""
    deployment = rollout.deployment
    revision = str(max(map(_revision, rollout.old), default=0) + 1)
    if rollout.new is None:
        rollout = rollout._replace(new=_made(objects, deployment, revision))
    elif rollout.old and _revision(rollout.new) < int(revision):
        objects.change(REPLICA_SETS, rollout.new, {"metadata": {"annotations": {REVISION: revision}}})
    number = str(max(_revision(rollout.new or {}), int(revision) if rollout.old else 0))
    if (meta(deployment).get("annotations") or {}).get(REVISION) != number:
        deployment = objects.change(DEPLOYMENTS, deployment, {"metadata": {"annotations": {REVISION: number}}})
    return _rollout(objects, deployment)


def _made(objects: Objects, deployment: Body, revision: str) -> Body:
    template = template_of(deployment)
    name = short_hash(_without_hash(template))
    metadata, spec = pod_parts(template, {HASH: name})
    selector = part(deployment, "spec", "selector") or {}
    labels = {**(selector.get("matchLabels") or {}), HASH: name}
    passed = {key: text for key, text in (meta(deployment).get("annotations") or {}).items() if key not in _NOT_PASSED}
    annotations = {**passed, REVISION: revision, _DESIRED: str(part(deployment, "spec", "replicas"))}
    wanted = {
        "replicas": 0,
        "selector": {**selector, "matchLabels": labels},
        "template": {"metadata": metadata, "spec": spec},
    }
    about = {"name": f"{meta(deployment)['name']}-{name}", "labels": metadata["labels"], "annotations": annotations}
    return objects.create(REPLICA_SETS, deployment, about, spec=wanted)


def _scale(objects: Objects, replica_set: Body, replicas: int) -> None:
    if _wanted(replica_set) != replicas:
        objects.change(REPLICA_SETS, replica_set, {"spec": {"replicas": replicas}})


def _wanted(replica_set: Body) -> int:
    return int(part(replica_set, "spec", "replicas") or 0)


def _available(replica_set: Body) -> int:
    """How many pods are available, of those that are asked for."""
    return min(int(part(replica_set, "status", "availableReplicas") or 0), _wanted(replica_set))


def _roll(objects: Objects, rollout: Rollout) -> None:
    if rollout.new is None:
        return
    if part(rollout.deployment, "spec", "strategy", "type") == "Recreate":
        for one in rollout.old:
            _scale(objects, one, 0)
        if not any(is_active(pod) for one in rollout.old for pod in objects.owned(one)):
            _scale(objects, rollout.new, rollout.replicas)
        return
    surge, unavailable = bounds(rollout.deployment)
    room = rollout.replicas + surge - sum(map(_wanted, rollout.all))
    wanted = _wanted(rollout.new)
    _scale(objects, rollout.new, min(rollout.replicas, wanted + max(room, 0)))
    _shrink(objects, rollout, rollout.replicas - unavailable)


def _shrink(objects: Objects, rollout: Rollout, least: int) -> None:
    """Scale old ReplicaSets down: first what is not available, then the rest while ``least`` pods are.

    No more go than wishes and statuses together allow, as a status may lag behind.
    """
    new = rollout.new or {}
    most = max(sum(map(_wanted, rollout.all)) - least - max(_wanted(new) - _available(new), 0), 0)
    spare = max(sum(map(_available, rollout.all)) - least, 0)
    for one in rollout.old:
        useless = min(_wanted(one) - _available(one), most)
        gone = min(_wanted(one) - useless, spare, most - useless)
        most, spare = most - useless - gone, spare - gone
        _scale(objects, one, _wanted(one) - useless - gone)


def bounds(deployment: Body) -> tuple[int, int]:
    """How many pods there may be beyond those asked for, and how many of these may be missing; never both none."""
    rolling = part(deployment, "spec", "strategy", "rollingUpdate") or {}
    replicas = int(part(deployment, "spec", "replicas"))
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return surge, unavailable or int(not surge)


def _share(amount: Any, replicas: int, *, up: bool) -> int:
    """A number, or a percentage of ``replicas`` rounded up or down."""
    if isinstance(amount, int):
        return amount
    exact = int(str(amount).rstrip("%")) * replicas / 100
    return math.ceil(exact) if up else math.floor(exact)


def _forget_old(objects: Objects, rollout: Rollout) -> None:
    """Keep as many empty ReplicaSets of earlier templates as asked for."""
    limit = int(part(rollout.deployment, "spec", "revisionHistoryLimit"))
    empty = [one for one in rollout.old if not _wanted(one) and not part(one, "status", "replicas")]
    for one in empty[: max(len(empty) - limit, 0)]:
        objects.delete(REPLICA_SETS, one)


def _tell(objects: Objects, rollout: Rollout) -> None:
    deployment, wanted = rollout.deployment, rollout.replicas
    there = sum(part(one, "status", "replicas") or 0 for one in rollout.all)
    updated = int(part(rollout.new or {}, "status", "replicas") or 0)
    available = sum(map(_available, rollout.all))
    counts = without_zeros(
        replicas=there, updatedReplicas=updated, readyReplicas=available, availableReplicas=available,
        unavailableReplicas=max(wanted - available, 0),
    )  # fmt: skip
    conditions = list(part(deployment, "status", "conditions") or ())
    least = wanted - bounds(deployment)[1]
    enough = available >= least
    conditions = with_condition(
        conditions, objects.now(), type="Available", status="True" if enough else "False",
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )  # fmt: skip
    if rollout.new is not None:
        done = updated == wanted == there == available
        name = f'ReplicaSet "{meta(rollout.new)["name"]}"'
        conditions = with_condition(
            conditions, objects.now(), type="Progressing", status="True",
            reason="NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
            message=f"{name} has successfully progressed." if done else f"{name} is progressing.",
        )  # fmt: skip
    generation = meta(deployment).get("generation", 1)
    objects.set_status(DEPLOYMENTS, deployment, {"observedGeneration": generation, **counts, "conditions": conditions})
