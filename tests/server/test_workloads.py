"""Deployments, StatefulSets, DaemonSets and batch Jobs of the embedded cluster make and replace their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.server.controllers.workloads.deployments import bounds
from stromboli.server.controllers.workloads.room import Workloads
from tests.server.browser import MERGE, Browser

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
POD_NAMES = ("", "pods")
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


LOOP: list[asyncio.Runner] = []


@pytest.fixture(autouse=True, scope="module")
def one_loop() -> Iterator[None]:
    with asyncio.Runner() as runner:
        LOOP.append(runner)
        yield
        LOOP.clear()


class Cluster:
    """A server with the controllers, and a test that plays scheduler and kubelets."""

    def __init__(self, nodes: int = 0) -> None:
        self.browser = Browser()
        self.browser.runner = LOOP[0]
        self.api = self.browser.api
        self.room = Workloads(self.api)
        for number in range(nodes):
            self.browser("POST", "/api/v1/nodes", {"metadata": {"name": f"n{number}"}})

    def make(self, url: str, name: str, image: str = "one", **spec: Any) -> Any:
        container = {"name": "c", "image": image}
        template: Any = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        if url == JOBS:
            template["spec"]["restartPolicy"] = "Never"
        else:
            spec["selector"] = {"matchLabels": {"app": name}}
        answer = self.browser("POST", url, {"metadata": {"name": name}, "spec": {"template": template, **spec}})
        assert answer.code == 201, answer.body
        self.settle()
        return answer.body

    def patch(self, url: str, body: Any) -> None:
        answer = self.browser("PATCH", url, body, MERGE)
        assert answer.code == 200, answer.body
        self.settle()

    def settle(self) -> None:
        """Everything that follows without anybody else's doing."""
        before = -1
        while before != self.api.store.version:
            before = self.api.store.version
            self.room.settle()
            self.browser.settle()

    @property
    def pods(self) -> dict[str, Any]:
        return {key[1]: entry.body for key, entry in self.api.store.of(POD_NAMES).entries.items()}

    def step(self, **status: Any) -> bool:
        """Kubelets let go what was deleted and start the rest; whether there was anything to do."""
        done = False
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self.api.store.drop(POD_NAMES, ("default", name))
                done = True
            elif pod["status"].get("phase") == "Pending":
                placed = {**pod, "spec": {**pod["spec"], "nodeName": "n0"}, "status": {**READY, **status}}
                self.api.store.put(POD_NAMES, placed)
                done = True
        self.settle()
        return done

    def run(self) -> None:
        """Until nothing is left to do."""
        for _ in range(200):
            if not self.step():
                return
        raise AssertionError("it comes to no end")

    def end(self, name: str, phase: str) -> None:
        self.api.store.put(POD_NAMES, {**self.pods[name], "status": {"phase": phase}})
        self.settle()

    def get(self, url: str) -> Any:
        return self.browser("GET", url).body

    def images(self) -> list[str]:
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods.values())


def image(name: str) -> Any:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


# ---------------------------------------------------------------------- deployments


def test_a_deployment_has_as_many_pods_as_it_asks_for_and_says_so() -> None:
    cluster = Cluster()
    cluster.make(f"{APPS}/deployments", "web", replicas=3)
    cluster.run()
    found = cluster.get(f"{APPS}/deployments/web")
    assert {key: found["status"].get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")} == {
        "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3,
    }  # fmt: skip
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    reasons = {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}
    assert reasons == {
        "Available": ("True", "MinimumReplicasAvailable"), "Progressing": ("True", "NewReplicaSetAvailable"),
    }  # fmt: skip
    cluster.patch(f"{APPS}/deployments/web", {"spec": {"replicas": 1}})
    cluster.run()
    assert len(cluster.pods) == 1
    name = next(iter(cluster.pods))
    cluster.browser("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    cluster.settle()
    cluster.run()
    assert len(cluster.pods) == 1
    assert name not in cluster.pods, "what goes is replaced"
    cluster.browser("DELETE", f"{APPS}/deployments/web")
    cluster.settle()
    cluster.run()
    assert cluster.pods == {}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable"),
    [
        (0, "25%", "25%"),
        (1, "25%", "25%"),
        (4, "25%", "25%"),
        (5, 1, 0),
        (3, 0, 1),
        (2, 0, 0),
        (3, "100%", "100%"),
        (7, 3, "25%"),
    ],
)
def test_a_rollout_keeps_its_bounds(replicas: int, surge: Any, unavailable: Any) -> None:
    cluster = Cluster()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    cluster.make(f"{APPS}/deployments", "web", replicas=replicas, strategy=rolling)
    cluster.run()
    more, fewer = bounds(cluster.get(f"{APPS}/deployments/web"))
    cluster.patch(f"{APPS}/deployments/web", image("two"))
    for _ in range(60):
        alive = [pod for pod in cluster.pods.values() if "deletionTimestamp" not in pod["metadata"]]
        assert len(alive) <= replicas + more
        assert sum(pod["status"]["phase"] == "Running" for pod in alive) >= replicas - fewer
        if not cluster.step():
            break
    assert cluster.images() == ["two"] * replicas


def test_an_undone_rollout_takes_the_old_replica_set_again_with_a_new_revision() -> None:
    cluster = Cluster()
    cluster.make(f"{APPS}/deployments", "web", replicas=2, revisionHistoryLimit=1)
    cluster.run()
    for name in ("two", "one", "three"):
        cluster.patch(f"{APPS}/deployments/web", image(name))
        cluster.run()
        assert cluster.images() == [name, name]
    sets = cluster.get(f"{APPS}/replicasets")["items"]
    revisions = {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["metadata"]["annotations"][
            "deployment.kubernetes.io/revision"
        ]
        for one in sets
    }
    assert revisions == {"one": "3", "three": "4"}, "of the empty ones the newest is kept"


def test_a_deployment_that_recreates_has_no_pods_of_two_versions_at_once() -> None:
    cluster = Cluster()
    cluster.make(f"{APPS}/deployments", "web", replicas=2, strategy={"type": "Recreate"})
    cluster.run()
    cluster.patch(f"{APPS}/deployments/web", image("two"))
    while cluster.step():
        assert len(set(cluster.images())) <= 1
    assert cluster.images() == ["two", "two"]


def test_what_a_quota_refuses_is_told_and_made_once_there_is_room() -> None:
    cluster = Cluster()
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    cluster.browser("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    cluster.make(f"{APPS}/deployments", "web", replicas=2)
    assert len(cluster.pods) == 1
    events = [one["message"] for one in cluster.get("/api/v1/namespaces/default/events")["items"]]
    assert len(events) == 1
    assert "exceeded quota: q" in events[0]
    cluster.patch("/api/v1/namespaces/default/resourcequotas/q", {"spec": {"hard": {"pods": "5"}}})
    cluster.room._due |= dict.fromkeys(cluster.room._refused)
    cluster.settle()
    assert len(cluster.pods) == 2


# ---------------------------------------------------------------------- stateful sets and daemon sets


def test_pods_of_a_stateful_set_come_in_order_go_in_reverse_and_keep_their_claims() -> None:
    cluster = Cluster()
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
             "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    cluster.make(f"{APPS}/statefulsets", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    assert sorted(cluster.pods) == ["db-0"]
    cluster.step()
    assert sorted(cluster.pods) == ["db-0", "db-1"]
    cluster.run()
    claims = [
        one["metadata"]["name"] for one in cluster.get("/api/v1/namespaces/default/persistentvolumeclaims")["items"]
    ]
    assert sorted(claims) == ["data-db-0", "data-db-1"]
    cluster.patch(f"{APPS}/statefulsets/db", image("two"))
    ending = [name for name, pod in cluster.pods.items() if "deletionTimestamp" in pod["metadata"]]
    assert ending == ["db-1"]
    cluster.run()
    assert cluster.images() == ["two", "two"]
    status = cluster.get(f"{APPS}/statefulsets/db")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["readyReplicas"], status["updatedReplicas"]) == (2, 2)
    cluster.patch(f"{APPS}/statefulsets/db", {"spec": {"replicas": 0}})
    ending = [name for name, pod in cluster.pods.items() if "deletionTimestamp" in pod["metadata"]]
    assert ending == ["db-1"]
    cluster.run()
    assert cluster.pods == {}


def test_a_daemon_set_has_a_pod_on_each_node_that_bears_it() -> None:
    cluster = Cluster(nodes=3)
    taint = {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    cluster.patch("/api/v1/nodes/n2", taint)
    cluster.make(f"{APPS}/daemonsets", "agent")
    cluster.run()
    assert _nodes(cluster) == ["n0", "n1"]
    cluster.patch("/api/v1/nodes/n2", {"spec": {"taints": None}})
    cluster.run()
    assert _nodes(cluster) == ["n0", "n1", "n2"]
    cluster.patch(f"{APPS}/daemonsets/agent", image("two"))
    cluster.run()
    assert (cluster.images(), _nodes(cluster)) == (["two"] * 3, ["n0", "n1", "n2"])
    status = cluster.get(f"{APPS}/daemonsets/agent")["status"]
    assert (status["desiredNumberScheduled"], status["updatedNumberScheduled"], status["numberReady"]) == (3, 3, 3)
    cluster.browser("DELETE", "/api/v1/nodes/n0")
    cluster.settle()
    cluster.run()
    assert _nodes(cluster) == ["n1", "n2"]


def _nodes(cluster: Cluster) -> list[str]:
    terms = [
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for pod in cluster.pods.values()
    ]
    return sorted(term["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] for term in terms)


# ---------------------------------------------------------------------- jobs


def test_a_job_is_complete_once_enough_of_its_pods_have_succeeded() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", completions=3, parallelism=2)
    assert len(cluster.pods) == 2
    first, second = cluster.pods
    cluster.end(first, "Succeeded")
    cluster.end(second, "Failed")
    assert len(cluster.pods) == 4
    for name, pod in cluster.pods.items():
        if pod["status"]["phase"] == "Pending":
            cluster.end(name, "Succeeded")
    status = cluster.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["failed"], status.get("active")) == (3, 1, None)
    assert [one["type"] for one in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]


@pytest.mark.parametrize(("limit", "pods"), [(0, 1), (2, 3)])
def test_a_job_that_fails_too_often_is_over(limit: int, pods: int) -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", backoffLimit=limit)
    for _ in range(10):
        for name, pod in cluster.pods.items():
            if pod["status"]["phase"] == "Pending":
                cluster.end(name, "Failed")
    status = cluster.get(f"{JOBS}/j")["status"]
    assert len(cluster.pods) == pods
    assert [(one["type"], one["reason"]) for one in status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded"),
    ]  # fmt: skip


def test_an_indexed_job_has_a_pod_for_each_index() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", completions=3, parallelism=3, completionMode="Indexed")
    key = "batch.kubernetes.io/job-completion-index"
    indices = {pod["metadata"]["annotations"][key]: name for name, pod in cluster.pods.items()}
    assert sorted(indices) == ["0", "1", "2"]
    cluster.end(indices["1"], "Failed")
    again = [
        pod["metadata"]["annotations"][key] for pod in cluster.pods.values() if pod["status"]["phase"] == "Pending"
    ]
    assert sorted(again) == ["0", "1", "2"]
    for name, pod in cluster.pods.items():
        if pod["status"]["phase"] == "Pending":
            cluster.end(name, "Succeeded")
    assert cluster.get(f"{JOBS}/j")["status"]["completedIndexes"] == "0,1,2"


def test_a_suspended_job_has_no_pods() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", suspend=True)
    assert cluster.pods == {}
    assert cluster.get(f"{JOBS}/j")["status"]["conditions"][0]["type"] == "Suspended"
    cluster.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    assert len(cluster.pods) == 1
    cluster.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
    cluster.run()
    assert cluster.pods == {}
