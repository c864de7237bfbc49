"""Disruption budgets: which pods they cover, how many may go just now, and the eviction that honours them."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

from stromboli.cluster.body import Body, changed, meta, part
from stromboli.errors import ApiFailure
from stromboli.server.admission.admission import World
from stromboli.server.print.conditions import readiness
from stromboli.server.status_errors import too_many
from stromboli.server.storage.selection import matches, of_selector

_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def status_of(budget: Body, world: World) -> Body:
    """The status that the budget should have, as pods are now."""
    pods = [pod for pod in covered(budget, world) if part(pod, "status", "phase") not in ("Succeeded", "Failed")]
    leaving = _leaving(budget, pods)
    healthy = sum(
        1
        for pod in pods
        if readiness(pod) == "True" and "deletionTimestamp" not in meta(pod) and meta(pod).get("name") not in leaving
    )
    wanted = _desired(budget.get("spec") or {}, len(pods))
    allowed = max(0, healthy - wanted)
    return {
        "conditions": [_condition(budget, allowed)],
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "disruptionsAllowed": allowed,
        "expectedPods": len(pods),
        "observedGeneration": meta(budget).get("generation", 1),
    } | ({"disruptedPods": leaving} if leaving else {})


def _leaving(budget: Body, pods: Iterable[Body]) -> Body:
    """When those of ``pods`` were evicted that are not being deleted yet, by name."""
    standing = {meta(pod).get("name") for pod in pods if "deletionTimestamp" not in meta(pod)}
    disrupted = part(budget, "status", "disruptedPods") or {}
    return {name: when for name, when in disrupted.items() if name in standing}


def _condition(budget: Body, allowed: int) -> Body:
    known: Body = next(iter(part(budget, "status", "conditions") or ()), {})
    status = "True" if allowed else "False"
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    return {
        "lastTransitionTime": since or meta(budget).get("creationTimestamp"),
        "message": "",
        "observedGeneration": meta(budget).get("generation", 1),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "status": status,
        "type": "DisruptionAllowed",
    }


def covered(budget: Body, world: World) -> Iterable[Body]:
    """The pods that the budget's selector chooses."""
    terms = of_selector(part(budget, "spec", "selector"))
    if terms is None:
        return []
    pods = world.bodies("", "pods", meta(budget).get("namespace", ""))
    return [pod for pod in pods if matches(terms, meta(pod).get("labels"))]


def _desired(spec: Body, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - scaled(spec["maxUnavailable"], expected))
    return scaled(spec.get("minAvailable", 0), expected)


def scaled(value: Any, total: int) -> int:
    """A number, or a percentage of ``total`` rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return ceil(int(value[:-1]) * total / 100)
    return int(value)


def budgets_of(pod: Body, world: World) -> list[Body]:
    """The budgets that cover a pod."""
    found = []
    for budget in world.bodies("policy", "poddisruptionbudgets", meta(pod).get("namespace", "")):
        terms = of_selector(part(budget, "spec", "selector"))
        if terms is not None and matches(terms, meta(pod).get("labels")):
            found.append(budget)
    return found


def taken_from(pod: Body, world: World, when: str) -> Body | None:
    """The budget that the pod's eviction uses, with one disruption less; None if none covers it.

    Raises if none is left.
    """
    if part(pod, "status", "phase") in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in meta(pod):
        return None
    budgets = budgets_of(pod, world)
    if len(budgets) > 1:
        raise ApiFailure(500, "InternalError", _SEVERAL, {})
    for budget in budgets:
        return _less_one(budget, status_of(budget, world), meta(pod)["name"], when)
    return None


def _less_one(budget: Body, status: Body, pod: str, when: str) -> Body:
    name = meta(budget)["name"]
    if status["disruptionsAllowed"] <= 0:
        needs, has = status["desiredHealthy"], status["currentHealthy"]
        told = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise too_many(_VIOLATED, {"causes": [{"reason": "DisruptionBudget", "message": told}]})
    left = {"disruptionsAllowed": status["disruptionsAllowed"] - 1}
    gone = {**status.get("disruptedPods", {}), pod: when}
    return changed(budget, status={**status, **left, "disruptedPods": gone})
