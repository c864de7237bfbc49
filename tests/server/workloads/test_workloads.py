"""Deployments, StatefulSets, DaemonSets and batch Jobs of the embedded cluster make and replace their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.server.controllers.workloads import jobs, room, stateful_sets
from stromboli.server.controllers.workloads.deployments import bounds
from tests.server.browser import MERGE
from tests.server.workloads.workload_cluster import APPS, JOBS, LOOP, Cluster


@pytest.fixture(autouse=True, scope="module")
def one_loop() -> Iterator[None]:
    with asyncio.Runner() as runner:
        LOOP.append(runner)
        yield
        LOOP.clear()


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


def test_what_was_refused_is_tried_again_on_a_busy_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGAIN_AFTER", 0.01)
    cluster = Cluster()
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    cluster.browser("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    cluster.make(f"{APPS}/deployments", "web", replicas=2)
    cluster.make(f"{APPS}/daemonsets", "agent")
    cluster.browser("PATCH", "/api/v1/namespaces/default/resourcequotas/q", {"spec": {"hard": {"pods": "5"}}}, MERGE)

    async def busy() -> None:
        looking = asyncio.create_task(cluster.room.run())
        for _ in range(20_000):
            cluster.room._ask((("apps", "daemonsets"), ("default", "agent")))
            await asyncio.sleep(0)
            if len(cluster.pods) == 2:
                break
        looking.cancel()

    LOOP[0].run(busy())
    assert len(cluster.pods) == 2


def test_others_have_their_turn_while_there_is_much_to_do() -> None:
    cluster = Cluster()
    for number in range(20):
        cluster.make(f"{APPS}/deployments", f"web{number}", replicas=0)
    found = cluster.api.store.of(("apps", "deployments")).entries
    cluster.room._due |= {(("apps", "deployments"), key): None for key in found}

    async def beside() -> int:
        looking = asyncio.create_task(cluster.room.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        looking.cancel()
        return len(cluster.room._due)

    assert LOOP[0].run(beside()) > 10


def test_a_rollout_that_is_paused_halfway_stays_as_it_is() -> None:
    cluster = Cluster()
    cluster.make(f"{APPS}/deployments", "web", replicas=4, strategy={"rollingUpdate": {"maxSurge": 1}})
    cluster.run()
    cluster.patch(f"{APPS}/deployments/web", image("two"))
    wanted = {"metadata": {"annotations": {"seen": "yes"}}, "spec": {"paused": True}}
    before = [one["spec"]["replicas"] for one in cluster.get(f"{APPS}/replicasets")["items"]]
    cluster.patch(f"{APPS}/deployments/web", wanted)
    cluster.run()
    assert [one["spec"]["replicas"] for one in cluster.get(f"{APPS}/replicasets")["items"]] == before
    assert sorted(set(cluster.images())) == ["one", "two"]
    cluster.patch(f"{APPS}/deployments/web", {"spec": {"paused": False}})
    cluster.run()
    assert cluster.images() == ["two"] * 4
    cluster.patch(f"{APPS}/deployments/web", {"spec": {"paused": True, "replicas": 2}})
    cluster.run()
    assert cluster.images() == ["two"] * 2, "what is paused follows the number that is asked for"


# ---------------------------------------------------------------------- stateful sets and daemon sets


def test_pods_made_in_parallel_are_renewed_one_after_the_other_once_ready() -> None:
    cluster = Cluster()
    cluster.make(f"{APPS}/statefulsets", "db", replicas=3, podManagementPolicy="Parallel")
    cluster.run()
    cluster.patch(f"{APPS}/statefulsets/db", image("two"))
    for _ in range(5):
        cluster.step(phase="Pending", conditions=[])
    assert cluster.images() == ["one", "one", "two"], "the pod that is not ready keeps the rest"
    cluster.run()
    assert cluster.images() == ["two"] * 3


@pytest.mark.parametrize(
    ("url", "spec"),
    [
        (f"{APPS}/statefulsets", {"replicas": 2**31 - 1, "podManagementPolicy": "Parallel"}),
        (JOBS, {"completions": 2**31 - 1, "parallelism": 2**31 - 1, "completionMode": "Indexed"}),
    ],
)
def test_one_look_makes_a_bounded_number_of_pods(monkeypatch: pytest.MonkeyPatch, url: str, spec: Any) -> None:
    for module in (stateful_sets, jobs):
        monkeypatch.setattr(module, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(Cluster, "settle", lambda cluster: None)
    cluster = Cluster()
    cluster.make(url, "many", **spec)
    cluster.room.look()
    assert len(cluster.pods) == 3
    cluster.room.look()
    assert len(cluster.pods) == 6


def test_a_daemon_set_keeps_to_the_nodes_of_its_affinity() -> None:
    cluster = Cluster(nodes=3)
    cluster.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"gpu": "yes"}}})
    cluster.make(f"{APPS}/daemonsets", "agent")
    term = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
    needs = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    cluster.patch(f"{APPS}/daemonsets/agent", {"spec": {"template": {"spec": {"affinity": needs}}}})
    cluster.run()
    assert _nodes(cluster) == ["n1"]
    assert cluster.get(f"{APPS}/daemonsets/agent")["status"]["desiredNumberScheduled"] == 1


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
