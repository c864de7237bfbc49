"""Stories of what is shared: queues and their trees, priorities and reservations, pods and groups of others."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.recorded.live.cluster import Cluster, container, group, job, pod, priority, queue, task
from tests.recorded.live.notes import Json

TREE = """actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: drf}
  - {name: predicates}
  - {name: capacity, enableHierarchy: true}
  - {name: nodeorder}
"""
PREEMPTING = """actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
LAZY = {"simulation.stromboli.dev/stop-after": "6s"}


async def queues(c: Cluster) -> None:
    """A tree of queues whose amounts are lent and reclaimed; queues are opened, closed, changed and deleted."""
    await c.begin(TREE)
    await c.make(
        queue("dept", capability={"cpu": "12"}, deserved={"cpu": "12"}, parent="root"),
        queue("other", deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "2"}}),
        queue("bad", parent="nowhere"),
    )
    await asyncio.sleep(1)
    await c.make(
        queue("dept-a", parent="dept", deserved={"cpu": "8"}, reclaimable=True),
        queue("dept-b", parent="dept", deserved={"cpu": "4"}, capability={"cpu": "6"}),
    )
    await asyncio.sleep(3)
    await c.make(
        job("a", task("t", 12, "sleep 40"), queue="dept-a", minAvailable=1),
        job("b", task("t", 5, "sleep 25"), queue="dept-b", minAvailable=2),
        job("big", task("t", 3, cpu="20"), queue="dept-b", minAvailable=3),
        job("o", task("t", 4, "sleep 30"), queue="other", minAvailable=4),
        job("no", task("t", 1), queue="dept"),
    )
    await asyncio.sleep(15)
    await c.command("CloseQueue", "Queue", "dept-b")
    await c.remove("queues", "other")
    await c.change("queues", "dept-a", {"spec": {"capability": {"cpu": "6"}, "weight": 4}})
    await asyncio.sleep(10)
    await c.remove("queues", "dept")
    await c.remove("jobs", "big")
    await asyncio.sleep(10)
    await c.command("CloseQueue", "Queue", "dept")
    await asyncio.sleep(5)
    await c.command("OpenQueue", "Queue", "dept-b")
    await asyncio.sleep(15)
    await c.command("OpenQueue", "Queue", "dept")
    await c.change("queues", "dept-b", {"spec": {"parent": "root"}})
    await asyncio.sleep(4)
    await c.command("CloseQueue", "Queue", "other")
    await asyncio.sleep(15)
    await c.remove("queues", "other")
    await asyncio.sleep(4)


async def preemption(c: Cluster) -> None:
    """Urgent jobs evict others, hold room that is about to be free, and give it up where they are gone."""
    await c.begin(PREEMPTING)
    await c.make(
        priority("high", 1000),
        priority("low", 10, preemptionPolicy="PreemptLowerPriority"),
        priority("never", 500, preemptionPolicy="Never"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": "ns"},
            "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "kept"}}},
        },
    )
    lazy = {"annotations": LAZY}
    await c.make(
        job(
            "low",
            task("t", 8, metadata=lazy, spec={"terminationGracePeriodSeconds": 30, "containers": [container()]}),
            minAvailable=1,
            priorityClassName="low",
        ),
        job(
            "kept",
            task("t", 4, metadata={"annotations": LAZY, "labels": {"app": "kept"}}),
            minAvailable=1,
            priorityClassName="low",
        ),
        job("rest", task("t", 4, metadata=lazy), minAvailable=1, priorityClassName="low"),
    )
    await asyncio.sleep(8)
    await c.make(
        job("never", task("t", 2), minAvailable=2, priorityClassName="never"),
        job("high", task("t", 3, "sleep 20", cpu="2"), minAvailable=3, priorityClassName="high"),
    )
    await asyncio.sleep(4)
    await c.make(job("gone", task("t", 2, cpu="3"), minAvailable=2, priorityClassName="high"))
    await asyncio.sleep(3)
    await c.remove("jobs", "gone")
    await asyncio.sleep(15)
    await c.remove("jobs", "rest")
    await asyncio.sleep(20)
    await c.make(job("last", task("t", 16, "sleep 5"), minAvailable=16, priorityClassName="high"))
    await asyncio.sleep(25)


async def pods_of_others(c: Cluster) -> None:
    """Pods without groups, of Deployments and of Kubernetes' own Jobs get groups; users make groups, and odd pods."""
    await c.begin()

    def workload(kind: str, name: str, version: str = "apps/v1", notes: Any = None, **spec: Any) -> Json:
        labels = {"app": name}
        template = {
            "metadata": {"labels": labels, "annotations": notes or {}},
            "spec": {"schedulerName": "volcano", "containers": [container()]},
        }
        selector = {"selector": {"matchLabels": labels}} if version == "apps/v1" else {}
        meta = {"name": name, "namespace": "ns"}
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": meta,
            "spec": {"template": template, **selector, **spec},
        }

    batch = workload(
        "Job", "batch", "batch/v1", {"scheduling.volcano.sh/group-min-member": "3"}, completions=3, parallelism=3
    )
    batch["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "containers": [container(seconds="sleep 6")]}
    await c.make(
        queue("team"),
        workload("Deployment", "web", replicas=3, notes={"scheduling.volcano.sh/queue-name": "team"}),
        workload("StatefulSet", "db", replicas=2, serviceName="db"),
        workload("DaemonSet", "each"),
        workload("ReplicaSet", "set", replicas=2, notes={"scheduling.volcano.sh/group-min-member": "2"}),
        batch,
        pod("single", seconds="sleep 5"),
        pod("other", schedulerName="default-scheduler"),
        pod("gated", schedulingGates=[{"name": "wait"}]),
        pod("astray", notes={"scheduling.k8s.io/group-name": "nowhere"}),
        pod("odd", notes={"scheduling.volcano.sh/group-min-member": "many"}),
        pod(
            "urgent", notes={"scheduling.volcano.sh/queue-name": "missing"}, priorityClassName="system-cluster-critical"
        ),
    )
    await asyncio.sleep(1)
    await c.make(
        group("own", 2, queue="team", minResources={"cpu": "2"}),
    )
    await asyncio.sleep(6)
    await c.make(*(pod(f"own-{n}", notes={"scheduling.k8s.io/group-name": "own"}, seconds="sleep 9") for n in range(2)))
    await c.change("pods", "gated", {"spec": {"schedulingGates": None}})
    await c.change("deployments", "web", {"spec": {"replicas": 5}})
    await asyncio.sleep(10)
    await c.change("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"again": "yes"}}}}})
    await asyncio.sleep(12)
    await c.remove("deployments", "web")
    await c.remove("statefulsets", "db")
    await c.change("podgroups", "own", {"spec": {"queue": "default", "minMember": 1}})
    await c.make(queue("missing"), group("nowhere", 1))
    await asyncio.sleep(12)
    await c.remove("podgroups", "own")
    await c.remove("queues", "team")
    await c.remove("pods", "single")
    await asyncio.sleep(15)
