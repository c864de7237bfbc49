"""scheduling.volcano.sh: PodGroup and Queue."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from stromboli.api.fields import (
    Count,
    DnsName,
    Int32,
    LabelSelector,
    Name,
    NetworkTopology,
    Resource,
    ResourceList,
    Time,
    one_of,
    rule,
    says,
)
from stromboli.model.names import DEFAULT_QUEUE
from stromboli.model.spec import Wire

POD_GROUP_PENDING: Final = "Pending"
POD_GROUP_INQUEUE: Final = "Inqueue"
POD_GROUP_RUNNING: Final = "Running"
POD_GROUP_COMPLETED: Final = "Completed"
POD_GROUP_UNKNOWN: Final = "Unknown"

QUEUE_OPEN: Final = "Open"
QUEUE_CLOSED: Final = "Closed"
QUEUE_CLOSING: Final = "Closing"
QUEUE_UNKNOWN: Final = "Unknown"

FIFO: Final = "fifo"
TRAVERSE: Final = "traverse"
"""What becomes of the jobs behind one that must wait."""

DEFAULT_WEIGHT: Final = 1
HEAVIEST: Final = 65535
"""Most that a queue may weigh."""
PODS_OF_A_PART: Final = 1
"""Pods of each part of a group whose policy states no number."""


class SubGroupPolicy(Wire, frozen=True):
    """Pods of the group, split by labels, each part a small gang of its own."""

    name: Annotated[Name, says("Name of the policy.")] = ""
    network_topology: Annotated[NetworkTopology | None, says("How close together the pods of a part must be.")] = None
    sub_group_size: Annotated[Int32 | None, rule(default=PODS_OF_A_PART, minimum=1), says("Pods of each part.")] = None
    min_sub_groups: Annotated[Count, rule(default=0), says("Parts that must run.")] = 0
    label_selector: Annotated[
        LabelSelector | None, rule(x_kubernetes_map_type="atomic"), says("Pods that it is about; all when absent.")
    ] = None
    match_label_keys: Annotated[
        tuple[str, ...],
        rule(x_kubernetes_list_type="atomic"),
        says("Labels whose values part the pods; without any the policy takes no pod."),
    ] = ()


class PodGroupSpec(Wire, frozen=True):
    """Which pods belong together, and how many must run at once."""

    min_member: Annotated[Count, says("Pods that must run at once.")] = 0
    min_task_member: Annotated[
        dict[str, Int32], says("Pods of each role (annotation volcano.sh/task-spec) that must run at once.")
    ] = {}
    queue: Annotated[DnsName, rule(default=DEFAULT_QUEUE), says("Queue that the group waits in.")] = ""
    priority_class_name: Annotated[Name, says("PriorityClass of the group.")] = ""
    min_resources: Annotated[
        ResourceList | None, says("What the group asks for before it is admitted; without it, it is always admitted.")
    ] = None
    network_topology: Annotated[NetworkTopology | None, says("How close together the pods must be.")] = None
    sub_group_policy: Annotated[
        tuple[SubGroupPolicy, ...], says("How the pods are split into smaller gangs. Not together with minTaskMember.")
    ] = ()


class PodGroupCondition(Wire, frozen=True):
    """What the scheduler says of the group."""

    type: Annotated[str, says("Unschedulable or Scheduled.")] = ""
    status: Annotated[str, says("True, False or Unknown.")] = ""
    transition_id: Annotated[str, says("Session in which it was written.")] = msgspec.field(
        default="", name="transitionID"
    )
    last_transition_time: Annotated[Time | None, says("When it was written.")] = None
    reason: Annotated[str, says("One word on why.")] = ""
    message: Annotated[str, says("A sentence on why.")] = ""


class PodGroupStatus(Wire, frozen=True):
    """How a group is doing."""

    phase: Annotated[
        str,
        one_of(POD_GROUP_PENDING, POD_GROUP_RUNNING, POD_GROUP_UNKNOWN, POD_GROUP_INQUEUE, POD_GROUP_COMPLETED),
        says("Phase of the group."),
    ] = ""
    conditions: Annotated[tuple[PodGroupCondition, ...], says("What the scheduler says, one of each type.")] = ()
    running: Annotated[Count, says("Number of running pods.")] = 0
    succeeded: Annotated[Count, says("Number of pods that succeeded.")] = 0
    failed: Annotated[Count, says("Number of pods that failed.")] = 0


class PodGroup(Resource, frozen=True):
    """Pods that belong together: they start at once or not at all."""

    spec: Annotated[PodGroupSpec, says("Which pods belong together.")] = PodGroupSpec()
    status: Annotated[PodGroupStatus, says("How the group is doing.")] = PodGroupStatus()


class Guarantee(Wire, frozen=True):
    """What is kept for the queue."""

    resource: Annotated[ResourceList | None, says("What is kept for the queue, whether it asks or not.")] = None


class NodeGroupTerms(Wire, frozen=True):
    """Groups of nodes by name (label volcano.sh/nodegroup-name)."""

    required: Annotated[tuple[str, ...], says("Groups that count as a rule.")] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Annotated[tuple[str, ...], says("Groups that count as a preference.")] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class QueueAffinity(Wire, frozen=True):
    """Which groups of nodes the queue's pods go to."""

    node_group_affinity: Annotated[NodeGroupTerms | None, says("Groups to go to.")] = None
    node_group_anti_affinity: Annotated[NodeGroupTerms | None, says("Groups to keep away from.")] = None


class Cluster(Wire, frozen=True):
    """A cluster that jobs may be forwarded to."""

    name: Annotated[str, says("Name of the cluster.")] = ""
    weight: Annotated[Int32, says("Weight of the cluster.")] = 0
    capacity: Annotated[ResourceList | None, says("What the cluster offers.")] = None


class QueueSpec(Wire, frozen=True):
    """How much of the cluster the queue may use."""

    weight: Annotated[
        Int32,
        rule(default=DEFAULT_WEIGHT, minimum=1, maximum=HEAVIEST),
        says("Share of the cluster, in proportion to the other queues' weights."),
    ] = 0
    capability: Annotated[
        ResourceList | None, says("Most that the queue may use; what is not named is not limited.")
    ] = None
    deserved: Annotated[
        ResourceList | None, says("What the queue gets back from others when it asks, and lends while it does not.")
    ] = None
    guarantee: Annotated[Guarantee | None, says("What is kept for the queue.")] = None
    reclaimable: Annotated[
        bool | None, says("Whether others may take back what the queue holds above its share; yes when absent.")
    ] = None
    parent: Annotated[DnsName, says("Queue above this one; root when absent.")] = ""
    priority: Annotated[Count, says("Queues of higher priority come first and give back later.")] = 0
    dequeue_strategy: Annotated[
        str,
        one_of(FIFO, TRAVERSE),
        rule(default=TRAVERSE),
        says("traverse: jobs behind one that must wait are tried; fifo: they wait too."),
    ] = ""
    affinity: Annotated[QueueAffinity | None, says("Which groups of nodes the queue's pods go to.")] = None
    type: Annotated[Name, says("A word on what the queue is for.")] = ""
    extend_clusters: Annotated[tuple[Cluster, ...], says("Clusters that jobs may be forwarded to.")] = ()


class Reservation(Wire, frozen=True):
    """What is locked for the queue."""

    nodes: Annotated[tuple[str, ...], says("Nodes that are locked.")] = ()
    resource: Annotated[ResourceList | None, says("What these nodes offer.")] = None


class QueueStatus(Wire, frozen=True):
    """How a queue is doing."""

    state: Annotated[
        str,
        one_of(QUEUE_OPEN, QUEUE_CLOSED, QUEUE_CLOSING, QUEUE_UNKNOWN),
        says("Open takes jobs; Closing still runs some, Closed none."),
    ] = ""
    unknown: Annotated[Count, says("Number of PodGroups in phase Unknown.")] = 0
    pending: Annotated[Count, says("Number of pending PodGroups.")] = 0
    running: Annotated[Count, says("Number of running PodGroups.")] = 0
    inqueue: Annotated[Count, says("Number of admitted PodGroups.")] = 0
    completed: Annotated[Count, says("Number of completed PodGroups.")] = 0
    reservation: Annotated[Reservation | None, says("What is locked for the queue.")] = None
    allocated: Annotated[ResourceList | None, says("What the queue's pods, and those of queues below, hold.")] = None
    fault: Annotated[str, says("Why the queue cannot be used (its jobs wait), or its guarantee not be kept.")] = ""


class Queue(Resource, frozen=True):
    """Whose jobs compete, and for how much of the cluster."""

    spec: Annotated[QueueSpec, says("How much of the cluster the queue may use.")] = QueueSpec()
    status: Annotated[QueueStatus, says("How the queue is doing.")] = QueueStatus()
