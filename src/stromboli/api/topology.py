"""topology.volcano.sh: HyperNode; nodeinfo.volcano.sh: Numatopology; shard.volcano.sh: NodeShard."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from stromboli.api.fields import (
    NEEDED,
    DnsName,
    Int64,
    LabelSelector,
    Name,
    Number,
    Resource,
    Texts,
    Time,
    one_of,
    rule,
    says,
)
from stromboli.model.spec import Wire

SELECTOR_MISSING: Final = "Either ExactMatch or RegexMatch or LabelMatch must be specified"
SELECTORS_CLASH: Final = "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
_SELECTOR_RULES: Final = [
    {"rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)", "message": SELECTOR_MISSING},
    {
        "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
        "message": SELECTORS_CLASH,
    },
]


NODE: Final = "Node"
HYPER_NODE: Final = "HyperNode"
"""What a member of a hypernode may be."""


class ExactMatch(Wire, frozen=True):
    """Selects by name."""

    name: Annotated[DnsName, NEEDED, rule(minLength=1), says("Name of the node or hypernode.")] = ""


class RegexMatch(Wire, frozen=True):
    """Selects nodes by their names."""

    pattern: Annotated[str, NEEDED, rule(minLength=1), says("Regular expression that the name must contain.")] = ""


class MemberSelector(Wire, frozen=True):
    """Which nodes, or which hypernode; exactly one of the three."""

    exact_match: Annotated[ExactMatch | None, says("The node or hypernode of this name.")] = None
    regex_match: Annotated[RegexMatch | None, says("The nodes whose names match.")] = None
    label_match: Annotated[
        LabelSelector | None, rule(x_kubernetes_map_type="atomic"), says("The nodes that bear these labels.")
    ] = None


class Member(Wire, frozen=True):
    """Nodes, or a hypernode, that belong to a hypernode."""

    type: Annotated[str, NEEDED, one_of(NODE, HYPER_NODE), says("Node or HyperNode.")] = ""
    selector: Annotated[
        MemberSelector, rule(x_kubernetes_validations=_SELECTOR_RULES), says("Which of them; exactly one way.")
    ] = MemberSelector()


class HyperNodeSpec(Wire, frozen=True):
    """Which nodes are close together, and how close."""

    tier: Annotated[Number, NEEDED, says("How close the members are: lower is closer.")] = 0
    tier_name: Annotated[Name, says("Name of the tier.")] = ""
    members: Annotated[tuple[Member, ...], rule(minItems=1), says("What belongs to the hypernode.")] = ()


class Condition(Wire, frozen=True):
    """One thing that is said of the hypernode."""

    type: Annotated[
        str,
        NEEDED,
        rule(
            maxLength=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        says("What it is about."),
    ] = ""
    status: Annotated[str, NEEDED, one_of("True", "False", "Unknown"), says("True, False or Unknown.")] = ""
    observed_generation: Annotated[Int64, rule(minimum=0), says("Generation that it was said of.")] = 0
    last_transition_time: Annotated[Time | None, NEEDED, says("When it changed.")] = None
    reason: Annotated[
        str,
        NEEDED,
        rule(minLength=1, maxLength=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        says("One word on why."),
    ] = ""
    message: Annotated[str, NEEDED, rule(maxLength=32768), says("A sentence on why.")] = ""


class HyperNodeStatus(Wire, frozen=True):
    """How many nodes a hypernode has."""

    conditions: Annotated[tuple[Condition, ...], says("What is said of the hypernode.")] = ()
    node_count: Annotated[Int64, rule(minimum=0), says("How many members its selectors name.")] = 0


class HyperNode(Resource, frozen=True):
    """Nodes that are close together in the network."""

    spec: Annotated[HyperNodeSpec, says("Which nodes are close together.")] = HyperNodeSpec()
    status: Annotated[HyperNodeStatus, says("How many nodes there are.")] = HyperNodeStatus()


class CpuInfo(Wire, frozen=True):
    """Where a CPU sits."""

    numa: Annotated[Number, says("NUMA node.")] = 0
    socket: Annotated[Number, says("Socket.")] = 0
    core: Annotated[Number, says("Core.")] = 0


class NumaResource(Wire, frozen=True):
    """What NUMA nodes offer of a resource."""

    allocatable: Annotated[str, says("Numbers of what is free, such as 0-3,8.")] = ""
    capacity: Annotated[int, says("How many there are.")] = 0


class ContainerAllocation(Wire, frozen=True):
    """What a container holds."""

    name: Annotated[str, says("Name of the container.")] = ""
    allocations: Annotated[Texts, says("CPU set or amount by resource.")] = {}


class PodAllocation(Wire, frozen=True):
    """What a pod's containers hold."""

    uid: Annotated[str, says("UID of the pod.")] = ""
    name: Annotated[str, says("Name of the pod.")] = ""
    namespace: Annotated[str, says("Namespace of the pod.")] = ""
    container_allocations: Annotated[tuple[ContainerAllocation, ...], says("What each container holds.")] = ()


class NumatopologySpec(Wire, frozen=True):
    """The NUMA nodes of a node."""

    policies: Annotated[Texts, says("CPUManagerPolicy and TopologyManagerPolicy of the kubelet.")] = {}
    reserved: Annotated[Texts, says("What is kept for the system.")] = msgspec.field(
        default_factory=dict, name="resReserved"
    )
    resources: Annotated[dict[str, NumaResource], says("What is offered, by resource.")] = msgspec.field(
        default_factory=dict, name="numares"
    )
    cpu_detail: Annotated[dict[str, CpuInfo], says("Where each CPU sits, by number.")] = {}
    pod_allocations: Annotated[tuple[PodAllocation, ...], says("What pods hold.")] = ()


class Numatopology(Resource, frozen=True):
    """The NUMA nodes of the node of the same name."""

    spec: Annotated[NumatopologySpec, says("The NUMA nodes.")] = NumatopologySpec()


class NodeShardSpec(Wire, frozen=True):
    """Nodes that a scheduler should use."""

    nodes_desired: Annotated[tuple[str, ...], NEEDED, says("Names of the nodes.")] = ()


class NodeShardStatus(Wire, frozen=True):
    """Nodes that a scheduler uses."""

    last_update_time: Annotated[Time | None, says("When this was written.")] = None
    nodes_in_use: Annotated[tuple[str, ...], says("Nodes in use.")] = ()
    nodes_to_remove: Annotated[tuple[str, ...], says("Nodes that are being given up.")] = ()
    nodes_to_add: Annotated[tuple[str, ...], says("Nodes that are waited for.")] = ()


class NodeShard(Resource, frozen=True):
    """The nodes of the scheduler, or shard, of the same name."""

    spec: Annotated[NodeShardSpec, NEEDED, says("Nodes that it should use.")] = NodeShardSpec()
    status: Annotated[NodeShardStatus, says("Nodes that it uses.")] = NodeShardStatus()
