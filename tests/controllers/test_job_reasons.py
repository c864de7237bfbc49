"""What keeps a job back, and what ended it, as its status and events say."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.kinds import JOBS
from tests.controllers.cluster import Cluster, started, task


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.job()["status"]
    return found


@pytest.mark.parametrize(("least", "told"), [(2, True), (1, False)])
def test_a_gang_that_waits_for_itself_is_told_so_until_it_runs(least: int, told: bool) -> None:
    tasks = task("a", 1), task("b", 1, minAvailable=1, dependsOn={"name": ["a"]})
    cluster = started(*tasks, minAvailable=least, running=False)
    text = (
        "minAvailable is 2, but only 1 of its pods wait for no other task (dependsOn): lower it, or order the parts of "
        "the job in a JobFlow"
    )
    said = ("GangWaitsForItself", text) if told else ("", "")
    state = status(cluster)["state"]
    assert (state.get("reason", ""), state.get("message", "")) == said
    assert [*cluster.told("GangWaitsForItself")][:1] == [text] * told
    cluster.pod_phase("j-a-0", "Running")
    cluster.change(JOBS, "j", {"spec": {"minAvailable": 1}})
    cluster.settle()
    assert cluster.phase() == "Running"
    assert "reason" not in status(cluster)["state"]


@pytest.mark.parametrize(
    ("tasks", "spec", "ends", "text"),
    [
        pytest.param([task("a", 3)], {}, {"j-a-0": "Succeeded", "j-a-1": "Failed", "j-a-2": "Failed"},
                     "1 of 3 pods succeeded and 2 failed, while 3 must succeed by spec.minAvailable", id="the job"),
        pytest.param([task("a", 2)], {"minSuccess": 2}, {"j-a-0": "Succeeded", "j-a-1": "Failed"},
                     "1 of 2 pods succeeded and 1 failed, while 2 must succeed by spec.minSuccess", id="successes"),
        pytest.param([task("a", 2, minAvailable=1), task("b", 1, minAvailable=1)], {"minAvailable": 2},
                     {"j-a-0": "Succeeded", "j-a-1": "Succeeded", "j-b-0": "Failed"},
                     "2 of 3 pods succeeded and 1 failed, while 1 of task b must by its minAvailable", id="a task"),
    ],
)  # fmt: skip
def test_a_job_that_fails_says_why(tasks: list[Any], spec: dict[str, Any], ends: dict[str, str], text: str) -> None:
    cluster = started(*tasks, **spec)
    for name, ended in ends.items():
        cluster.pod_phase(name, ended)
    cluster.settle()
    cluster.settle()
    state = status(cluster)["state"]
    assert (state["phase"], state["reason"], state["message"]) == ("Failed", "TooFewPodsSucceeded", text)
    failed = [one for one in status(cluster)["conditions"] if one["status"] == "Failed"]
    assert [one["message"] for one in failed] == [text]


def test_a_job_that_has_used_up_its_retries_says_so() -> None:
    cluster = started(task("a", 2), maxRetry=1, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    cluster.pod_phase("j-a-0", "Failed", 1)
    cluster.settle()
    cluster.reap()
    cluster.settle()
    text = (
        "the job was restarted or resumed 1 time, as often as its maxRetry allows: raise spec.maxRetry, or see to what "
        "it was restarted for"
    )
    state = status(cluster)["state"]
    assert (state["phase"], state["reason"], state["message"]) == ("Failed", "OutOfRetries", text)
    assert text in cluster.told("OutOfRetries")


def test_a_job_without_replicas_says_so_until_it_has_some() -> None:
    cluster = started(task("a", 0), minAvailable=0, running=False)
    state = status(cluster)["state"]
    text = "no task has replicas: the job goes on once one has"
    assert (state["phase"], state["reason"], state["message"]) == ("Pending", "NoReplicas", text)
    cluster.change(JOBS, "j", {"spec": {"tasks": [{**cluster.job()["spec"]["tasks"][0], "replicas": 1}]}})
    cluster.settle()
    assert "reason" not in status(cluster)["state"]


@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param([task("a", 1, minAvailable=0), task("b", 1, dependsOn={"name": ["a"]})], id="ready without pods"),
        pytest.param([task("a", 0), task("b", 2, dependsOn={"name": ["a"]})], id="no replicas"),
        pytest.param([task("a", 1), task("b", 1, minAvailable=0), task("c", 1, dependsOn={
            "name": ["a", "b"], "iteration": "any"})], id="any of them"),
        pytest.param([task("a", 2, dependsOn={"name": ["elsewhere"]})], id="a task that is not there"),
    ],
)  # fmt: skip
def test_a_gang_whose_dependencies_are_met_without_a_pod_does_not_wait_for_itself(tasks: list[Any]) -> None:
    pods = sum(one["replicas"] for one in tasks)
    cluster = started(*tasks, minAvailable=pods, running=False)
    assert len(cluster.names()) == pods
    assert "reason" not in status(cluster)["state"]
