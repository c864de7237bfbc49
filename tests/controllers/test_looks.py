"""What a look at a job tells and does: tasks that wait for others, claims, reasons, and pods that are too many."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.kinds import JOBS, POD_GROUPS
from stromboli.cluster.kinds import Pod
from stromboli.controllers.changes import Create, Drop, Keep, KillPod, Read
from stromboli.controllers.garbage import collect
from stromboli.controllers.jobs.kept import repair
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.pod_groups import look as look_at_pod
from stromboli.controllers.pods import pod_view
from stromboli.controllers.readings import ANSWERED, Readings
from stromboli.controllers.work import About, Work
from stromboli.controllers.world import World
from stromboli.errors import ManifestError
from stromboli.job_plugins.plugin import config_map
from stromboli.model.objects.base import NamespacedMetadata
from tests.controllers.cluster import Cluster, Manifest, job, queue, started, task


@pytest.mark.parametrize(
    ("task_a", "needs", "pods", "starts"),
    [
        ({"minAvailable": 1}, {"name": ["a"]}, [("Pending", True)], False),
        ({"minAvailable": 1}, {"name": ["a"]}, [("Running", False)], False),
        ({"minAvailable": 1}, {"name": ["a"]}, [("Running", True)], True),
        ({"minAvailable": 1}, {"name": ["a"]}, [("Succeeded", False)], True),
        ({"minAvailable": 1}, {"name": ["a"]}, [("Failed", True)], False),
        ({"minAvailable": 2}, {"name": ["a"]}, [("Running", True)], False),
        ({"minAvailable": 2}, {"name": ["a"]}, [("Running", True), ("Succeeded", True)], True),
        ({"minAvailable": 1}, {"name": ["none"]}, [], True),
        ({"minAvailable": 1}, {"name": ["none", "a"]}, [], False),
        ({"minAvailable": 1}, {"name": ["none", "a"], "iteration": "any"}, [], True),
    ],
)
def test_a_task_starts_once_those_it_waits_for_are_ready(
    task_a: Any, needs: Any, pods: list[tuple[str, bool]], starts: bool
) -> None:
    cluster = Cluster()
    cluster.store("queues.scheduling.volcano.sh", queue("default"))
    value = job(task("a", 2, **task_a), task("c", 1, dependsOn=needs), minAvailable=1)
    cluster.store(JOBS, value)  # as a server without admission has stored it
    cluster.settle()
    cluster.admit()
    cluster.settle()
    for number, (phase, ready) in enumerate(pods):
        state = {"name": "main", "ready": ready, "restartCount": 0, "state": {}}
        cluster.change("pods", f"j-a-{number}", {"status": {"phase": phase, "containerStatuses": [state]}})
    cluster.settle()
    assert ("j-c-0" in cluster.names()) == starts


NOTHING = {"type": "Scheduled", "status": "True", "message": "it is", "lastTransitionTime": "2026-01-09T00:00:00Z"}


def condition(kind: str, day: int, status: str = "True") -> Manifest:
    return {
        "type": kind,
        "status": status,
        "message": f"{kind} {day}",
        "lastTransitionTime": f"2026-01-0{day}T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ([], ""),
        ([condition("Unschedulable", 1)], "Unschedulable 1"),
        ([condition("Unschedulable", 1), condition("Unschedulable", 2)], "Unschedulable 2"),
        ([condition("Unschedulable", 2), condition("Unschedulable", 1)], "Unschedulable 2"),
        ([condition("Unschedulable", 2), condition("NotAdmitted", 1)], "NotAdmitted 1"),
        ([condition("NotAdmitted", 1), condition("Unschedulable", 2)], "NotAdmitted 1"),
        ([condition("Unschedulable", 1), condition("NotAdmitted", 2, "False")], "Unschedulable 1"),
        ([condition("Unschedulable", 1), NOTHING], ""),
    ],
)
def test_the_newest_reason_that_holds_is_told_and_a_refusal_before_others(
    conditions: list[Manifest], told: str
) -> None:
    cluster = started(running=False)
    [group] = cluster.groups()
    cluster.change(POD_GROUPS, group["metadata"]["name"], {"status": {"conditions": conditions}})
    cluster.manager.ready[Work(About.job, ("ns", "j"))] = None
    cluster.events.clear()
    cluster.settle()
    found = {text.partition("reason: ")[2] for text in cluster.told("PodGroupPending")}
    assert found == ({told} if told else set())


def test_pods_beyond_the_replicas_count_as_ending_from_the_look_that_ends_them() -> None:
    cluster = started(task("a", 3, minAvailable=1))
    cluster.change(JOBS, "j", {"spec": {"tasks": [{**cluster.job()["spec"]["tasks"][0], "replicas": 1}]}})
    cluster.writes.clear()
    cluster.wait(cluster.now + 5)
    assert sorted(one.name for one in cluster.writes if isinstance(one, KillPod)) == ["j-a-1", "j-a-2"]
    assert (cluster.job()["status"]["terminating"], cluster.job()["status"]["running"]) == (2, 1)


CLAIMS = "persistentvolumeclaims"


@pytest.mark.parametrize(
    ("volume", "there", "made", "starts"),
    [
        ({"volumeClaimName": "mine"}, [], [], False),
        ({"volumeClaimName": "mine"}, ["mine"], [], True),
        ({"volumeClaimName": "mine", "volumeClaim": {}}, [], ["mine"], True),
        ({"volumeClaimName": "mine", "volumeClaim": {}}, ["mine"], [], True),
    ],
    ids=["is missing", "is there", "is to be made", "was made before"],
)
def test_a_claim_is_made_only_by_a_job_that_brings_it(
    volume: Manifest, there: list[str], made: list[str], starts: bool
) -> None:
    cluster = Cluster()
    cluster.store("queues.scheduling.volcano.sh", queue("default"))
    for name in there:
        cluster.store(CLAIMS, {"metadata": {"name": name, "namespace": "ns"}})
    cluster.create(JOBS, job(task("a", 1), volumes=[{"mountPath": "/data", **volume}]))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    bodies: list[Any] = [one.body for one in cluster.writes if isinstance(one, Create) and one.resource == CLAIMS]
    assert [body["metadata"]["name"] for body in bodies] == made
    assert bool(cluster.names()) == starts


def test_what_is_known_to_be_a_jobs_is_dropped_with_its_pods_though_the_status_does_not_say_so() -> None:
    cluster = started(task("a", 1), plugins={"svc": []})
    cluster.writes.clear()
    cluster.change(JOBS, "j", {"status": {"controlledResources": None}})
    cluster.manager.ask_job(("ns", "j"), Request(action="AbortJob"))
    cluster.settle()
    assert {one.name for one in cluster.writes if isinstance(one, Drop)} == {"j", "j-svc"}


def test_a_job_that_finished_at_no_known_time_or_is_going_is_not_collected() -> None:
    cluster = started(task("a", 1), ttlSecondsAfterFinished=0)
    cluster.change(JOBS, "j", {"metadata": {"deletionTimestamp": "2023-11-14T22:13:21Z"}})
    cluster.change(JOBS, "j", {"status": {"state": {"phase": "Completed"}}})
    found = cluster.manager.world.jobs.get("ns", "j")
    assert found is not None
    outcome = collect(found, cluster.now)
    assert (outcome.changes(), outcome.error, outcome.after) == ([], "", None)


def test_a_pod_that_names_its_group_is_put_into_no_other() -> None:
    found = Pod(NamespacedMetadata(name="p", annotations={"scheduling.k8s.io/group-name": "mine"}))
    assert look_at_pod(found, World()).changes() == []
    free = Pod(NamespacedMetadata(name="p", uid="u"))
    assert look_at_pod(free, World()).changes() != []


def test_an_owner_is_asked_for_once_until_its_answer_is_late() -> None:
    readings, owner = Readings(), Read("apps/v1", "ReplicaSet", "replicasets", "ns", "o")
    told = [readings.claim(owner, now) for now in (10.0, 10.0, 10.0 + ANSWERED - 0.5, 10.0 + ANSWERED, 5.0)]
    assert told == [True, False, False, True, True]
    readings.note(owner, None, "not found", 5.0)
    assert readings.claim(owner, 5.0) is True


def test_an_object_without_an_owner_that_says_what_is_wanted_stands_in_unchanged() -> None:
    wanted = config_map("j-svc", {"a": "b"})
    change = Keep("svc", "ns", wanted, {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "uid": "u"}, False)
    found: dict[str, Any] = {**wanted.manifest("ns", {}, {}), "metadata": {"name": "j-svc", "namespace": "ns"}}
    assert repair(change, found, {}, None) == {}


def test_a_pod_that_is_no_json_is_refused() -> None:
    with pytest.raises(ManifestError, match="Pod"):
        pod_view(b'{"metadata": 1}')
