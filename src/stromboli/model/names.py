"""Names that Volcano, Kubernetes and their users know: annotations, labels, conditions, reasons, message texts.

Only names that more than one module needs are defined here; names that a single plugin reads are in its package.
"""

from __future__ import annotations

from typing import Final

LONGEST_NAME: Final = 253
"""Most characters of a name in Kubernetes."""

# -- Defaults of the scheduler ---------------------------------------------------------------------------------------

SCHEDULER_NAME: Final = "volcano"
NAMESPACE: Final = "volcano-system"
"""Where the scheduler and the controllers are installed."""
SCHEDULER_LEASE: Final = "volcano"
CONTROLLERS_LEASE: Final = "vc-controller-manager"
"""The Leases there by which one of several leads."""
SHARDING_CONFIG_MAP: Final = "volcano-sharding-configmap"
"""The ConfigMap there that says how nodes are divided among schedulers."""
CERTIFICATE_SECRET: Final = "volcano-admission-secret"
"""The Secret there in which the replicas of the webhook server keep their certificate."""
DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"
TOP_HYPER_NODE: Final = "<cluster-top-hypernode>"
"""Virtual hypernode above all others, made at session open."""

# -- Resources -------------------------------------------------------------------------------------------------------

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
GPU: Final = "nvidia.com/gpu"
HUGE_PAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
CSI_VOLUMES_PREFIX: Final = "attachable-volumes-csi-"
DEVICE_CLASS_PREFIX: Final = "deviceclass/"

# -- Which PodGroup, queue and role a pod belongs to -----------------------------------------------------------------

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""Pod annotation: name of the pod's PodGroup; the only key that the scheduler reads for it."""
VOLCANO_GROUP_NAME: Final = "scheduling.volcano.sh/group-name"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
GROUP_MIN_RESOURCES: Final = "scheduling.volcano.sh/group-min-resources"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""Pod annotation: queue of a plain pod.  Namespace annotation: default queue of the namespace."""
TASK_SPEC: Final = "volcano.sh/task-spec"
"""Pod annotation, else label: the role of the pod in its job."""
TASK_INDEX: Final = "volcano.sh/task-index"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
JOB_QUEUE_NAME: Final = "volcano.sh/queue-name"
JOB_TYPE: Final = "volcano.sh/job-type"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
CONTROLLER_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"

# -- How a pod or job is to be treated -------------------------------------------------------------------------------

TASK_PRIORITY: Final = "volcano.sh/task-priority"
"""Pod annotation: int32 that overrides the pod's priority inside its job."""
PREEMPTABLE: Final = "volcano.sh/preemptable"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
"""Pod or PodGroup annotation (only ``*`` counts); node label: the zone the node belongs to."""
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
SLA_WAITING_TIME_BARE: Final = "sla-waiting-time"
"""Older spelling, asked after :data:`SLA_WAITING_TIME`."""
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
"""Name of the scheduling gate, and pod annotation (``"true"``) that asks for it."""
QUEUE_ALLOCATION_GATE_REMOVED: Final = "scheduling.volcano.sh/queue-allocation-gate-removed"
"""Pod annotation: when the scheduler took that gate off."""
TOPOLOGY_GROUP: Final = "volcano.sh/topology-group"
"""PodGroup annotation: the name, within the namespace, of a group of PodGroups that lie near each other, or apart."""
TOPOLOGY_GROUP_POLICY: Final = "volcano.sh/topology-group-policy"
TOPOLOGY_GROUP_TIER: Final = "volcano.sh/topology-group-tier"
"""The domains that count: a tier's number or name; 1 by default."""
TOPOLOGY_GROUP_KEYS: Final = frozenset({TOPOLOGY_GROUP, TOPOLOGY_GROUP_POLICY, TOPOLOGY_GROUP_TIER})
QOS_LEVEL: Final = "volcano.sh/qos-level"

# -- Reservations that outlive a session -----------------------------------------------------------------------------

PIPELINED_STATUS: Final = "volcano.sh/pipelined-status"
PIPELINED_NODE: Final = "volcano.sh/pipelined-node"
EVICTION_OCCURRED: Final = "volcano.sh/eviction-occurred"
PIPELINED_PROOF: Final = "volcano.sh/pipelined-proof"
"""That the scheduler itself has written the other three (:mod:`stromboli.model.proof`)."""

# -- Queues ----------------------------------------------------------------------------------------------------------

HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
OVERCOMMIT_FACTOR: Final = "volcano.sh/overcommit-factor"
NODE_GROUP_RESOURCE_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"

# -- Nodes -----------------------------------------------------------------------------------------------------------

NODE_GROUP_NAME: Final = "volcano.sh/nodegroup-name"
OVERSUBSCRIPTION: Final = "volcano.sh/oversubscription"
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"
OFFLINE_JOB_EVICTING: Final = "volcano.sh/offline-job-evicting"
HOSTNAME: Final = "kubernetes.io/hostname"
TOPOLOGY_ZONE: Final = "topology.kubernetes.io/zone"
TOPOLOGY_REGION: Final = "topology.kubernetes.io/region"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"

# -- Network topology and NUMA ---------------------------------------------------------------------------------------

JOB_ALLOCATED_HYPER_NODE: Final = "volcano.sh/job-allocated-hypernode"
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"
NETWORK_TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"
TOPOLOGY_DECISION: Final = "volcano.sh/topology-decision"

# -- Flows, scheduled jobs, several clusters -------------------------------------------------------------------------

CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
CRON_JOB_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
FORWARD_CLUSTER: Final = "volcano.sh/forward-cluster"
RESOURCE_GROUP: Final = "volcano.sh/resource-group"

# -- Phases of pods --------------------------------------------------------------------------------------------------

POD_PENDING: Final = "Pending"
POD_RUNNING: Final = "Running"
POD_SUCCEEDED: Final = "Succeeded"
POD_FAILED: Final = "Failed"
POD_UNKNOWN: Final = "Unknown"

# -- Conditions and their reasons ------------------------------------------------------------------------------------

CONDITION_TRUE: Final = "True"
CONDITION_FALSE: Final = "False"
POD_GROUP_UNSCHEDULABLE: Final = "Unschedulable"
"""Type of a PodGroup condition."""
POD_GROUP_SCHEDULED: Final = "Scheduled"
"""Type of a PodGroup condition."""
POD_GROUP_NOT_ADMITTED: Final = "NotAdmitted"
"""Type of a PodGroup condition of ours: the action enqueue refuses it, and why."""
REASON_REFUSED: Final = "Refused"
REASON_NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
REASON_NOT_ENOUGH_TASKS: Final = "NotEnoughTasks"
REASON_NOT_ENOUGH_PODS_OF_TASK: Final = "NotEnoughPodsOfTask"
REASON_POD_FAILED: Final = "PodFailed"
REASON_POD_DELETED: Final = "PodDeleted"
REASON_GANG_READY: Final = "tasks in gang are ready to be scheduled"
"""Reason of the PodGroup condition Scheduled."""

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
"""Type of the pod condition that carries the three reasons below."""
REASON_SCHEDULABLE: Final = "Schedulable"
NEVER_PREEMPTS: Final = "Never"
"""The preemptionPolicy of pods that never preempt others."""
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"

POD_RESIZE_PENDING: Final = "PodResizePending"
"""Type of the pod condition of a resize that has not been carried out."""
REASON_INFEASIBLE: Final = "Infeasible"

# -- Reasons of refusals (exact texts) -------------------------------------------------------------------------------

NODE_POD_NUMBER_EXCEEDED: Final = "node(s) pod number exceeded"
NODE_RESOURCE_FIT_FAILED: Final = "node(s) resource fit failed"
ALL_NODES_UNAVAILABLE: Final = "all nodes are unavailable"
NODE_NOT_IN_SHARD: Final = "node isn't in scheduler node shard"

# -- Templates of messages (``str.format``) --------------------------------------------------------------------------

INSUFFICIENT: Final = "Insufficient {resource}"
NODES_UNAVAILABLE: Final = "0/{nodes} nodes are unavailable"
IN_HYPER_NODE: Final = "In hyperNode {hyper_node}: "
TASK_FIT_FAILED: Final = "task {task} on node {node} fit failed: {reasons}"
POD_GROUP_READY: Final = "pod group is ready"
POD_GROUP_NOT_READY: Final = "pod group is not ready"
ORIGIN_REASON: Final = ". Origin reason is: {reason}"
ORIGIN_REASON_OF_TASK: Final = ". Origin reason is {task}: {reason}"
POD_CAN_BE_ASSIGNED: Final = "Pod {pod} can possibly be assigned to {node}, once minAvailable is satisfied"
POD_CAN_BE_ASSIGNED_LATER: Final = (
    "Pod {pod} can possibly be assigned to {node}, once resource is released and minAvailable is satisfied"
)
TASKS_IN_GANG_UNSCHEDULABLE: Final = "{missing}/{total} tasks in gang unschedulable: {fit_error}"
NOT_ENOUGH_VALID_PODS: Final = "Not enough valid pods of each task for gang-scheduling"
NOT_ENOUGH_VALID_SUB_GROUPS: Final = "Not enough valid subGroups of each task for gang-scheduling"
NOT_ENOUGH_VALID_TASKS: Final = "Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"
POD_ALREADY_BOUND: Final = "pod {pod} is already bound to node {node}, expected {expected}"

# -- Events ----------------------------------------------------------------------------------------------------------

EVENT_NORMAL: Final = "Normal"
EVENT_WARNING: Final = "Warning"
EVENT_SCHEDULED: Final = "Scheduled"
EVENT_UNSCHEDULABLE: Final = "Unschedulable"
EVENT_FAILED_SCHEDULING: Final = "FailedScheduling"
EVENT_EVICT: Final = "Evict"
SUCCESSFULLY_ASSIGNED: Final = "Successfully assigned {pod} to {node}"
EVENT_BINDING_CONDITIONS: Final = "BindingConditionsPending"
BINDING_CONDITIONS: Final = "waiting for binding conditions for device on node {node}"
EVENT_CLAIM_STAYS: Final = "ClaimStaysAllocated"
CLAIM_STAYS: Final = "claim {claim} of the PodGroup keeps its devices, as pod {pod} has a node or is about to have one"
EVENT_COMPOSITE_IGNORED: Final = "CompositePodGroupIgnored"
COMPOSITE_IGNORED: Final = (
    "belongs to CompositePodGroup {name}, which is not looked at: "
    "the pods of this PodGroup are placed by themselves, whatever becomes of the other PodGroups"
)
POD_EVICTED: Final = "Pod is evicted, because of {reason}"
