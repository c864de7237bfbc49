"""What a pod asks for and what a node says of itself: the parts of Kubernetes' specs that scheduling reads.

The classes mirror the API's own field names (camelCase on the wire, snake_case here) and are decoded straight from
manifests.  They are frozen: equal values may be shared by any number of pods.  Lists are tuples.
"""

from __future__ import annotations

import msgspec

Amount = str | int | float
"""A quantity as it stands in a manifest: ``"500m"``, ``2`` or ``0.5``."""


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of everything decoded from a manifest; unknown fields are ignored.

    Manifests are trees: without cycles there is nothing in them for the garbage collector.
    """


def without_nulls(value: object) -> object:
    """A copy of the plain ``value`` of a manifest without the entries that are null: they count as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value if entry is not None]
    return value


class Toleration(Wire, frozen=True):
    """A taint that a pod puts up with; empty ``key`` with operator Exists means any taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(Wire, frozen=True):
    """A mark on a node that keeps pods without a matching toleration away."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Requirement(Wire, frozen=True):
    """One expression of a selector: ``key operator values`` (In, NotIn, Exists, DoesNotExist, Gt, Lt)."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """Expressions over labels and fields that must all hold; an empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredTerm(Wire, frozen=True):
    """A term that adds ``weight`` to the score of the nodes it matches."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Which nodes a pod needs and which it would rather have."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelector(Wire, frozen=True):
    """Labels and expressions that must all hold; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class PodAffinityTerm(Wire, frozen=True):
    """Pods, by label and namespace, and the node label that makes nodes one domain."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedTerm(Wire, frozen=True):
    """A pod affinity term that counts ``weight`` in the score."""

    weight: int = 0
    term: PodAffinityTerm = msgspec.field(default=PodAffinityTerm(), name="podAffinityTerm")


class PodAffinity(Wire, frozen=True):
    """Required and preferred terms of a pod's affinity, or of its anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Wire, frozen=True):
    """How evenly matching pods must, or should, be spread over the domains of ``topology_key``."""

    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    max_skew: int = 1
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class Port(Wire, frozen=True):
    """A container port; only ``host_port`` takes something of the node."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class Resources(Wire, frozen=True):
    """Requests and limits by resource name."""

    requests: dict[str, Amount] = {}
    limits: dict[str, Amount] = {}


class Container(Wire, frozen=True):
    """A container, or an init container (a sidecar when ``restart_policy`` is Always)."""

    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""


class Gate(Wire, frozen=True):
    """A scheduling gate: the pod must not be placed until the gate's owner removes it."""

    name: str = ""


class SchedulingGroup(Wire, frozen=True):
    """The PodGroup of scheduling.k8s.io that a pod belongs to."""

    pod_group_name: str = ""


class PodClaim(Wire, frozen=True):
    """A claim of devices that a pod refers to, or a template of one that is made for the pod."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class ClaimSource(Wire, frozen=True):
    """The PersistentVolumeClaim that a volume stands for."""

    claim_name: str = ""


class EphemeralSource(Wire, frozen=True):
    """A claim that is made for the pod alone."""


class PodVolume(Wire, frozen=True):
    """A volume of a pod; scheduling looks at those that are claims."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class PodSpec(Wire, frozen=True):
    """What scheduling reads of a pod's ``spec``."""

    scheduler_name: str = ""
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, Amount] = {}
    resources: Resources = Resources()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_gates: tuple[Gate, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    termination_grace_period_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None


class Image(Wire, frozen=True):
    """An image that a node already holds, under one or more names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """What scheduling reads of a Node, placements aside.

    ``allocatable`` and ``capacity`` are resource lists as written; ``labels`` and ``annotations`` are plain mappings.
    """

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[Image, ...] = ()
    allocatable: dict[str, Amount] = {}
    capacity: dict[str, Amount] = {}
