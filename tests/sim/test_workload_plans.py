"""Plans of Deployments, StatefulSets and batch Jobs whose pods are not listed: they are made as on a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests as m
from tests.cli.manifests import Obj


def workload(version: str, kind: str, scheduler: str = "volcano", notes: Any = None, **spec: Any) -> Obj:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    pod = {"schedulerName": scheduler, "containers": [container]} if scheduler else {"containers": [container]}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod}
    metadata = {"name": "w", "namespace": "ns", "annotations": notes or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": template, **spec}}


def planned(directory: Path, *objects: Obj) -> Planning:
    settings = Settings()
    registry = full_registry("")
    planning = Planning(config_of(settings, registry), registry, now=1_800_000_000.0)
    planning.load([m.write(directory, [m.node("n1", cpu="4"), *objects])])
    planning.run(1)
    return planning


def bound(planning: Planning) -> list[str]:
    return sorted(bind.key for bind in planning.plans[-1].binds)


@pytest.mark.parametrize(
    ("found", "pods"),
    [
        (workload("apps/v1", "Deployment", replicas=2), 2),
        (workload("apps/v1", "StatefulSet", replicas=3), 3),
        (workload("apps/v1", "ReplicaSet"), 1),
        (workload("batch/v1", "Job", parallelism=3, completions=2), 2),
        (workload("batch/v1", "Job", parallelism=3, suspend=True), 0),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_pods_are_made_of_a_workload_and_share_a_group(found: Obj, pods: int, tmp_path: Path) -> None:
    planning = planned(tmp_path, found)
    assert bound(planning) == [f"ns/w-{number}" for number in range(pods)]
    assert [job.min_available for job in planning.state.jobs.values()] == [1] * bool(pods)
    assert planning.ignored() == []


def test_a_daemon_set_has_a_pod_on_each_node_that_bears_it(tmp_path: Path) -> None:
    def labelled(name: str, **spec: Any) -> Obj:
        found = m.node(name, cpu="4")
        found["metadata"]["labels"] = {"pool": "gpu"}
        return {**found, "spec": {**found.get("spec", {}), **spec}}

    found = workload("apps/v1", "DaemonSet")
    found["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    kept = {"key": "mine", "value": "x", "effect": "NoSchedule"}
    cordoned = {"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}
    nodes = labelled("n2"), labelled("n3"), labelled("n4", taints=[kept]), labelled("n5", **cordoned)
    planning = planned(tmp_path, found, *nodes)
    assert sorted(bind.node for bind in planning.plans[-1].binds) == ["n2", "n3", "n5"]
    assert planning.ignored() == []


@pytest.mark.parametrize("scheduler", ["", "other"])
def test_a_daemon_set_of_another_scheduler_is_told(scheduler: str, tmp_path: Path) -> None:
    planning = planned(tmp_path, workload("apps/v1", "DaemonSet", scheduler))
    assert planning.ignored() == [f"DaemonSet ns/w: its pods are left to scheduler {scheduler or 'default-scheduler'}"]


@pytest.mark.parametrize(("replicas", "placed"), [(4, 4), (5, 0)])
def test_the_owners_minimum_is_a_gangs(replicas: int, placed: int, tmp_path: Path) -> None:
    least = {"scheduling.volcano.sh/group-min-member": str(replicas)}
    planning = planned(tmp_path, workload("apps/v1", "Deployment", notes=least, replicas=replicas))
    assert len(bound(planning)) == placed


@pytest.mark.parametrize("scheduler", ["", "other"])
def test_pods_of_other_schedulers_are_not_made_and_that_is_said(scheduler: str, tmp_path: Path) -> None:
    planning = planned(tmp_path, workload("batch/v1", "Job", scheduler))
    assert bound(planning) == []
    assert planning.ignored() == [f"Job ns/w: its pods are left to scheduler {scheduler or 'default-scheduler'}"]


def test_pods_and_replica_sets_that_are_listed_are_not_made_again(tmp_path: Path) -> None:
    deployment = workload("apps/v1", "Deployment", replicas=3)
    replica_set = workload("apps/v1", "ReplicaSet", replicas=3)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "d", "controller": True}
    replica_set["metadata"] |= {"name": "w-1", "ownerReferences": [owner]}
    assert bound(planned(tmp_path, deployment, replica_set)) == ["ns/w-1-0", "ns/w-1-1", "ns/w-1-2"]
    pod = m.pod("p")
    pod["metadata"]["ownerReferences"] = [{**owner, "kind": "ReplicaSet", "name": "w-1"}]
    assert bound(planned(tmp_path, deployment, replica_set, pod)) == ["ns/p"]


@pytest.mark.parametrize("replicas", [-1, 1_000_001])
def test_numbers_that_cannot_be_are_problems(replicas: int, tmp_path: Path) -> None:
    planning = planned(tmp_path, workload("apps/v1", "Deployment", replicas=replicas))
    (problem,) = planning.loading.problems
    assert problem.object == "Deployment ns/w"
