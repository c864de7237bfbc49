"""From the objects of Kubernetes and Volcano to the values that scheduling works with.

Every function raises :class:`~stromboli.errors.ManifestError`, naming object and field, for a value it cannot use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from stromboli.cluster import kinds
from stromboli.cluster.decoding.amounts import COUNT, INT32, NODE_LARGEST, SCORED_LARGEST, check_amounts, check_whole
from stromboli.cluster.decoding.annotations import (
    budget_of,
    preemptable_of,
    read_int,
    revocable_zone_of,
    waiting_time_of,
)
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.errors import ManifestError
from stromboli.model.claims import Demand, DeviceRequest, Devices, together
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import JobFacts
from stromboli.model.names import (
    DISRUPTION_TARGET,
    GROUP_NAME,
    OVERSUBSCRIPTION_CPU,
    OVERSUBSCRIPTION_MEMORY,
    POD_SCHEDULED,
    PREEMPTION_BY_SCHEDULER,
    TASK_PRIORITY,
    TASK_SPEC,
)
from stromboli.model.objects.storage import Mount
from stromboli.model.podgroup import PodGroup, upstream_name
from stromboli.model.queue import PriorityClass, Queue, ResourceQuota
from stromboli.model.reservation import take_up
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.quantity import milli
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import NodeSpec, PodSpec
from stromboli.model.status import status_of
from stromboli.model.task import GRACE, Condition, Task, pod_index
from stromboli.model.values.times import seconds


def located(error: ManifestError, *, file: str = "", document: int = 0, title: str = "") -> ManifestError:
    """``error`` with the places filled in that it does not know yet; ``title`` names the object (``Pod ns/name``)."""
    return ManifestError(
        error.problem,
        file=error.file or file,
        document=error.document or document,
        object=error.object or title,
        path=error.path,
    )


@contextmanager
def naming(kind: str, metadata: kinds.Metadata) -> Iterator[None]:
    """Add the object's name to any ManifestError raised within this context."""
    try:
        yield
    except ManifestError as error:
        raise located(error, title=kinds.title(kind, metadata)) from error


# -- Pods ------------------------------------------------------------------------------------------------------------


def task_of(pod: kinds.Pod, store: TemplateStore, reserving: bool = False) -> Task:
    """The task of a pod; ``reserving`` says whether it holds a reservation that its annotations state.

    Without a uid it is ``namespace/name``; ``owner`` is the name of the first owner reference,
    ``controller`` the kind and name of the one that manages it, ``ReplicaSet/web-1``; both may be empty.
    """
    try:
        task = _task_of(pod, store)
    except ManifestError as error:
        raise located(error, title=kinds.title("Pod", pod.metadata)) from error
    if reserving:
        take_up(task)
    return task


def _task_of(pod: kinds.Pod, store: TemplateStore) -> Task:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    labels, annotations = meta.labels, meta.annotations
    key = f"{meta.namespace}/{meta.name}"
    group = annotations.get(GROUP_NAME) or _upstream(spec)
    ends = seconds(meta.deletion_timestamp, _DELETED)
    return Task(
        uid=meta.uid or key,
        namespace=meta.namespace,
        name=meta.name,
        template=store.template(spec, status),
        status=status_of(status.phase, bool(ends), spec.node_name),
        key=key,
        job=f"{meta.namespace}/{group}" if group else "",
        role=_role(annotations, labels),
        priority=_priority(spec.priority, annotations.get(TASK_PRIORITY)),
        labels=labels,
        annotations=annotations,
        created=seconds(meta.creation_timestamp, _CREATED),
        index=pod_index(meta.name),
        gates=tuple([gate.name for gate in spec.scheduling_gates]) if spec.scheduling_gates else (),
        preemptable=preemptable_of(annotations, labels, True),
        revocable_zone=revocable_zone_of(annotations),
        scheduler=spec.scheduler_name,
        owner=meta.owner_references[0].name if meta.owner_references else "",
        controller=_controller(meta.owner_references) if meta.owner_references else "",
        phase=status.phase,
        start_time=seconds(status.start_time, "status.startTime"),
        nominated_node=status.nominated_node_name,
        condition=_scheduled(status.conditions) if status.conditions else None,
        node_name=spec.node_name,
        preempted=any(map(_is_preemption, status.conditions)),
        claims=_claims(pod) if spec.resource_claims else (),
        lacks_claims=_lacks_claims(pod),
        volumes=tuple(_mounts(pod)),
        ends=ends,
        grace=GRACE if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
    )


def _upstream(spec: PodSpec) -> str:
    named = spec.scheduling_group.pod_group_name if spec.scheduling_group else ""
    return upstream_name(named) if named else ""


def _claims(pod: kinds.Pod) -> tuple[str, ...]:
    """The claims that the pod uses; one made from a template is known once the pod's status names it."""
    made = {one.name: one.resource_claim_name or "" for one in pod.status.resource_claim_statuses}
    names = (claim.resource_claim_name or made.get(claim.name, "") for claim in pod.spec.resource_claims)
    return tuple(sorted({f"{pod.metadata.namespace}/{name}" for name in names if name}))


def _lacks_claims(pod: kinds.Pod) -> bool:
    """Whether a claim is yet to be made from its template; an empty name in the status says that none is needed."""
    made = {one.name for one in pod.status.resource_claim_statuses}
    return any(not claim.resource_claim_name and claim.name not in made for claim in pod.spec.resource_claims)


def _mounts(pod: kinds.Pod) -> Iterator[Mount]:
    namespace, name = pod.metadata.namespace, pod.metadata.name
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield Mount(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            yield Mount(f"{namespace}/{name}-{volume.name}", pod.metadata.uid or f"{namespace}/{name}")


_CREATED: Final = "metadata.creationTimestamp"
_DELETED: Final = "metadata.deletionTimestamp"


def _controller(owners: tuple[kinds.OwnerReference, ...]) -> str:
    return next((f"{owner.kind}/{owner.name}" for owner in owners if owner.controller), "")


def _role(annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    role = annotations.get(TASK_SPEC)
    return labels.get(TASK_SPEC, "") if role is None else role


def _priority(stated: int | None, override: str | None) -> int:
    found = None if override is None else read_int(override, 32)
    if found is not None:
        return found
    return 1 if stated is None else stated


def _scheduled(conditions: tuple[kinds.PodCondition, ...]) -> Condition | None:
    for condition in conditions:
        if condition.type == POD_SCHEDULED:
            since = seconds(condition.last_transition_time, "status.conditions.lastTransitionTime")
            return Condition(condition.status, condition.reason, condition.message, since)
    return None


def _is_preemption(condition: kinds.PodCondition) -> bool:
    told = condition.type == DISRUPTION_TARGET and condition.status == "True"
    return told and condition.reason == PREEMPTION_BY_SCHEDULER


# -- Nodes -----------------------------------------------------------------------------------------------------------


def node_of(node: kinds.Node) -> NodeSpec:
    """What scheduling reads of a node; :func:`offer_of` says how much it offers."""
    with naming("Node", node.metadata):
        seconds(node.metadata.creation_timestamp, _CREATED)
        check_amounts(node.status.allocatable, "status.allocatable", NODE_LARGEST)
        check_amounts(node.status.capacity, "status.capacity", NODE_LARGEST)
        for key in (OVERSUBSCRIPTION_CPU, OVERSUBSCRIPTION_MEMORY):
            _oversubscribed(node.metadata.annotations, key)
    return NodeSpec(
        name=node.metadata.name,
        labels=node.metadata.labels,
        annotations=node.metadata.annotations,
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        images=node.status.images,
        allocatable=node.status.allocatable,
        capacity=node.status.capacity,
    )


def offer_of(spec: NodeSpec, ignored: tuple[str, ...] = ()) -> Resource:
    """What a node offers: what is allocatable, and the oversubscription that its annotations state.

    Oversubscription is in thousandths of a core and in bytes; it counts whatever the label of that name says, and what
    cannot be read is 0.  ``ignored`` are scalars accounted elsewhere.
    """
    offer = Resource.from_list(spec.allocatable, ignored)
    offer.milli_cpu += _oversubscribed(spec.annotations, OVERSUBSCRIPTION_CPU)
    offer.memory += _oversubscribed(spec.annotations, OVERSUBSCRIPTION_MEMORY)
    return offer


def _oversubscribed(annotations: Mapping[str, str], key: str) -> int:
    amount = read_int(annotations.get(key, ""), 64) or 0
    if not 0 <= amount <= SCORED_LARGEST:
        raise ManifestError(f"{amount} must be from 0 to 2^55", path=f"metadata.annotations.{key}")
    return amount


# -- PodGroups, queues and the rest ----------------------------------------------------------------------------------


def podgroup_of(group: kinds.PodGroup) -> PodGroup:
    """The value of a PodGroup; without a uid it is ``namespace/name``."""
    meta, spec = group.metadata, group.spec
    with naming("PodGroup", meta):
        _check_group(group)
        created = seconds(meta.creation_timestamp, _CREATED)
    uid = meta.uid or f"{meta.namespace}/{meta.name}"
    return PodGroup(uid, meta.namespace, meta.name, created, meta.labels, meta.annotations, spec, group.status)


def _check_group(group: kinds.PodGroup) -> None:
    spec = group.spec
    check_whole(spec.min_member, COUNT, "spec.minMember")
    for role, number in spec.min_task_member.items():
        check_whole(number, COUNT, f"spec.minTaskMember.{role}")
    check_amounts(spec.min_resources, "spec.minResources")
    for number, policy in enumerate(spec.sub_group_policy):
        check_whole(policy.sub_group_size, COUNT, f"spec.subGroupPolicy[{number}].subGroupSize")
        check_whole(policy.min_sub_groups, COUNT, f"spec.subGroupPolicy[{number}].minSubGroups")


def job_facts(group: PodGroup, default_queue: str, axes: Axes, ignored: tuple[str, ...] = ()) -> JobFacts:
    """What ``group`` says of its job; the priority is left at 0, as it depends on the priority classes."""
    facts = JobFacts(group, group.spec.queue or default_queue)
    if group.spec.min_resources is not None:
        facts.min_resources = Resource.from_list(group.spec.min_resources, ignored)
        facts.min_vector = axes.requested(facts.min_resources)
    facts.waiting_time = waiting_time_of(group.annotations)
    facts.preemptable = preemptable_of(group.annotations, group.labels, False)
    facts.revocable_zone = revocable_zone_of(group.annotations)
    facts.budget = budget_of(group.annotations)
    return facts


def queue_of(queue: kinds.Queue) -> Queue:
    """The value of a Queue; its uid among queues is its name."""
    meta, spec = queue.metadata, queue.spec
    with naming("Queue", meta):
        check_whole(spec.weight, COUNT, "spec.weight")
        check_whole(spec.priority, INT32, "spec.priority")
        check_amounts(spec.capability, "spec.capability")
        check_amounts(spec.deserved, "spec.deserved")
        check_amounts(spec.guarantee.resource if spec.guarantee else None, "spec.guarantee.resource")
        check_amounts(queue.status.allocated, "status.allocated")
        created = seconds(meta.creation_timestamp, _CREATED)
    return Queue(meta.name, meta.uid, created, meta.labels, meta.annotations, spec, queue.status)


def priority_class_of(priority_class: kinds.PriorityClass) -> PriorityClass:
    """The value of a PriorityClass."""
    with naming("PriorityClass", priority_class.metadata):
        check_whole(priority_class.value, INT32, "value")
    return PriorityClass(priority_class.metadata.name, priority_class.value, priority_class.global_default)


def quota_of(quota: kinds.ResourceQuota) -> ResourceQuota:
    """The value of a ResourceQuota: what its status says."""
    with naming("ResourceQuota", quota.metadata):
        check_amounts(quota.status.hard, "status.hard")
        check_amounts(quota.status.used, "status.used")
    return ResourceQuota(quota.metadata.namespace, quota.metadata.name, quota.status.hard, quota.status.used)


def demand_of(claim: kinds.ResourceClaim) -> Demand:
    """What a ResourceClaim asks for.

    Only requests for an exact number of devices count: how many others will take is known once they are allocated.
    """
    with naming("ResourceClaim", claim.metadata):
        return together(_devices(number, one) for number, one in enumerate(claim.spec.devices.requests))


def _devices(number: int, request: DeviceRequest) -> Demand:
    exact = request.exactly
    if exact is None or exact.allocation_mode == "All" or not exact.device_class_name:
        return {}
    path = f"spec.devices.requests[{number}].exactly"
    check_whole(exact.count, COUNT, f"{path}.count")
    amounts = exact.capacity.requests if exact.capacity else {}
    check_amounts(amounts, f"{path}.capacity.requests")
    each = Devices(1, {name: milli(amount) for name, amount in amounts.items()})
    return {exact.device_class_name: each.times(exact.count or 1)}


def disruption_budget_of(budget: kinds.PodDisruptionBudget) -> DisruptionBudget:
    """The value of a PodDisruptionBudget: its selector, and what its status allows."""
    meta, status = budget.metadata, budget.status
    with naming("PodDisruptionBudget", meta):
        check_whole(status.disruptions_allowed, INT32, "status.disruptionsAllowed")
    disrupted = tuple(status.disrupted_pods)
    return DisruptionBudget(meta.namespace, meta.name, budget.spec.selector, status.disruptions_allowed, disrupted)
