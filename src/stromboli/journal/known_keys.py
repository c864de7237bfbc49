"""Keys of annotations, labels and taints, and values, that say nothing of their users: Kubernetes, Volcano, HAMi and we
have named them.  More keys are in :mod:`stromboli.model.names` and :mod:`stromboli.cluster.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.api.batch import BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE
from stromboli.cluster.decoding import chip_reports
from stromboli.cluster.decoding.annotations import ANY_ZONE, BOOLEANS
from stromboli.model.objects import shard
from stromboli.plugins.deviceshare import kind, mind_cluster, npu, vgpu
from stromboli.plugins.network_topology_aware import wishes
from stromboli.plugins.resource_strategy_fit import strategy

_BY_DOMAIN: Final[Mapping[str, str]] = {
    "volcano.sh": (
        "topology-group-policy topology-group-tier resource-strategy-scoring-type resource-strategy-weight"
        " task-topology-affinity task-topology-anti-affinity task-topology-task-order"
        " node-vgpu-register vgpu-number vgpu-memory vgpu-cores vgpu-mode vgpu-ids-new vgpu-use-gpuuuid"
        " vgpu-nouse-gpuuuid vgpu-podgroup-policy vgpu-node vgpu-time devices-to-allocate bind-phase bind-time"
        " gpu-memory gpu-number gpu-unhealthy-ids gpu-index predicate-time"
    ),
    "scheduling.volcano.sh": "group-by",
    "node.volcano.sh": "warmup",
    "huawei.com": "vnpu-mode npu-core AscendReal",
    "hami.io": "mutex.lock vgpu-node vgpu-time bind-phase bind-time",
    "stromboli.dev": "expected-runtime rotate-certificate written-configuration",
    "simulation.stromboli.dev": "run-for exit-code start-after stop-after overstay not-ready logs",
    "kubernetes.io": (
        "os arch role config.mirror limit-ranger job-controller no-provisioner aws-ebs gce-pd azure-disk cinder"
        " vsphere-volume"
    ),
    "node.kubernetes.io": (
        "instance-type not-ready unreachable memory-pressure disk-pressure pid-pressure network-unavailable"
    ),
    "node-role.kubernetes.io": "control-plane master worker",
    "beta.kubernetes.io": "os arch instance-type",
    "app.kubernetes.io": "name instance version component part-of managed-by",
    "apps.kubernetes.io": "pod-index",
    "statefulset.kubernetes.io": "pod-name",
    "deployment.kubernetes.io": "revision max-replicas desired-replicas",
    "batch.kubernetes.io": "controller-uid job-name job-completion-index",
    "storageclass.kubernetes.io": "is-default-class",
    "pv.kubernetes.io": "bind-completed bound-by-controller provisioned-by",
    "volume.kubernetes.io": "selected-node storage-provisioner",
    "volume.beta.kubernetes.io": "storage-class storage-provisioner",
    "resource.kubernetes.io": "pod-claim-name delete-protection",
    "csi.storage.k8s.io": "csi-driver-name",
    "jobset.sigs.k8s.io": "replicatedjob-name job-index",
    "leaderworkerset.sigs.k8s.io": "group-index",
    "kubectl.kubernetes.io": "last-applied-configuration",
}

KNOWN_KEYS: Final = frozenset(f"{domain}/{name}" for domain, names in _BY_DOMAIN.items() for name in names.split())
"""The keys with their domains, by equality: what users put behind one of these domains is their own word."""
KNOWN_DOMAINS: Final = frozenset(_BY_DOMAIN)
"""The domains alone."""

KNOWN_VALUES: Final = frozenset((
    *shard.MODES, *BOOLEANS, ANY_ZONE, *wishes.POLICIES, strategy.MOST, strategy.LEAST, BEST_EFFORT,
    RESTRICTED, SINGLE_NUMA_NODE, vgpu.MIG, vgpu.SHARED, vgpu.ALLOCATING, npu.SOFT, npu.NODE_SOFT, kind.BINPACK,
    kind.SPREAD, *mind_cluster.WORDS, chip_reports.NODES[0], *chip_reports.KEYS,
))  # fmt: skip
"""Words that readers of annotations and of checkpoints tell apart."""
