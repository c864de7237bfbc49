"""What the controllers of a live cluster would add to objects read from files, so that a plan can be made of them.

:class:`Completion` looks at the events as they pass and keeps only what it needs; :meth:`Completion.additions` then
says what is missing, with a sentence on each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from stromboli.api.batch import FINISHED
from stromboli.api.fields import HARD, SOFT, NetworkTopology
from stromboli.api.scheduling import POD_GROUP_PENDING, QUEUE_OPEN, PodGroupSpec, PodGroupStatus
from stromboli.cluster import job_pods
from stromboli.cluster.decoding.annotations import read_int
from stromboli.cluster.decoding.templates import check_spec
from stromboli.cluster.events import Added, Event, Modified
from stromboli.cluster.kinds import (
    Job,
    Metadata,
    Namespace,
    NamespacedMetadata,
    Node,
    OwnerReference,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    ReplicaSet,
    title,
)
from stromboli.cluster.owners.workload_pods import Whose, owners_of, pods_of, whose
from stromboli.cluster.usage import quota_usage
from stromboli.errors import ManifestError
from stromboli.model.names import (
    DEFAULT_QUEUE,
    GROUP_MIN_MEMBER,
    GROUP_NAME,
    JOB_NAME,
    NAMESPACE_NAME_LABEL,
    NETWORK_TOPOLOGY_HIGHEST_TIER,
    NETWORK_TOPOLOGY_MODE,
    QUEUE_NAME,
    ROOT_QUEUE,
    SCHEDULER_NAME,
)
from stromboli.model.queue import QueueSpec, QueueStatus

INHERITED: Final = "volcano.sh/"
"""What the keys begin with that a PodGroup inherits from the owner of its pods."""


class Addition(NamedTuple):
    """One object that is added or changed, and a sentence that says why."""

    event: Event
    sentence: str


class Grouped(NamedTuple):
    """The PodGroup that a pod belongs into by its owners, and the annotations that the pod gets.

    ``is_owners`` says whether it is made for an owner that groups all pods below it; ``remark`` is what is odd.
    """

    group: PodGroup
    annotations: Mapping[str, str] = {}
    is_owners: bool = False
    remark: str = ""


BodyOf = Callable[[Whose], Mapping[str, Any] | None]
"""Gives the object that bears a name; None where it is not there."""
Grouping = Callable[[Pod, BodyOf], Grouped | None]
"""Gives a pod's group by what its owners say; None where they say nothing."""


def ungrouped(pod: Pod, body_of: BodyOf) -> None:
    """The grouping that knows of no owner."""


class Completion:
    """Finds out what is missing: look at every event with :meth:`see`, then ask :meth:`additions`.

    ``schedulers`` are the names of the schedulers whose pods are ours; ``grouping`` groups pods by their owners, of
    which ``owners`` are those that are no events.  ``remarks`` tell what was odd in that, by the text.
    """

    def __init__(
        self,
        schedulers: Collection[str] = (SCHEDULER_NAME,),
        default_queue: str = DEFAULT_QUEUE,
        grouping: Grouping = ungrouped,
    ) -> None:
        self._schedulers, self._default_queue, self._grouping = schedulers, default_queue, grouping
        self.owners: Mapping[Whose, Mapping[str, Any]] = {}
        self.remarks: dict[str, ManifestError] = {}
        self._names: dict[str, dict[str, None]] = {"Queue": {}, "PodGroup": {}, "Namespace": {}}
        self._priorities: dict[str, int] = {}
        self._unfinished: dict[str, Pod] = {}
        self._jobs: dict[str, Job] = {}
        self._jobs_with_pods: dict[str, None] = {}
        self._used_namespaces: dict[str, None] = {}
        self._workloads: dict[Whose, ReplicaSet] = {}
        self._with_children: set[Whose] = set()
        self._nodes: dict[str, Node] = {}
        self.made: set[Whose] = set()
        """Workloads of which pods were made."""

    def see(self, event: Event) -> None:
        """Take note of an object that is there."""
        found, metadata = event.object, event.object.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        if event.kind in self._names:
            self._names[event.kind][key.removeprefix("/")] = None
        match found:
            case Pod():
                self._see_pod(found, key)
            case Node():
                self._nodes[metadata.name] = found
            case Job():
                self._jobs[key] = found
            case ReplicaSet():
                self._workloads[whose(found)] = found
                self._with_children.update(owners_of(found.metadata))
            case PriorityClass():
                self._priorities[metadata.name] = found.value
        if metadata.namespace:
            self._used_namespaces[metadata.namespace] = None

    def _see_pod(self, pod: Pod, key: str) -> None:
        job = pod.metadata.annotations.get(JOB_NAME)
        if job:
            self._jobs_with_pods[f"{pod.metadata.namespace}/{job}"] = None
        self._with_children.update(owners_of(pod.metadata))
        self._unfinished.pop(key, None)
        if self._is_plain(pod) or (pod.spec.priority is None and pod.spec.priority_class_name):
            self._unfinished[key] = pod

    def _is_plain(self, pod: Pod) -> bool:
        grouped = pod.metadata.annotations.get(GROUP_NAME) or pod.spec.scheduling_group
        return pod.spec.scheduler_name in self._schedulers and not grouped

    @property
    def jobs(self) -> Mapping[str, Job]:
        """The Volcano Jobs that were seen, by ``namespace/name``."""
        return self._jobs

    def additions(self) -> Iterator[Addition | ManifestError]:
        """What is missing, in the order in which it may be applied; an object that cannot be completed as an error."""
        yield from missing_namespaces(self._used_namespaces, self._names["Namespace"])
        yield from missing_queues(self._names["Queue"], self._default_queue)
        groups = dict(self._names["PodGroup"])
        for pod in self._unfinished.values():
            try:
                yield from self._completed(pod, groups)
            except ManifestError as error:
                yield ManifestError(error.problem, object=title("Pod", pod.metadata), path=error.path)
        for name, workload in self._workloads.items():
            if name not in self._with_children:
                yield from self._pods_of(name, workload, groups)
        for key, job in self._jobs.items():
            if key not in self._jobs_with_pods and job.status.state.phase not in FINISHED:
                try:
                    yield from of_job(job, self._priorities, groups)
                except ManifestError as error:
                    yield error

    def _pods_of(
        self, name: Whose, workload: ReplicaSet, groups: dict[str, None]
    ) -> Iterator[Addition | ManifestError]:
        """Pods and PodGroup of a workload of ours that has none."""
        template = workload.spec.template
        if template is None or template.spec.scheduler_name not in self._schedulers:
            return
        self.made.add(name)
        called = title(name[1], workload.metadata)
        try:
            for pod in pods_of(workload, self._nodes.values()):
                yield from self._pod_of(workload, pod, called, groups)
        except ManifestError as error:
            yield ManifestError(error.problem, object=called, path=error.path)

    def _pod_of(self, workload: ReplicaSet, pod: Pod, called: str, groups: dict[str, None]) -> Iterator[Addition]:
        prioritised, why = with_priority(pod, self._priorities), f"as the controller of {called} makes it"
        if self._is_plain(pod):
            found = self._grouped(prioritised)
            if found is None or not found.is_owners:
                own = with_minimum(group_of_pod(prioritised), prioritised, workload.metadata.annotations)
                found = Grouped(own)
            yield from _added_group(found.group, groups, f"for the pods of {called}")
            prioritised = in_group(prioritised, found.group.metadata.name, found.annotations)
        yield _added("Pod", prioritised, why)

    def _completed(self, pod: Pod, groups: dict[str, None]) -> Iterator[Addition]:
        why = []
        prioritised = with_priority(pod, self._priorities)
        if prioritised is not pod:
            why.append(f"has priority {prioritised.spec.priority} by class {pod.spec.priority_class_name}")
        complete = prioritised
        if self._is_plain(pod):
            found = self._grouped(prioritised) or Grouped(group_of_pod(prioritised))
            name = found.group.metadata.name
            yield from _added_group(found.group, groups, f"for {title('Pod', pod.metadata)}, which names no group")
            complete = in_group(prioritised, name, found.annotations)
            why.append(f"belongs to PodGroup {pod.metadata.namespace}/{name}")
        if why:
            yield Addition(Modified("Pod", complete), f"{title('Pod', pod.metadata)} {' and '.join(why)}")

    def _grouped(self, pod: Pod) -> Grouped | None:
        found = self._grouping(pod, self._body_of)
        if found is not None and found.remark:
            self.remarks.setdefault(found.remark, ManifestError(found.remark, object=title("Pod", pod.metadata)))
        return found

    def _body_of(self, name: Whose) -> Mapping[str, Any] | None:
        found = self._workloads.get(name)
        return self.owners.get(name) if found is None else msgspec.to_builtins(found)


def _added_group(group: PodGroup, groups: dict[str, None], why: str) -> Iterator[Addition]:
    """The PodGroup, unless it is among ``groups``, to which it comes."""
    key = f"{group.metadata.namespace}/{group.metadata.name}"
    if key not in groups:
        groups[key] = None
        yield _added("PodGroup", group, why)


def complete(
    events: Iterable[Event], schedulers: Collection[str] = (SCHEDULER_NAME,)
) -> list[Addition | ManifestError]:
    """What is missing among the objects of ``events``; see :class:`Completion`."""
    completion = Completion(schedulers)
    for event in events:
        completion.see(event)
    return list(completion.additions())


# -- Namespaces and queues -------------------------------------------------------------------------------------------


def namespace_named(name: str) -> Namespace:
    """The namespace as the API server creates it when only its name is given."""
    return Namespace(metadata=Metadata(name=name, uid=name, labels={NAMESPACE_NAME_LABEL: name}))


def missing_namespaces(used: Iterable[str], known: Collection[str]) -> Iterator[Addition]:
    """The namespaces that objects live in and that are not listed."""
    for name in used:
        if name not in known:
            yield _added("Namespace", namespace_named(name), "as objects live in it")


def missing_queues(known: Collection[str], default_queue: str = DEFAULT_QUEUE) -> Iterator[Addition]:
    """The queues that the scheduler makes when it starts: the root, and the default queue."""
    for name, reclaimable in ((ROOT_QUEUE, False), (default_queue, True)):
        if name not in known:
            queue = Queue(
                metadata=Metadata(name=name),
                spec=QueueSpec(weight=1, reclaimable=reclaimable),
                status=QueueStatus(state=QUEUE_OPEN),
            )
            yield _added("Queue", queue, "as the scheduler makes it when it starts")


# -- Plain pods ------------------------------------------------------------------------------------------------------


def with_priority(pod: Pod, priorities: Mapping[str, int]) -> Pod:
    """``pod`` with the priority of its class, as the API server sets it; the same object when that changes nothing."""
    value = priorities.get(pod.spec.priority_class_name)
    if pod.spec.priority is not None or value is None:
        return pod
    return replace(pod, spec=replace(pod.spec, priority=value))


def group_of_pod(pod: Pod) -> PodGroup:
    """The PodGroup that the controller makes for a pod that names none; pods of one controlling owner share theirs.

    Raises :class:`~stromboli.errors.ManifestError` for a request that cannot be used.
    """
    check_spec(pod.spec)
    meta = pod.metadata
    owners = meta.owner_references if _controller(pod) else (_as_owner(pod),)
    return PodGroup(
        metadata=NamespacedMetadata(
            name=_group_name(pod),
            namespace=meta.namespace,
            creation_timestamp=meta.creation_timestamp,
            labels=job_pods.passed(meta.labels, job_pods.PASSED_LABELS),
            annotations=job_pods.passed(meta.annotations, job_pods.PASSED_ANNOTATIONS),
            owner_references=owners,
        ),
        spec=PodGroupSpec(
            min_member=1,
            queue=meta.annotations.get(QUEUE_NAME, ""),
            priority_class_name=pod.spec.priority_class_name,
            min_resources=quota_usage([(pod.spec, 1)]),
            network_topology=topology_of(meta.annotations),
        ),
        status=PodGroupStatus(phase=POD_GROUP_PENDING),
    )


def with_minimum(group: PodGroup, pod: Pod, owner: Mapping[str, str]) -> PodGroup:
    """``group`` with the number of pods that must run at once, and what it inherits, by its owner's annotations."""
    text = owner.get(GROUP_MIN_MEMBER, "1")
    number = read_int(text, 32)
    least = 1 if number is None or number < 0 else number
    inherited = {key: value for key, value in owner.items() if key.startswith(INHERITED)}
    metadata = replace(group.metadata, annotations={**inherited, **group.metadata.annotations})
    spec = replace(group.spec, min_member=least, min_resources=quota_usage([(pod.spec, least)]))
    return replace(group, spec=spec, metadata=metadata)


def in_group(pod: Pod, group: str, more: Mapping[str, str] = {}) -> Pod:
    """``pod`` with the annotation that makes it a member of PodGroup ``group``, and with ``more``."""
    annotations = {**pod.metadata.annotations, **more, GROUP_NAME: group}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _controller(pod: Pod) -> OwnerReference | None:
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def _group_name(pod: Pod) -> str:
    """``podgroup-<uid>`` of the controlling owner, else of the pod; with the name in place of a missing uid."""
    owner = _controller(pod)
    uid = (owner.uid or owner.name) if owner else (pod.metadata.uid or pod.metadata.name)
    return f"podgroup-{uid}"


def _as_owner(pod: Pod) -> OwnerReference:
    return OwnerReference("v1", "Pod", pod.metadata.name, pod.metadata.uid, controller=True)


def topology_of(annotations: Mapping[str, str]) -> NetworkTopology | None:
    """What a plain pod's annotations say of its network topology; an unknown mode means hard."""
    mode = annotations.get(NETWORK_TOPOLOGY_MODE)
    tier = annotations.get(NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    named = (mode or "").lower()
    return NetworkTopology(named if named in (HARD, SOFT) else HARD, None if tier is None else read_int(tier, 32))


# -- Volcano Jobs ----------------------------------------------------------------------------------------------------


def of_job(job: Job, priorities: Mapping[str, int], groups: Collection[str] = ()) -> Iterator[Addition]:
    """PodGroup and pods of a Volcano Job that has none yet; a PodGroup among ``groups`` (``namespace/name``) is used.

    Raises :class:`~stromboli.errors.ManifestError` for a job that cannot be used.
    """
    whole = job_pods.with_defaults(job)
    namespace, why = job.metadata.namespace, f"as the controller of {title('Job', job.metadata)} makes it"
    names = (job_pods.group_name_of(whole), job.metadata.name)
    known = next((name for name in names if f"{namespace}/{name}" in groups), "")
    if not known:
        yield _added("PodGroup", job_pods.group_of(whole, priorities), why)
    for pod in job_pods.pods_of(whole, priorities, known):
        yield _added("Pod", pod, why)


def _added(kind: str, found: Namespace | Queue | PodGroup | Pod, why: str) -> Addition:
    return Addition(Added(kind, found), f"{title(kind, found.metadata)} is added, {why}")
