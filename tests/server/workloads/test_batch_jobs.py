"""Batch Jobs of the embedded cluster: each pod counts once, and Jobs end when they should."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.cluster.body import stamp
from stromboli.server.controllers.workloads import jobs
from stromboli.server.controllers.workloads.back_off import FIRST, LONGEST
from stromboli.server.controllers.workloads.job_counts import TRACKING, completed, ranges
from tests.server.workloads.workload_cluster import APPS, JOBS, LOOP, POD_NAMES, Cluster


@pytest.fixture(autouse=True, scope="module")
def one_loop() -> Iterator[None]:
    with asyncio.Runner() as runner:
        LOOP.append(runner)
        yield
        LOOP.clear()


def test_a_job_is_complete_once_enough_of_its_pods_have_succeeded() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", completions=3, parallelism=2)
    assert len(cluster.pods) == 2
    first, second = cluster.pods
    cluster.end(first, "Succeeded")
    cluster.end(second, "Failed")
    cluster.wait(FIRST)
    assert len(cluster.pods) == 4
    for name, pod in cluster.pods.items():
        if pod["status"]["phase"] == "Pending":
            cluster.end(name, "Succeeded")
    status = cluster.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["failed"], status.get("active")) == (3, 1, None)
    assert [one["type"] for one in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_job_that_states_only_its_parallelism_ends_once_its_pods_have() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", parallelism=3)
    first, second, third = cluster.pods
    cluster.end(first, "Succeeded")
    assert len(cluster.pods) == 3, "no new ones once one has succeeded"
    assert "completions" not in cluster.get(f"{JOBS}/j")["spec"]
    cluster.end(second, "Succeeded")
    assert "conditions" not in cluster.get(f"{JOBS}/j")["status"]
    cluster.end(third, "Failed")
    assert cluster.get(f"{JOBS}/j")["status"]["conditions"][-1]["type"] == "Complete"


def test_an_indexed_job_must_state_its_completions() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "one"}]}}
    spec = {"completionMode": "Indexed", "parallelism": 2, "template": template}
    answer = Cluster().browser("POST", JOBS, {"metadata": {"name": "j"}, "spec": spec})
    assert answer.code == 422
    assert "spec.completions: Required value: when completion mode is Indexed" in answer.body["message"]


@pytest.mark.parametrize(("limit", "pods"), [(0, 1), (2, 3)])
def test_a_job_that_fails_too_often_is_over(limit: int, pods: int) -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", backoffLimit=limit)
    for _ in range(10):
        for name, pod in cluster.pods.items():
            if pod["status"]["phase"] == "Pending":
                cluster.end(name, "Failed")
        cluster.wait(LONGEST)
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
    cluster.wait(FIRST)
    again = [
        pod["metadata"]["annotations"][key] for pod in cluster.pods.values() if pod["status"]["phase"] == "Pending"
    ]
    assert sorted(again) == ["0", "1", "2"]
    for name, pod in cluster.pods.items():
        if pod["status"]["phase"] == "Pending":
            cluster.end(name, "Succeeded")
    assert cluster.get(f"{JOBS}/j")["status"]["completedIndexes"] == "0-2"


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


def test_a_pod_that_is_deleted_after_it_succeeded_is_not_run_again() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", completions=2, parallelism=1)
    [first] = cluster.pods
    assert cluster.pods[first]["metadata"]["finalizers"] == [TRACKING]
    cluster.end(first, "Succeeded")
    assert "finalizers" not in cluster.pods[first]["metadata"]
    assert cluster.browser.delete(f"/api/v1/namespaces/default/pods/{first}?gracePeriodSeconds=0").code == 200
    cluster.settle()
    [second] = cluster.pods
    cluster.end(second, "Succeeded")
    status = cluster.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["conditions"][-1]["type"], status.get("failed")) == (2, "Complete", None)


def test_a_running_pod_that_is_deleted_has_failed_and_leaves() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", backoffLimit=5)
    cluster.step()
    [first] = cluster.pods
    cluster.browser.delete(f"/api/v1/namespaces/default/pods/{first}")
    cluster.settle()
    assert cluster.get(f"{JOBS}/j")["status"]["failed"] == 1
    cluster.wait(FIRST)
    assert len(cluster.pods) == 2, "another takes its place while it ends"
    assert "finalizers" not in cluster.pods[first]["metadata"]


def test_failing_pods_are_replaced_less_and_less_often() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", backoffLimit=20, completions=9)
    pauses = []
    for _ in range(8):
        pauses.append(cluster.browser.now)
        (name,) = [name for name, pod in cluster.pods.items() if pod["status"]["phase"] == "Pending"]
        cluster.end(name, "Failed")
        known = len(cluster.pods)
        while len(cluster.pods) == known:
            cluster.wait(1)
        pauses[-1] = cluster.browser.now - pauses[-1]
    assert pauses == [10, 20, 40, 80, 160, 320, 360, 360]
    (name,) = [name for name, pod in cluster.pods.items() if pod["status"]["phase"] == "Pending"]
    cluster.end(name, "Succeeded")
    assert len(cluster.pods) == 10, "the next one comes at once"
    (name,) = [name for name, pod in cluster.pods.items() if pod["status"]["phase"] == "Pending"]
    cluster.end(name, "Failed")
    cluster.wait(FIRST)
    assert len(cluster.pods) == 11, "failures before a success do not count"
    cluster.browser.delete(f"{JOBS}/j", {"propagationPolicy": "Background"})
    other = cluster.make(JOBS, "other")["metadata"]["uid"]
    (name,) = [name for name in cluster.pods if name.startswith("other-")]
    cluster.end(name, "Failed")
    assert list(cluster.room._objects.failures) == [other], "a Job that is gone is forgotten"


def test_the_end_that_containers_tell_is_what_the_pause_begins_with() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", parallelism=2, completions=4)
    for name, earlier in zip(list(cluster.pods), (4, 9), strict=True):
        ended = {"terminated": {"finishedAt": stamp(cluster.browser.now - earlier), "exitCode": 1}}
        status = {"phase": "Failed", "containerStatuses": [{"name": "c", "state": ended}]}
        cluster.api.store.put(POD_NAMES, {**cluster.pods[name], "status": status})
    cluster.settle()
    cluster.wait(15)
    assert len(cluster.pods) == 2, "both have failed: 20 seconds after the later one"
    cluster.wait(1)
    assert len(cluster.pods) == 4


def test_a_pod_whose_job_is_gone_is_released_even_with_other_owners() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j")
    keeper = cluster.make(APPS + "/deployments", "keeper", replicas=0)
    [name] = cluster.pods
    pod = cluster.pods[name]
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "keeper", "uid": keeper["metadata"]["uid"]}
    owners = [*pod["metadata"]["ownerReferences"], other]
    cluster.api.store.put(POD_NAMES, {**pod, "metadata": {**pod["metadata"], "ownerReferences": owners}})
    cluster.browser.delete(f"{JOBS}/j", {"propagationPolicy": "Orphan"})
    cluster.settle()
    cluster.browser.delete(f"/api/v1/namespaces/default/pods/{name}")
    cluster.settle()
    assert name not in cluster.pods


class Crash(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(("writes", "indexed"), [(number, number % 2 == 0) for number in range(9)])
def test_an_interruption_counts_no_pod_twice_and_forgets_none(
    monkeypatch: pytest.MonkeyPatch, writes: int, indexed: bool
) -> None:
    cluster = Cluster()
    mode = {"completionMode": "Indexed"} if indexed else {}
    cluster.make(JOBS, "j", completions=4, parallelism=4, **mode)
    names = list(cluster.pods)
    left, put, drop = writes, cluster.api.store.put, cluster.api.store.drop

    def written(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash
        return put(*given, **named)

    for name, phase in zip(names, ("Succeeded", "Failed", "Succeeded"), strict=False):
        put(POD_NAMES, {**cluster.pods[name], "status": {"phase": phase}})
    monkeypatch.setattr(cluster.api.store, "put", written)
    cluster.settle()
    monkeypatch.undo()
    for name in names[:3]:  # a client that has seen these phases deletes the pods that may go
        if "finalizers" not in cluster.pods[name]["metadata"]:
            drop(POD_NAMES, ("default", name))
    jobs.sync(cluster.room._objects, cluster.get(f"{JOBS}/j"))
    cluster.wait(FIRST)
    status = cluster.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["failed"], status["uncountedTerminatedPods"]) == (2, 1, {})
    assert status.get("active") == 2, "the fourth, and one for the failed"
    if indexed:
        assert len(completed(cluster.get(f"{JOBS}/j"))) == 2


def test_a_job_fails_at_its_deadline() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", activeDeadlineSeconds=60)
    cluster.step()
    cluster.browser.now += 59
    cluster.settle()
    assert len(cluster.pods) == 1
    cluster.browser.now += 2
    cluster.settle()
    cluster.run()
    assert cluster.pods == {}
    assert cluster.get(f"{JOBS}/j")["status"]["conditions"][-1]["reason"] == "DeadlineExceeded"


def test_time_in_which_a_job_is_suspended_does_not_count_for_its_deadline() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", activeDeadlineSeconds=60)
    cluster.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
    cluster.browser.now += 100
    cluster.settle()
    cluster.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    status = cluster.get(f"{JOBS}/j")["status"]
    assert (status["active"], status.get("failed"), status.get("conditions")) == (1, None, None)


def test_a_job_that_is_over_is_deleted_after_its_time_to_live() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", ttlSecondsAfterFinished=30)
    [name] = cluster.pods
    cluster.end(name, "Succeeded")
    cluster.browser.now += 29
    cluster.settle()
    assert cluster.browser.get(f"{JOBS}/j").code == 200
    cluster.browser.now += 2
    cluster.settle()
    assert cluster.browser.get(f"{JOBS}/j").code == 404
    cluster.run()
    assert cluster.pods == {}


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_a_job_that_is_deleted_holds_none_of_its_pods(policy: str) -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", parallelism=2)
    cluster.step()
    answer = cluster.browser.delete(f"{JOBS}/j", {"propagationPolicy": policy})
    assert answer.code == 200
    cluster.settle()
    if policy == "Orphan":
        for name in cluster.pods:
            cluster.browser.delete(f"/api/v1/namespaces/default/pods/{name}")
        cluster.settle()
    assert not any("finalizers" in pod["metadata"] for pod in cluster.pods.values())
    cluster.run()
    assert cluster.pods == {}
    assert cluster.browser.get(f"{JOBS}/j").code == 404


def test_containers_that_start_again_and_again_fail_a_job() -> None:
    cluster = Cluster()
    template = {
        "metadata": {"labels": {"app": "j"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "one"}]},
    }
    body = {"metadata": {"name": "j"}, "spec": {"backoffLimit": 2, "template": template}}
    assert cluster.browser("POST", JOBS, body).code == 201
    cluster.settle()
    cluster.step(containerStatuses=[{"name": "c", "restartCount": 1}])
    assert "conditions" not in cluster.get(f"{JOBS}/j")["status"]
    [name] = cluster.pods
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 2}]}
    cluster.api.store.put(POD_NAMES, {**cluster.pods[name], "status": status})
    cluster.settle()
    assert cluster.get(f"{JOBS}/j")["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_jobs_of_another_controller_are_left_alone() -> None:
    cluster = Cluster()
    cluster.make(JOBS, "j", managedBy="kueue.x-k8s.io/multikueue")
    assert cluster.pods == {}
    assert cluster.get(f"{JOBS}/j")["status"] == {}


def test_fields_without_effect_are_told() -> None:
    cluster = Cluster()
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]
    cluster.make(JOBS, "j", podFailurePolicy={"rules": rules})
    [event] = cluster.get("/api/v1/namespaces/default/events")["items"]
    assert (event["reason"], event["involvedObject"]["name"]) == ("FieldsIgnored", "j")
    assert event["message"] == "the embedded cluster does not act on spec.podFailurePolicy"


@pytest.mark.parametrize(
    ("indices", "text"), [([], ""), ([3], "3"), ([1, 2], "1,2"), ([0, 2, 3, 4, 9], "0,2-4,9"), ([5, 4, 3], "3-5")]
)
def test_indices_are_named_by_ranges(indices: list[int], text: str) -> None:
    assert ranges(indices) == text
    job = {"spec": {"completions": 10}, "status": {"completedIndexes": text}}
    assert completed(job) == set(indices)


@pytest.mark.parametrize("text", ["0-99999999999999", "x", "3-", "-", "0-999999999"])
def test_a_written_range_costs_no_more_than_the_completions(text: str) -> None:
    assert len(completed({"spec": {"completions": 3}, "status": {"completedIndexes": text}})) <= 3
