"""Volumes as the API server has them: what pods claim, what there is, and where it can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from stromboli.model.objects.base import NamespacedMetadata, Object
from stromboli.model.spec import Amount, LabelSelector, NodeSelector, Wire

STORAGE: Final = "storage"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
ONE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"
VOLUME_SECONDS: Final = 600
"""Seconds in which a pod's claims must be bound by default; Kubernetes' default."""
VOLUME, NODE = "pv:", "node:"
"""What a claim is about to get: that volume, or one that is made for that node."""
IGNORED_PROVISIONERS: Final = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})
"""Provisioners whose volumes are never counted on nodes."""


class Mount(NamedTuple):
    """A claim, ``namespace/name``, that a pod mounts; ``owner`` is the pod's uid where the claim is made for it."""

    claim: str
    owner: str = ""


class ClaimReference(Wire, frozen=True):
    """The claim that a volume is bound to, or kept for; without a uid any claim of that name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeAffinity(Wire, frozen=True):
    """The nodes that reach a volume."""

    required: NodeSelector | None = None


class CsiSource(Wire, frozen=True):
    """The CSI driver of a volume, and what it calls the volume."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Wire, frozen=True):
    """``spec`` of a PersistentVolume; of volumes of old in-tree kinds only that they are of that kind."""

    capacity: dict[str, Amount] = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    node_affinity: VolumeAffinity | None = None
    claim_ref: ClaimReference | None = None
    csi: CsiSource | None = None
    volume_attributes_class_name: str | None = None
    aws_elastic_block_store: dict[str, object] | None = None
    gce_persistent_disk: dict[str, object] | None = None
    azure_disk: dict[str, object] | None = None
    cinder: dict[str, object] | None = None
    vsphere_volume: dict[str, object] | None = None


class Phase(Wire, frozen=True):
    """``status`` of a volume or claim."""

    phase: str = ""


class PersistentVolume(Object, frozen=True):
    """v1 PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()
    status: Phase = Phase()


class Requests(Wire, frozen=True):
    """Amounts that a claim asks for."""

    requests: dict[str, Amount] = {}


class VolumeClaimSpec(Wire, frozen=True):
    """``spec`` of a PersistentVolumeClaim."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_name: str = ""
    volume_mode: str = FILESYSTEM
    resources: Requests = Requests()
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(Object, frozen=True):
    """v1 PersistentVolumeClaim."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: Phase = Phase()


class TopologyExpression(Wire, frozen=True):
    """A label of nodes and the values that it may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Wire, frozen=True):
    """Expressions that must all hold."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(Object, frozen=True):
    """storage.k8s.io/v1 StorageClass."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class DriverCount(Wire, frozen=True):
    """How many volumes a driver attaches to a node; None: any number."""

    count: int | None = None


class NodeDriver(Wire, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: DriverCount | None = None


class CSINodeSpec(Wire, frozen=True):
    """``spec`` of a CSINode."""

    drivers: tuple[NodeDriver, ...] = ()


class CSINode(Object, frozen=True):
    """storage.k8s.io/v1 CSINode: the drivers of the node of that name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, frozen=True):
    """``spec`` of a CSIDriver."""

    storage_capacity: bool = False


class CSIDriver(Object, frozen=True):
    """storage.k8s.io/v1 CSIDriver; with ``storage_capacity`` its CSIStorageCapacity objects tell where it has room."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    """storage.k8s.io/v1 CSIStorageCapacity: room for new volumes of a class in a part of the cluster."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    storage_class_name: str = ""
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None
    node_topology: LabelSelector | None = None


class AttachedVolume(Wire, frozen=True):
    """Which volume is attached."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Wire, frozen=True):
    """``spec`` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = AttachedVolume()


class VolumeAttachment(Object, frozen=True):
    """storage.k8s.io/v1 VolumeAttachment: a volume on a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class Storage(msgspec.Struct, frozen=True):
    """All of it: claims by ``namespace/name``, the rest by name (capacities by both).

    ``looks_at_capacity`` is the scheduler's flag ``csi-storage``, ``ignored`` are the ``ignored-provisioners``.
    """

    volumes: Mapping[str, PersistentVolume] = {}
    claims: Mapping[str, PersistentVolumeClaim] = {}
    classes: Mapping[str, StorageClass] = {}
    csi_nodes: Mapping[str, CSINode] = {}
    drivers: Mapping[str, CSIDriver] = {}
    capacities: Mapping[str, CSIStorageCapacity] = {}
    attachments: Mapping[str, VolumeAttachment] = {}
    looks_at_capacity: bool = True
    ignored: frozenset[str] = frozenset()


def class_of(found: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of the storage class; empty without one."""
    return found.metadata.annotations.get(CLASS_ANNOTATION, found.spec.storage_class_name)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_delayed(claim: PersistentVolumeClaim, classes: Mapping[str, StorageClass]) -> bool:
    """Whether the claim gets its volume once a pod that mounts it has a node."""
    named = classes.get(class_of(claim))
    delays = named is not None and named.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return delays and not claim.spec.volume_name


_MIGRATED: Final = (
    ("aws_elastic_block_store", "ebs.csi.aws.com", "volumeID"),
    ("gce_persistent_disk", "pd.csi.storage.gke.io", "pdName"),
    ("azure_disk", "disk.csi.azure.com", "diskName"),
    ("cinder", "cinder.csi.openstack.org", "volumeID"),
    ("vsphere_volume", "csi.vsphere.vmware.com", "volumePath"),
)
"""Old kinds of volumes: the field of a volume, the CSI driver that attaches it today, and what tells it apart."""
_MIGRATED_PROVISIONERS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
CSI_DRIVER: Final = "csi.storage.k8s.io/csi-driver-name"
"""The parameter of a storage class that names the driver where the provisioner has another name."""


def attached_as(claim: PersistentVolumeClaim, storage: Storage) -> tuple[str, str]:
    """The CSI driver that attaches a claim's volume, and a name of the volume; empty where none does.

    An unbound claim, or one whose volume is gone, goes by its class.
    """
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        named = storage.classes.get(class_of(claim))
        if named is None:
            return "", ""
        driver = named.parameters.get(CSI_DRIVER) or _MIGRATED_PROVISIONERS.get(named.provisioner, named.provisioner)
        return driver, f"{claim.metadata.namespace}/{claim.metadata.name}"
    return attached_volume(volume)


def attached_volume(volume: PersistentVolume) -> tuple[str, str]:
    """The CSI driver that attaches a volume, and its handle; empty where none does."""
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    for field, driver, key in _MIGRATED:
        source = getattr(volume.spec, field)
        if source is not None:
            return driver, str(source.get(key, volume.metadata.name))
    return "", ""
