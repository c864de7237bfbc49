"""Sound objects, and the fields that make them unusable: (kind, field, value, the field that the message names).

A field is a path as in messages; setting it makes the mappings and lists on the way.
"""

from __future__ import annotations

import copy
import itertools
import re

MISSING = object()

API = {
    "Service": "v1",
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Pod": "v1",
    "Node": "v1",
    "Namespace": "v1",
    "ResourceQuota": "v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "Queue": "scheduling.volcano.sh/v1beta1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "HyperNode": "topology.volcano.sh/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "Job": "batch.volcano.sh/v1alpha1",
}

TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}

SOUND: dict[str, dict[str, object]] = {
    "Service": {"spec": {"selector": {"app": "web"}}},
    "ReplicationController": {"spec": {"selector": {"app": "web"}}},
    "ReplicaSet": {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
    "StatefulSet": {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
    "Pod": {
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Pending"},
    },
    "Node": {"status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}},
    "Namespace": {},
    "ResourceQuota": {"status": {"hard": {"cpu": "4"}, "used": {"cpu": "1"}}},
    "PodGroup": {"spec": {"minMember": 2}, "status": {"phase": "Pending"}},
    "Queue": {"spec": {"weight": 1}},
    "PriorityClass": {"value": 100},
    "HyperNode": {
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}}]},
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    "ResourceClaim": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    },
    "Job": {"spec": {"tasks": [{"name": "worker", "replicas": 2, "template": TEMPLATE}]}},
}

CPU = "spec.containers[0].resources.requests.cpu"
MEMORY = "spec.containers[0].resources.requests.memory"
CREATED = "metadata.creationTimestamp"
TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"

FIELDS = [
    # identity
    ("Pod", "metadata.name", MISSING, "metadata.name"),
    ("Pod", "metadata.name", None, "metadata.name"),
    ("Node", "metadata.name", "", "metadata.name"),
    ("Queue", "metadata.name", 5, "metadata.name"),
    ("Pod", "metadata.name", "a/b", "metadata.name"),
    ("Pod", "metadata.name", "a b", "metadata.name"),
    ("Pod", "metadata.name", "n" * 254, "metadata.name"),
    ("Pod", "metadata.namespace", "n" * 10_000_000, "metadata.namespace"),
    ("Pod", "metadata.namespace", 7, "metadata.namespace"),
    ("Pod", "metadata.namespace", "a\nb", "metadata.namespace"),
    ("Pod", "metadata", "x", "metadata"),
    ("Node", "metadata", ["x"], "metadata"),
    ("Pod", "metadata.uid", {}, "metadata.uid"),
    ("Pod", "metadata.labels", ["x"], "metadata.labels"),
    ("Pod", "metadata.labels", "x", "metadata.labels"),
    ("Pod", "metadata.labels.version", 1, "metadata.labels.version"),
    ("Node", "metadata.labels.ssd", True, "metadata.labels.ssd"),
    ("Pod", "metadata.annotations.weight", 1.5, "metadata.annotations.weight"),
    ("PodGroup", "metadata.annotations.deep", {"a": "b"}, "metadata.annotations.deep"),
    ("Pod", "metadata.ownerReferences", {}, "metadata.ownerReferences"),
    ("Pod", "metadata.ownerReferences[0]", "x", "metadata.ownerReferences[0]"),
    # times
    ("Pod", CREATED, "yesterday", CREATED),
    ("Pod", CREATED, "2024-01-01", CREATED),
    ("Node", CREATED, "2024-13-01T00:00:00Z", CREATED),
    ("PodGroup", CREATED, "2023-02-29T00:00:00Z", CREATED),
    ("Queue", CREATED, "2024-01-01T24:00:00Z", CREATED),
    ("Pod", CREATED, "2024-01-01T00:00:00", CREATED),
    ("Pod", CREATED, "2024-01-01T00:00:00+99:00", CREATED),
    ("Pod", CREATED, 1704067200, CREATED),
    ("Pod", "metadata.deletionTimestamp", "soon", "metadata.deletionTimestamp"),
    ("Pod", "status.startTime", "2024-01-01T25:00:00Z", "status.startTime"),
    # the shape of a pod
    ("Pod", "spec", "x", "spec"),
    ("Pod", "spec", [], "spec"),
    ("Pod", "spec.containers", {}, "spec.containers"),
    ("Pod", "spec.containers", "x", "spec.containers"),
    ("Pod", "spec.containers[0]", 5, "spec.containers[0]"),
    ("Pod", "spec.containers[0].name", 1, "spec.containers[0].name"),
    ("Pod", "spec.containers[0].resources", [], "spec.containers[0].resources"),
    ("Pod", "spec.containers[0].resources.requests", "1", "spec.containers[0].resources.requests"),
    ("Pod", "spec.containers[0].ports[0].hostPort", 70000, "spec.containers[0].ports[0].hostPort"),
    ("Pod", "spec.containers[0].ports[0].hostPort", "80", "spec.containers[0].ports[0].hostPort"),
    ("Pod", "spec.initContainers", 1, "spec.initContainers"),
    ("Pod", "spec.nodeName", 5, "spec.nodeName"),
    ("Pod", "spec.nodeSelector.disk", 1, "spec.nodeSelector.disk"),
    ("Pod", "spec.priority", 2**31, "spec.priority"),
    ("Pod", "spec.priority", -(10**30), "spec.priority"),
    ("Pod", "spec.priority", "high", "spec.priority"),
    *(
        ("Pod", field, number, field)
        for field, number in (
            ("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", 2**63),
            ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", 2**31),
            ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", -(2**57)),
            ("spec.topologySpreadConstraints[0].maxSkew", 2**63),
            ("spec.topologySpreadConstraints[0].minDomains", 2**31),
        )
    ),
    ("Pod", "spec.tolerations", {"key": "a"}, "spec.tolerations"),
    ("Pod", "spec.tolerations[0].key", 1, "spec.tolerations[0].key"),
    ("Pod", "spec.schedulingGates", ["gate"], "spec.schedulingGates[0]"),
    ("Pod", "spec.affinity", "spread", "spec.affinity"),
    ("Pod", "spec.affinity.nodeAffinity", [], "spec.affinity.nodeAffinity"),
    ("Pod", f"{TERM}.matchExpressions[0].values", [1], f"{TERM}.matchExpressions[0].values[0]"),
    ("Pod", "spec.topologySpreadConstraints[0].maxSkew", "1", "spec.topologySpreadConstraints[0].maxSkew"),
    ("Pod", "status.phase", 1, "status.phase"),
    ("Pod", "status.conditions", "x", "status.conditions"),
    # amounts
    ("Pod", CPU, -1, CPU),
    ("Pod", CPU, "-100m", CPU),
    ("Pod", CPU, "abc", CPU),
    ("Pod", CPU, "1e", CPU),
    ("Pod", CPU, "", CPU),
    ("Pod", CPU, "1 ", CPU),
    ("Pod", CPU, "0x10", CPU),
    ("Pod", CPU, True, CPU),
    ("Pod", CPU, {}, CPU),
    ("Pod", CPU, ["1"], CPU),
    ("Pod", CPU, float("nan"), CPU),
    ("Pod", CPU, float("inf"), CPU),
    ("Pod", CPU, 10**40, CPU),
    ("Pod", CPU, "1e30", CPU),
    ("Pod", CPU, "9" * 5000, CPU),
    ("Pod", CPU, "1e999999999999999999", CPU),
    ("Pod", MEMORY, "1 Gi", MEMORY),
    ("Pod", MEMORY, "12XB", MEMORY),
    ("Pod", MEMORY, "100Pi", MEMORY),
    ("Pod", "spec.containers[0].resources.requests.example.com/gpu", "-2", "requests.example.com/gpu"),
    ("Pod", "spec.containers[0].resources.limits.cpu", "-1", "spec.containers[0].resources.limits.cpu"),
    ("Pod", "spec.initContainers[0].resources.requests.cpu", "x", "spec.initContainers[0].resources.requests.cpu"),
    ("Pod", "spec.overhead.cpu", "x", "spec.overhead.cpu"),
    ("Pod", "spec.resources.requests.memory", "-1Gi", "spec.resources.requests.memory"),
    ("Pod", "spec.containers", [{"resources": {"requests": {"memory": "60Pi"}}}] * 2, "spec"),
    # nodes
    ("Node", "status.allocatable.cpu", -4, "status.allocatable.cpu"),
    ("Node", "status.allocatable.memory", "2Ei", "status.allocatable.memory"),
    ("Node", "status.allocatable.memory", "33Pi", "status.allocatable.memory"),
    ("Node", "status.allocatable.ephemeral-storage", "2Pi", "status.allocatable.ephemeral-storage"),
    ("Node", "status.allocatable.memory", "16Qi", "status.allocatable.memory"),
    ("Node", "status.allocatable.pods", "many", "status.allocatable.pods"),
    ("Node", "status.allocatable", "x", "status.allocatable"),
    ("Node", "status.capacity.cpu", "1e40", "status.capacity.cpu"),
    ("Node", "status.images[0].sizeBytes", "x", "status.images[0].sizeBytes"),
    ("Node", "spec.taints", [1], "spec.taints[0]"),
    ("Node", "spec.unschedulable", "yes", "spec.unschedulable"),
    ("Node", "metadata.annotations.volcano.sh/oversubscription-cpu", "-5", "oversubscription-cpu"),
    ("Node", "metadata.annotations.volcano.sh/oversubscription-memory", str(2**61), "oversubscription-memory"),
    # groups
    ("PodGroup", "spec.minMember", -1, "spec.minMember"),
    ("PodGroup", "spec.minMember", "3", "spec.minMember"),
    ("PodGroup", "spec.minMember", 1.5, "spec.minMember"),
    ("PodGroup", "spec.minMember", 2**31, "spec.minMember"),
    ("PodGroup", "spec.minMember", 10**30, "spec.minMember"),
    ("PodGroup", "spec.minTaskMember.worker", -1, "spec.minTaskMember.worker"),
    ("PodGroup", "spec.minTaskMember.worker", "2", "spec.minTaskMember.worker"),
    ("PodGroup", "spec.minTaskMember", [], "spec.minTaskMember"),
    ("PodGroup", "spec.minResources.cpu", "-1", "spec.minResources.cpu"),
    ("PodGroup", "spec.minResources.memory", "lots", "spec.minResources.memory"),
    ("PodGroup", "spec.queue", 5, "spec.queue"),
    ("PodGroup", "spec.networkTopology.highestTierAllowed", "top", "spec.networkTopology.highestTierAllowed"),
    ("PodGroup", "spec.subGroupPolicy", {}, "spec.subGroupPolicy"),
    ("PodGroup", "spec.subGroupPolicy[0].subGroupSize", -1, "spec.subGroupPolicy[0].subGroupSize"),
    ("PodGroup", "spec.subGroupPolicy[0].minSubGroups", 2**40, "spec.subGroupPolicy[0].minSubGroups"),
    ("PodGroup", "status.running", "x", "status.running"),
    # queues, classes, quotas
    ("Queue", "spec.weight", -1, "spec.weight"),
    ("Queue", "spec.weight", "2", "spec.weight"),
    ("Queue", "spec.capability.cpu", "-1", "spec.capability.cpu"),
    ("Queue", "spec.capability", [], "spec.capability"),
    ("Queue", "spec.deserved.memory", "lots", "spec.deserved.memory"),
    ("Queue", "spec.guarantee.resource.cpu", "x", "spec.guarantee.resource.cpu"),
    ("Queue", "status.allocated.cpu", "x", "status.allocated.cpu"),
    ("Queue", "spec.reclaimable", "no", "spec.reclaimable"),
    ("Queue", "spec.parent", 7, "spec.parent"),
    ("Queue", "spec.priority", 2**40, "spec.priority"),
    ("PriorityClass", "value", 2**31, "value"),
    ("PriorityClass", "value", "high", "value"),
    ("PriorityClass", "globalDefault", 1, "globalDefault"),
    ("ResourceQuota", "status.hard.cpu", "x", "status.hard.cpu"),
    ("ResourceQuota", "status.used.memory", "-1", "status.used.memory"),
    # hypernodes, budgets
    ("HyperNode", "spec.tier", "1", "spec.tier"),
    ("HyperNode", "spec.tier", -1, "spec.tier"),
    ("HyperNode", "spec.members", {}, "spec.members"),
    ("HyperNode", "spec.members[0].type", "Rack", "spec.members[0].type"),
    ("HyperNode", "spec.members[0].selector", {}, "spec.members[0].selector"),
    ("HyperNode", "spec.members[0].selector.exactMatch.name", "n1", "spec.members[0].selector"),
    ("HyperNode", "spec.members[0].selector.regexMatch.pattern", "(", "spec.members[0].selector.regexMatch.pattern"),
    ("PodDisruptionBudget", "spec.minAvailable", "half", "spec.minAvailable"),
    ("PodDisruptionBudget", "spec.minAvailable", -1, "spec.minAvailable"),
    ("PodDisruptionBudget", "spec.maxUnavailable", 1, "spec"),
    ("PodDisruptionBudget", "spec.selector", "app=a", "spec.selector"),
    # jobs
    ("Job", "spec.tasks", "x", "spec.tasks"),
    ("Job", "spec.tasks[0].replicas", -1, "spec.tasks[0].replicas"),
    ("Job", "spec.tasks[0].replicas", 2**31 - 1, "spec.tasks"),
    ("Job", "spec.tasks[0].minAvailable", 3, "spec.tasks[0].minAvailable"),
    ("Job", "spec.tasks[1].name", "worker", "spec.tasks[1].name"),
    ("Job", "spec.minAvailable", -1, "spec.minAvailable"),
    ("Job", f"spec.tasks[0].template.{CPU}", "x", f"spec.tasks[0].template.{CPU}"),
    # kind and version
    ("Pod", "apiVersion", "v2", "apiVersion"),
    ("Pod", "apiVersion", "apps/v1", "apiVersion"),
    ("Queue", "apiVersion", "scheduling.volcano.sh/v2", "apiVersion"),
    ("Node", "apiVersion", MISSING, "apiVersion"),
    ("Node", "apiVersion", 1, "apiVersion"),
    ("Pod", "kind", MISSING, "kind"),
    ("Pod", "kind", 5, "kind"),
    ("Pod", "kind", "", "kind"),
]


def sound(kind, name="sound"):
    """An object of ``kind`` with nothing wrong."""
    return {"apiVersion": API[kind], "kind": kind, "metadata": {"name": name}, **copy.deepcopy(SOUND[kind])}


def broken(kind, field, value, name="broken"):
    """A sound object but for one field."""
    whole = sound(kind, name)
    steps = _steps(field)
    last = steps[-1]
    place = whole
    for step, following in itertools.pairwise(steps):
        place = _entered(place, step, [] if isinstance(following, int) else {})
    if value is MISSING:
        del place[last]
    else:
        _entered(place, last, None)
        place[last] = value
    return whole


_PATH = re.compile(r"(.*?)(?:((?:annotations|requests)\.)((?:volcano|example)\..*))?")


def _steps(field):
    """The keys and indexes of a path; keys of labels, annotations and resource lists may hold dots."""
    match = _PATH.fullmatch(field)
    assert match is not None
    head, mark, key = match.groups()
    found = re.findall(r"([^.\[\]]+)|\[(\d+)\]", head + (mark or ""))
    steps = [int(index) if index else name for name, index in found]
    return [*steps, key] if key else steps


def _entered(place, step, empty):
    if isinstance(place, list):
        while len(place) <= step:
            place.append(copy.deepcopy(empty))
    elif step not in place:
        place[step] = empty
    return place[step]
