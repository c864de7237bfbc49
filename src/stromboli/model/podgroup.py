"""A PodGroup: the user's word on which pods belong together and how many must run at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from stromboli.api.scheduling import PodGroupSpec, PodGroupStatus
from stromboli.model.names import TOPOLOGY_GROUP_KEYS
from stromboli.model.spec import Wire


def asks_for_group(annotations: Mapping[str, str]) -> bool:
    """Whether a PodGroup of these annotations asks for a topology group, by any of its keys."""
    return not TOPOLOGY_GROUP_KEYS.isdisjoint(annotations)


class PodGroup(msgspec.Struct, frozen=True, gc=False):
    """A PodGroup object; ``key`` is ``namespace/name`` and names its job; ``created`` in seconds since 1970.

    Kubernetes' own PodGroups may say more: a ``priority`` that is no class's, that the pods are only ``evicted_whole``,
    all at once, and that they never evict others (``never_preempts``); ``claims`` are the ResourceClaims
    (``namespace/name``) that all pods share, and that are reserved for the PodGroup itself; ``parent`` is the
    CompositePodGroup that it belongs to, which is not looked at.
    """

    uid: str
    namespace: str
    name: str
    created: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
    priority: int | None = None
    evicted_whole: bool = False
    never_preempts: bool = False
    claims: tuple[str, ...] = ()
    parent: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


_JOB_UID: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def volcano_job(name: str) -> str:
    """The Volcano Job that the PodGroup ``name`` was made for, whose uid ends that name; the name itself of others."""
    return _JOB_UID.sub("", name)


def is_volcano_jobs(name: str) -> bool:
    """Whether the PodGroup ``name`` was made for a Volcano Job, whose pods are made once it is admitted."""
    return _JOB_UID.search(name) is not None


# -- PodGroups of Kubernetes' own ------------------------------------------------------------------------------------

UPSTREAM: Final = "@scheduling.k8s.io"
"""What the names of jobs end with whose PodGroup is one of scheduling.k8s.io; no name of an object has this sign."""


def upstream_name(name: str) -> str:
    """The name by which the job of scheduling.k8s.io's PodGroup ``name`` is known."""
    return name + UPSTREAM


def is_upstream(name: str) -> bool:
    """Whether the name, or key, of a job is that of a PodGroup of scheduling.k8s.io."""
    return name.endswith(UPSTREAM)


class MinCount(Wire, frozen=True):
    """How many pods must be placed together."""

    min_count: int = 1


class UpstreamPolicy(Wire, frozen=True):
    """How the pods are scheduled: one by one unless there is a ``gang``."""

    gang: MinCount | None = None


class UpstreamTopology(Wire, frozen=True):
    """All pods on nodes that bear one value of the label ``key``."""

    key: str = ""


class UpstreamConstraints(Wire, frozen=True):
    """Where the pods must be."""

    topology: tuple[UpstreamTopology, ...] = ()


class UpstreamDisruption(Wire, frozen=True):
    """How running pods may be evicted: each by itself, or where ``all`` is there, all together."""

    all: dict[str, object] | None = None


class UpstreamWorkloadRef(Wire, frozen=True):
    """The Workload that a PodGroup was made for."""

    workload_name: str = ""


class UpstreamTemplateRef(Wire, frozen=True):
    """v1alpha2: the Workload whose template a PodGroup was made from."""

    workload: UpstreamWorkloadRef = UpstreamWorkloadRef()


class UpstreamClaim(Wire, frozen=True):
    """A ResourceClaim that the pods share, by its name or by that of the template that it is made from."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class UpstreamSpec(Wire, frozen=True):
    """``spec`` of a PodGroup of scheduling.k8s.io (v1alpha2, v1alpha3, v1beta1), as far as scheduling reads it.

    In v1alpha2 the disruption mode is a word, ``Pod`` or ``PodGroup``, and the Workload is named by
    ``podGroupTemplateRef``.
    """

    scheduling_policy: UpstreamPolicy = UpstreamPolicy()
    scheduling_constraints: UpstreamConstraints = UpstreamConstraints()
    disruption_mode: UpstreamDisruption | str | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    workload_ref: UpstreamWorkloadRef = UpstreamWorkloadRef()
    pod_group_template_ref: UpstreamTemplateRef = UpstreamTemplateRef()
    parent_composite_pod_group_name: str = ""
    resource_claims: tuple[UpstreamClaim, ...] = ()

    @property
    def workload_name(self) -> str:
        """The Workload that the PodGroup belongs to; empty for none."""
        return self.workload_ref.workload_name or self.pod_group_template_ref.workload.workload_name

    @property
    def evicted_whole(self) -> bool:
        """Whether running pods are evicted all together or not at all."""
        mode = self.disruption_mode
        return mode == "PodGroup" if isinstance(mode, str) else mode is not None and mode.all is not None


class UpstreamCondition(Wire, frozen=True):
    """One condition; times are RFC 3339 texts."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class UpstreamClaimStatus(Wire, frozen=True):
    """Which ResourceClaim was made for the PodGroup's claim ``name``."""

    name: str = ""
    resource_claim_name: str = ""


class UpstreamStatus(Wire, frozen=True):
    """``status`` of such a PodGroup."""

    conditions: tuple[UpstreamCondition, ...] = ()
    resource_claim_statuses: tuple[UpstreamClaimStatus, ...] = ()
