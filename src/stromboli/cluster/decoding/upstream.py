"""PodGroups of scheduling.k8s.io as the jobs that they are here, and what is said of them in their own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import (
    POD_GROUP_INQUEUE,
    POD_GROUP_PENDING,
    POD_GROUP_RUNNING,
    PodGroupCondition,
    PodGroupSpec,
    PodGroupStatus,
)
from stromboli.cluster import kinds
from stromboli.cluster.decoding.amounts import COUNT, INT32, check_whole
from stromboli.cluster.decoding.decode import naming, podgroup_of
from stromboli.model import names
from stromboli.model.claims import MOST_GROUP_CLAIMS
from stromboli.model.job import Job
from stromboli.model.podgroup import PodGroup, UpstreamSpec, is_upstream, upstream_name
from stromboli.model.values.times import seconds

SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition that says whether the gang has been placed; once it is True it stays so."""
_SCHEDULED_BEFORE: Final = {"scheduling.k8s.io/v1alpha2": "PodGroupScheduled"}
"""What it was called in older versions."""
_ALL_NAMES: Final = frozenset({SCHEDULED, *_SCHEDULED_BEFORE.values()})
REASON_SCHEDULED: Final = "Scheduled"
_OURS: Final = (names.POD_GROUP_UNSCHEDULABLE, names.POD_GROUP_SCHEDULED, names.POD_GROUP_NOT_ADMITTED)
_WAITING: Final = ("", POD_GROUP_PENDING, POD_GROUP_INQUEUE)


def any_group_of(group: kinds.PodGroup | kinds.UpstreamPodGroup, jobs: Mapping[str, Job]) -> PodGroup:
    """The value of a PodGroup of either sort.

    What is known of one of Kubernetes' own beyond what it says, its phase and the reasons why it waits, stands in
    ``jobs``.
    """
    return podgroup_of(group) if isinstance(group, kinds.PodGroup) else _translated(group, jobs)


def in_queue(group: PodGroup, queue: str) -> PodGroup:
    """The PodGroup in a queue of that name."""
    return msgspec.structs.replace(group, spec=msgspec.structs.replace(group.spec, queue=queue))


def _translated(group: kinds.UpstreamPodGroup, jobs: Mapping[str, Job]) -> PodGroup:
    meta, spec, name = group.metadata, group.spec, upstream_name(group.metadata.name)
    uid = meta.uid or f"{meta.namespace}/{name}"
    with naming("PodGroup", meta):
        least = spec.scheduling_policy.gang.min_count if spec.scheduling_policy.gang else 1
        check_whole(least, COUNT, "spec.schedulingPolicy.gang.minCount")
        check_whole(spec.priority, INT32, "spec.priority")
        created = seconds(meta.creation_timestamp, "metadata.creationTimestamp")
    wanted = PodGroupSpec(
        min_member=least,
        priority_class_name=spec.priority_class_name,
        network_topology=_topology(spec),
    )
    status = _status(group, jobs.get(f"{meta.namespace}/{name}"), uid)
    return PodGroup(
        uid, meta.namespace, name, created, meta.labels, meta.annotations, wanted, status,
        spec.priority, spec.evicted_whole, spec.preemption_policy == names.NEVER_PREEMPTS, tuple(_claims(group)),
        spec.parent_composite_pod_group_name,
    )  # fmt: skip


def _claims(group: kinds.UpstreamPodGroup) -> Iterator[str]:
    """The claims that the pods share; one made from a template is known once the status names it."""
    made = {one.name: one.resource_claim_name for one in group.status.resource_claim_statuses}
    for claim in group.spec.resource_claims[:MOST_GROUP_CLAIMS]:
        if name := claim.resource_claim_name or made.get(claim.name, ""):
            yield f"{group.metadata.namespace}/{name}"


def _topology(spec: UpstreamSpec) -> NetworkTopology | None:
    """Within one domain of the first key: a tier of hypernodes that bears the label's name; without one nowhere."""
    keys = [one.key for one in spec.scheduling_constraints.topology if one.key]
    return NetworkTopology(highest_tier_allowed=0, highest_tier_name=keys[0]) if keys else None


def topology_keys(jobs: Iterable[Job]) -> frozenset[str]:
    """The labels of nodes within one value of which PodGroups of scheduling.k8s.io among ``jobs`` want their pods."""
    asked = (job.facts.network_topology for job in jobs if is_upstream(job.uid))
    return frozenset(topology.highest_tier_name for topology in asked if topology is not None)


def _status(group: kinds.UpstreamPodGroup, known: Job | None, uid: str) -> PodGroupStatus:
    theirs = tuple(
        PodGroupCondition(one.type, one.status, "", one.last_transition_time, one.reason, one.message)
        for one in group.status.conditions
    )
    if known is not None and known.group.uid == uid:
        ours = tuple(one for one in known.group.status.conditions if one.type in _OURS)
        return PodGroupStatus(known.group.status.phase, (*ours, *theirs))
    placed = any(one.type in _ALL_NAMES and one.status == names.CONDITION_TRUE for one in theirs)
    return PodGroupStatus(POD_GROUP_RUNNING if placed else POD_GROUP_PENDING, theirs)


def scheduled_in(version: str) -> str:
    """What the condition is called in a version of the API, ``group/version``."""
    return _SCHEDULED_BEFORE.get(version, SCHEDULED)


def told_upstream(
    phase: str, conditions: tuple[PodGroupCondition, ...], now: str, scheduled: str
) -> PodGroupCondition | None:
    """The condition that is to be written, ``scheduled`` by name; None where what stands there says it all."""
    known = next((one for one in conditions if one.type == scheduled), None)
    wanted = _wanted(phase, conditions)
    if wanted is None or (known is not None and known.status == names.CONDITION_TRUE):
        return None
    if known is not None and (known.status, known.reason, known.message) == wanted:
        return None
    since = known.last_transition_time if known is not None and known.status == wanted[0] else now
    status, reason, message = wanted
    return PodGroupCondition(scheduled, status, "", since, reason, message)


def with_theirs(
    ours: tuple[PodGroupCondition, ...], standing: tuple[PodGroupCondition, ...]
) -> tuple[PodGroupCondition, ...]:
    """The conditions of a PodGroup: those that a cycle has set, and the others as the object has them by now."""
    kept = tuple(one for one in standing if one.type not in _OURS)
    return (*(one for one in ours if one.type in _OURS), *kept)


def placed_anew(phase: str, conditions: tuple[PodGroupCondition, ...], now: str) -> PodGroupCondition | None:
    """What takes the scheduler's DisruptionTarget back once the gang has been placed again; None where none stands."""
    of_ours = (names.DISRUPTION_TARGET, names.CONDITION_TRUE, names.PREEMPTION_BY_SCHEDULER)
    if phase in _WAITING or not any((one.type, one.status, one.reason) == of_ours for one in conditions):
        return None
    text = "the pods have been scheduled again"
    return PodGroupCondition(names.DISRUPTION_TARGET, names.CONDITION_FALSE, "", now, REASON_SCHEDULED, text)


def _wanted(phase: str, conditions: tuple[PodGroupCondition, ...]) -> tuple[str, str, str] | None:
    """Status, reason and message of the condition; None as long as there is nothing to say."""
    if phase not in _WAITING:
        return names.CONDITION_TRUE, REASON_SCHEDULED, "all pods that must be placed together have been placed"
    says = (names.POD_GROUP_UNSCHEDULABLE, names.POD_GROUP_NOT_ADMITTED)
    why = [one.message for one in conditions if one.type in says and one.status == names.CONDITION_TRUE]
    return (names.CONDITION_FALSE, names.REASON_UNSCHEDULABLE, why[-1]) if why else None
