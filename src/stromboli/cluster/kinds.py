"""The objects of Kubernetes and Volcano that scheduling reads, as they stand in manifests.

Every class mirrors the API's field names (camelCase on the wire), others are ignored.  :data:`KINDS` lists all classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from stromboli.api.batch import PartitionPolicy
from stromboli.api.fields import NetworkTopology
from stromboli.api.kinds import KINDS as DECLARED
from stromboli.api.kinds import SCHEDULING_GROUP
from stromboli.api.scheduling import PodGroupSpec, PodGroupStatus
from stromboli.api.topology import HyperNodeSpec, NodeShardSpec
from stromboli.model.claims import DeviceClass as DeviceClass
from stromboli.model.claims import ResourceClaim as ResourceClaim
from stromboli.model.claims import ResourceSlice as ResourceSlice
from stromboli.model.names import LONGEST_NAME
from stromboli.model.numa import NumaSpec
from stromboli.model.objects.base import Metadata as Metadata
from stromboli.model.objects.base import NamespacedMetadata as NamespacedMetadata
from stromboli.model.objects.base import Object as Object
from stromboli.model.objects.base import OwnerReference as OwnerReference
from stromboli.model.objects.config_map import ConfigMap as ConfigMap
from stromboli.model.objects.config_map import NpuReport as NpuReport
from stromboli.model.objects.shard import NodeShardStatus
from stromboli.model.objects.storage import CSIDriver as CSIDriver
from stromboli.model.objects.storage import CSINode as CSINode
from stromboli.model.objects.storage import CSIStorageCapacity as CSIStorageCapacity
from stromboli.model.objects.storage import PersistentVolume as PersistentVolume
from stromboli.model.objects.storage import PersistentVolumeClaim as PersistentVolumeClaim
from stromboli.model.objects.storage import StorageClass as StorageClass
from stromboli.model.objects.storage import VolumeAttachment as VolumeAttachment
from stromboli.model.podgroup import UpstreamSpec, UpstreamStatus
from stromboli.model.queue import QueueSpec, QueueStatus
from stromboli.model.resources import request
from stromboli.model.spec import Amount, Image, LabelSelector, PodSpec, Taint, Wire


class PodCondition(request.PodCondition, frozen=True):
    """One condition of a pod's status, its message and the time of its last change included."""

    message: str = ""
    last_transition_time: str | None = None


class PodClaimStatus(Wire, frozen=True):
    """Which ResourceClaim was made for the pod's claim ``name``."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(request.PodState, frozen=True):
    """``status`` of a Pod; container states count while a resize in place is under way."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    start_time: str | None = None
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()


class Pod(Object, frozen=True):
    """v1 Pod."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeObjectSpec(Wire, frozen=True):
    """``spec`` of a Node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Wire, frozen=True):
    """``status`` of a Node; ``allocatable`` and ``capacity`` are resource lists as written."""

    allocatable: dict[str, Amount] = msgspec.field(default_factory=dict)
    capacity: dict[str, Amount] = msgspec.field(default_factory=dict)
    images: tuple[Image, ...] = ()


class Node(Object, frozen=True):
    """v1 Node."""

    spec: NodeObjectSpec = NodeObjectSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Object, frozen=True):
    """v1 Namespace; its labels count for namespace selectors, its annotations may name a queue."""


class ServiceSpec(Wire, frozen=True):
    """``spec`` of a Service: the labels of its pods."""

    selector: dict[str, str] = {}


class Service(Object, frozen=True):
    """v1 Service: pods that serve together are spread by default."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Object, frozen=True):
    """v1 ReplicationController: its pods are spread by default, like those of a Service."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(Wire, frozen=True):
    """``spec`` of a workload: the labels of its pods, how many there are, and how they look."""

    selector: LabelSelector = LabelSelector()
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    template: PodTemplateSpec | None = None


class ReplicaSet(Object, frozen=True):
    """apps/v1 ReplicaSet: its pods are spread by default."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(ReplicaSet, frozen=True):
    """apps/v1 StatefulSet: its pods are spread by default."""


class Deployment(ReplicaSet, frozen=True):
    """apps/v1 Deployment: its ReplicaSets make its pods."""


class DaemonSet(ReplicaSet, frozen=True):
    """apps/v1 DaemonSet: a pod for each node that bears it."""


class BatchJob(ReplicaSet, frozen=True):
    """batch/v1 Job."""


class QuotaStatus(Wire, frozen=True):
    """``status`` of a ResourceQuota: resource lists as written."""

    hard: dict[str, Amount] = msgspec.field(default_factory=dict)
    used: dict[str, Amount] = msgspec.field(default_factory=dict)


class ResourceQuota(Object, frozen=True):
    """v1 ResourceQuota; scheduling looks at what the status says."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(Object, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class DisruptionBudgetSpec(Wire, frozen=True):
    """``spec`` of a PodDisruptionBudget: counts or percentages (``"30%"``) of the pods that ``selector`` matches."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(Wire, frozen=True):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(Object, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PodGroup(Object, frozen=True):
    """scheduling.volcano.sh/v1beta1 PodGroup."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class UpstreamPodGroup(Object, frozen=True):
    """PodGroup of scheduling.k8s.io, Kubernetes' own."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: UpstreamSpec = UpstreamSpec()
    status: UpstreamStatus = UpstreamStatus()


class Workload(Object, frozen=True):
    """Workload of scheduling.k8s.io: its annotations may name the queue of its PodGroups."""

    metadata: NamespacedMetadata = NamespacedMetadata()


class Queue(Object, frozen=True):
    """scheduling.volcano.sh/v1beta1 Queue."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class HyperNode(Object, frozen=True):
    """topology.volcano.sh/v1alpha1 HyperNode."""

    spec: HyperNodeSpec = HyperNodeSpec()


class Numatopology(Object, frozen=True):
    """nodeinfo.volcano.sh/v1alpha1 Numatopology."""

    spec: NumaSpec = NumaSpec()


class NodeShard(Object, frozen=True):
    """shard.volcano.sh/v1alpha1 NodeShard."""

    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()


class TemplateMetadata(Wire, frozen=True):
    """Labels and annotations that a job's task gives its pods."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class PodTemplateSpec(Wire, frozen=True):
    """The pod that a job's task makes copies of."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()


class DependsOn(Wire, frozen=True):
    """The tasks that a job's task waits for: all of them, or with ``iteration`` any one is enough."""

    name: tuple[str, ...] = ()
    iteration: str = ""


class JobTask(Wire, frozen=True):
    """A role of a job: ``replicas`` copies of ``template``."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    topology_policy: str = ""
    partition_policy: PartitionPolicy | None = None
    depends_on: DependsOn | None = None


class JobSpec(Wire, frozen=True):
    """``spec`` of a Volcano Job, as far as its pods and its PodGroup follow from it."""

    scheduler_name: str = ""
    plugins: dict[str, tuple[str, ...]] = {}
    min_available: int = 0
    tasks: tuple[JobTask, ...] = ()
    queue: str = ""
    priority_class_name: str = ""
    network_topology: NetworkTopology | None = None


class JobState(Wire, frozen=True):
    """Where a Volcano Job is in its life."""

    phase: str = ""


class JobStatus(Wire, frozen=True):
    """``status`` of a Volcano Job."""

    state: JobState = JobState()
    version: int = 0
    retry_count: int = 0


class Job(Object, frozen=True):
    """batch.volcano.sh/v1alpha1 Job."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class Kind(NamedTuple):
    """One row of :data:`KINDS`: the class, the API versions that are read, and the key of its list in a scenario.

    ``wire`` is what manifests call it, where another kind has that name here; ``part_of`` is the kind, in manifests,
    too, of which these are some objects that a live cluster is asked for apart.
    """

    type: type[Object]
    api_versions: tuple[str, ...]
    list_key: str
    wire: str = ""
    part_of: str = ""

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind live in a namespace."""
        return isinstance(self.type().metadata, NamespacedMetadata)


_UPSTREAM: Final = tuple(f"scheduling.k8s.io/{version}" for version in ("v1beta1", "v1alpha3", "v1alpha2"))
_SCHEDULING: Final = (DECLARED["Queue"].api_version, f"{SCHEDULING_GROUP}/v1alpha1")

_STORAGE: Final = ("storage.k8s.io/v1",)
_DEVICES: Final = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")

KINDS: Final[Mapping[str, Kind]] = {
    "Namespace": Kind(Namespace, ("v1",), "namespaces"),
    "ConfigMap": Kind(ConfigMap, ("v1",), "configMaps"),
    "NpuReport": Kind(NpuReport, ("v1",), "npuReports", part_of="ConfigMap"),
    "Service": Kind(Service, ("v1",), "services"),
    "ReplicationController": Kind(ReplicationController, ("v1",), "replicationControllers"),
    "ReplicaSet": Kind(ReplicaSet, ("apps/v1",), "replicaSets"),
    "StatefulSet": Kind(StatefulSet, ("apps/v1",), "statefulSets"),
    "Deployment": Kind(Deployment, ("apps/v1",), "deployments"),
    "DaemonSet": Kind(DaemonSet, ("apps/v1",), "daemonSets"),
    "BatchJob": Kind(BatchJob, ("batch/v1",), "batchJobs", "Job"),
    "PodDisruptionBudget": Kind(PodDisruptionBudget, ("policy/v1", "policy/v1beta1"), "podDisruptionBudgets"),
    "StorageClass": Kind(StorageClass, _STORAGE, "storageClasses"),
    "CSIDriver": Kind(CSIDriver, _STORAGE, "csiDrivers"),
    "CSINode": Kind(CSINode, _STORAGE, "csiNodes"),
    "CSIStorageCapacity": Kind(CSIStorageCapacity, _STORAGE, "csiStorageCapacities"),
    "PersistentVolume": Kind(PersistentVolume, ("v1",), "persistentVolumes"),
    "PersistentVolumeClaim": Kind(PersistentVolumeClaim, ("v1",), "persistentVolumeClaims"),
    "VolumeAttachment": Kind(VolumeAttachment, _STORAGE, "volumeAttachments"),
    "DeviceClass": Kind(DeviceClass, _DEVICES, "deviceClasses"),
    "ResourceSlice": Kind(ResourceSlice, _DEVICES, "resourceSlices"),
    "ResourceClaim": Kind(ResourceClaim, _DEVICES, "resourceClaims"),
    "Node": Kind(Node, ("v1",), "nodes"),
    "Pod": Kind(Pod, ("v1",), "pods"),
    "PodGroup": Kind(PodGroup, _SCHEDULING, "podGroups"),
    "UpstreamPodGroup": Kind(UpstreamPodGroup, _UPSTREAM, "upstreamPodGroups", "PodGroup"),
    "Workload": Kind(Workload, _UPSTREAM, "workloads"),
    "Queue": Kind(Queue, _SCHEDULING, "queues"),
    "PriorityClass": Kind(PriorityClass, ("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"), "priorityClasses"),
    "ResourceQuota": Kind(ResourceQuota, ("v1",), "resourceQuotas"),
    "HyperNode": Kind(HyperNode, (DECLARED["HyperNode"].api_version,), "hyperNodes"),
    "Numatopology": Kind(Numatopology, (DECLARED["Numatopology"].api_version,), "numatopologies"),
    "NodeShard": Kind(NodeShard, (DECLARED["NodeShard"].api_version,), "nodeShards"),
    "Job": Kind(Job, (DECLARED["Job"].api_version,), "jobs"),
}
"""What is understood, by kind, in the order in which a scenario's lists are handed over."""


def title(kind: str, metadata: Metadata) -> str:
    """How messages name an object: ``Pod ns/name``, ``Node name``; what is too long for a name is cut."""
    row, name = KINDS.get(kind), f"{metadata.name:.{LONGEST_NAME}}" or "without a name"
    kind = (row and (row.wire or row.part_of)) or kind
    return f"{kind:.63} {metadata.namespace:.63}/{name}" if metadata.namespace else f"{kind:.63} {name}"
