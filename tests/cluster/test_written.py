"""A state written down as manifests and read again is the same state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.cluster.files.written import as_list, manifests
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import Eviction
from stromboli.model.codec import encode_snapshot
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue, state

NOW = 1_800_000_000.0


def of_kind(api_version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


MEMBERS = [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
WEB = {"matchLabels": {"app": "web"}}
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}


def conditioned(found: Manifest, **status: Any) -> Manifest:
    """The same with more in its status."""
    return {**found, "status": {**found.get("status", {}), **status}}


def deleting(seconds: int) -> Manifest:
    """A pod that is being deleted and may take so long."""
    found = pod("p", group="g", on="n1", deleting=True, terminationGracePeriodSeconds=seconds)
    found["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    return found


def owned(found: Manifest) -> Manifest:
    """The same with an owner."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "job", "uid": "j"}
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [owner]}}


OBJECTS: dict[str, Manifest] = {
    "a-node": node("n2", cpu=3, labels={"zone": "a"}, resources={"nvidia.com/gpu": 2}),
    "a-tainted-node": {**node("n2"), "spec": {"taints": [TAINT], "unschedulable": True}},
    "a-queue": queue("q", weight=3, capability={"cpu": 4}, priority=7),
    "a-closed-queue": queue("q", state="Closed"),
    "a-group": pod_group("h", min_member=3, queue="q", phase="Inqueue", minResources={"cpu": "3"}),
    "a-group-of-roles": pod_group("h", min_member=3, minTaskMember={"a": 1, "b": 2}),
    "a-group-with-a-topology": pod_group("h", networkTopology={"mode": "hard", "highestTierAllowed": 2}),
    "a-pod": pod("p", group="g", cpu="300m", labels={"app": "web"}, annotations={"a": "b"}, created=1_700_000_000),
    "a-pod-of-a-job": owned(pod("p", group="g")),
    "a-pod-that-runs": pod("p", group="g", on="n1"),
    "a-pod-that-has-succeeded": pod("p", group="g", on="n1", phase="Succeeded"),
    "a-pod-that-has-failed": pod("p", group="g", on="n1", phase="Failed"),
    "a-pod-that-ends": deleting(30),
    "a-pod-that-ends-slowly": deleting(600),
    "a-gated-pod": pod("p", group="g", schedulingGates=[{"name": "wait"}]),
    "a-pod-with-volumes": pod("p", group="g", volumes=[
        {"name": "v0", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "scratch", "ephemeral": {}},
    ]),
    "a-nominated-pod": pod("p", group="g", nominated="n1"),
    "a-refused-pod": conditioned(pod("p", group="g"), conditions=[REFUSED]),
    "a-hypernode": of_kind("topology.volcano.sh/v1alpha1", "HyperNode", "s1", spec={"tier": 1, "members": MEMBERS}),
    "a-quota": of_kind(
        "v1", "ResourceQuota", "quota", "default", status={"hard": {"pods": "3", "cpu": "2"}, "used": {"pods": "1"}}
    ),
    "a-namespace": {**of_kind("v1", "Namespace", "default"), "metadata": {"name": "default", "labels": {"a": "b"}}},
    "a-priority-class": of_kind("scheduling.k8s.io/v1", "PriorityClass", "high", value=9, globalDefault=True),
    "a-service": of_kind("v1", "Service", "web", "default", spec={"selector": {"app": "web"}}),
    "a-replica-set": of_kind("apps/v1", "ReplicaSet", "web", "default", spec={"selector": WEB}),
    "a-budget": of_kind(
        "policy/v1", "PodDisruptionBudget", "web", "default", spec={"selector": WEB},
        status={"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    ),
}  # fmt: skip


def said(found: ClusterState) -> tuple[Any, ...]:
    """All that a state tells sessions."""
    snapshot = found.snapshot()
    pods = [(task.phase, task.condition, task.grace, task.ends, task.owner) for task in found.tasks.values()]
    specs = dict(found.hyper_nodes.specs())
    return encode_snapshot(snapshot), pods, specs, found.quotas, found.namespace_labels, found.services, found.budgets


@pytest.mark.parametrize("name", OBJECTS)
def test_each_kind_of_object_is_written_with_all_that_counts(name: str) -> None:
    written = state(node("n1"), queue("default"), pod_group("g"), OBJECTS[name], complete=False)
    listed = msgspec.json.decode(b"".join(as_list(manifests(written, NOW))))
    assert (listed["kind"], listed["apiVersion"]) == ("List", "v1")
    read = state(*listed["items"], complete=False)
    assert said(read) == said(written)
    assert said(read) != said(state(node("n1"), queue("default"), pod_group("g"), complete=False))


def test_a_pod_whose_eviction_has_just_been_asked_for_is_written_as_one_that_ends() -> None:
    found = state(node("n1"), queue("default"), pod_group("g"), pod("p", group="g", on="n1"))
    uid = found.tasks["default/p"].uid
    assert Mirror(found).assume_evicted(Eviction(uid, "default/p", "default/g", "n1", "preempt"))
    (written,) = [each for each in manifests(found, NOW) if each["kind"] == "Pod"]
    assert written["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z"
