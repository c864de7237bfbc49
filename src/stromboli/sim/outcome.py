"""What a run decided, in the form in which recorded cases state it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stromboli.api.scheduling import PodGroupCondition
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import Plan, PodConditionUpdate, PodGroupUpdate
from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.names import JOB_ALLOCATED_HYPER_NODE
from stromboli.model.resources.quantity import MAX_INT64
from stromboli.model.resources.resource import Resource
from stromboli.sim.explanation.unoffered_names import ByQueue

Json = dict[str, Any]

_TIMES = ("predicate-time", "vgpu-time", "bind-time")
UNLIMITED = float(MAX_INT64)
"""From here on a figure stands for no limit: unlimited scalars have it, cpu and memory more."""


def amounts(resource: Resource) -> Json:
    """A resource by name, in the scheduler's units, rounded to a millionth; ``"inf"`` stands for unlimited."""
    named = {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}
    return {name: number(value) for name, value in named.items() if value}


def number(value: float) -> float | str:
    """A figure, rounded to a millionth."""
    return "inf" if value >= UNLIMITED or math.isinf(value) else round(value, 6)


def queue_figures(session: Session) -> Json:
    """Figures that a queue plugin has published, by queue."""
    found: Json = {}
    rest = ByQueue(session)
    for name, queue in session.queues.items():
        if queue.figures:
            given = {key: value for key, value in queue.figures.items() if value is not None}
            figures = {key: _figure(value, name, key, rest) for key, value in given.items()}
            found[name] = {key: value for key, value in figures.items() if value not in ({}, None)}
    return found


def _figure(value: Resource | float, queue: str, key: str, rest: ByQueue) -> object:
    return amounts(rest.spelled(queue, key, value)) if isinstance(value, Resource) else value


def close_figures(session: Session, figures: Json) -> None:
    """Add what queues hold when the actions are done, to those that have figures."""
    rest = ByQueue(session)
    for name, entry in figures.items():
        branch = session.axes.resource(session.axes.full(session.queues[name].branch))
        entry["allocatedAtClose"] = amounts(rest.spelled(name, "allocated", branch))


def with_status(figures: Json, plan: Plan) -> Json:
    """The queues' figures, with the status that is written."""
    found = {name: dict(entry) for name, entry in figures.items()}
    for update in plan.queues:
        found.setdefault(update.name, {})["statusAllocated"] = update.allocated
    return found


def cycle_record(plan: Plan) -> Json:
    """Binds, evictions and reservations of one cycle."""
    return {
        "binds": {bind.key: bind.node for bind in plan.binds},
        "evictions": [eviction.key for eviction in plan.evictions],
        "pipelined": {held.key: held.node for held in plan.reservations},
    }


def outcome(plans: list[Plan], state: ClusterState, figures: Json, shares: Json) -> Json:
    """The outcome of a run: decisions of all cycles, statuses after the last."""
    last = plans[-1]
    records = [cycle_record(plan) for plan in plans]
    found: Json = {
        "binds": {key: node for record in records for key, node in record["binds"].items()},
        "evictions": [key for record in records for key in record["evictions"]],
        "evictReasons": {e.key: e.reason for plan in plans for e in plan.evictions},
        "pipelined": records[-1]["pipelined"],
        "allocatedNotBound": {held.key: held.node for held in last.allocated_not_bound},
        "podGroups": pod_groups(state, last),
        "podConditions": {update.key: _pod_condition(update) for update in last.pod_conditions},
    }
    found.update(_pod_annotations(plans, state))
    found["queues"] = with_status(figures, last)
    if shares:
        found["drfJobShares"] = shares
    if len(plans) > 1:
        found["cycles"] = records
    return found


def _pod_condition(update: PodConditionUpdate) -> Json:
    nominated = {"nominatedNode": update.nominated_node} if update.nominated_node else {}
    return {"reason": update.reason, "message": update.message, **nominated}


def _pod_annotations(plans: list[Plan], state: ClusterState) -> Json:
    """What pods are told with their bindings, and what their claims get, if anything."""
    shown = {bind.key: _lasting(bind.annotations) for plan in plans for bind in plan.binds if bind.annotations}
    volumes = {claim: what for plan in plans for bind in plan.binds for claim, what in bind.volumes.items()}
    told = (("podAnnotations", shown), ("volumes", volumes), ("claims", _claims(plans, state)))
    return {name: given for name, given in told if given}


def _claims(plans: list[Plan], state: ClusterState) -> Json:
    """The devices of allocated ResourceClaims."""
    before = state.storage.devices.shown().claims.items()
    found = {key: claim.status.allocation for key, claim in before if claim.status.allocation is not None}
    found.update((key, given) for plan in plans for bind in plan.binds for key, given in bind.claims.items())
    return {
        key: [f"{one.request}={one.driver}/{one.pool}/{one.device}" for one in given.devices.results]
        for key, given in sorted(found.items())
    }


def _lasting(annotations: Mapping[str, str]) -> Json:
    """Annotations of a binding, those left out that say when it was decided."""
    return {key: value for key, value in annotations.items() if not key.endswith(_TIMES)}


def pod_groups(state: ClusterState, plan: Plan) -> Json:
    """Every PodGroup as it stands once the plan is written."""
    updates = {update.key: update for update in plan.pod_groups}
    return {uid: _pod_group(job, updates.get(uid)) for uid, job in sorted(state.jobs.items()) if job.facts.queue}


def _pod_group(job: Job, update: PodGroupUpdate | None) -> Json:
    status = update or job.group.status
    shown: Mapping[str, object] = {
        "phase": status.phase,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "allocatedHyperNode": job.group.annotations.get(JOB_ALLOCATED_HYPER_NODE, ""),
        "conditions": [_condition(condition) for condition in status.conditions],
    }
    return {key: value for key, value in shown.items() if value}


def _condition(condition: PodGroupCondition) -> Json:
    shown = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {key: value for key, value in shown.items() if value}
