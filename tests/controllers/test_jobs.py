"""Jobs, from their first look to their end: pods, PodGroup, status, the state machine."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.batch import PHASES, Job
from stromboli.api.bus import JOB_ACTIONS
from stromboli.api.kinds import JOBS, POD_GROUPS, QUEUES
from stromboli.api.read import read
from stromboli.controllers.changes import Create, KillPod, Patch
from stromboli.controllers.jobs.counting import Counts
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.jobs.states import FINISHED, How, step_for
from stromboli.controllers.jobs.status import COUNTED_WITHIN
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import Cluster, job, queue, started, task

GROUP = "j-uid-2"


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.job()["status"]
    return found


# ---------------------------------------------------------------------- the beginning


def test_a_new_job_gets_a_pod_group_and_waits() -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    cluster.create(JOBS, job(task("a", 2), task("b", 3, minAvailable=1), metadata={"labels": {"x": "y"}}))
    cluster.settle()
    assert cluster.pods() == {}, "no pods before the scheduler has let the group in"
    (group,) = cluster.groups()
    assert group["metadata"]["name"] == GROUP
    assert group["metadata"]["labels"] == {"x": "y"}
    assert group["metadata"]["ownerReferences"][0] == {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "uid-2", "controller": True,
    }  # fmt: skip
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"a": 2, "b": 1}
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["minResources"]["requests.cpu"] == "3"
    assert group["status"] == {"phase": "Pending"}
    assert (cluster.phase(), status(cluster)["minAvailable"]) == ("Pending", 3)


@pytest.mark.parametrize("stated", [{}, {"minAvailable": 0}])
def test_a_job_that_states_no_min_available_runs_once_its_pods_do(stated: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    cluster.store(JOBS, job(task("a", 2), **stated))  # as no webhook has filled it
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert (cluster.phase(), len(cluster.pods())) == ("Pending", 2)
    cluster.pod_phase("j-a-0", "Running")
    cluster.settle()
    assert cluster.phase() == "Pending"
    cluster.pod_phase("j-a-1", "Running")
    cluster.settle()
    assert cluster.phase() == "Running"


def test_a_pod_that_stops_being_a_jobs_is_counted_there_no_more() -> None:
    cluster = started(task("a", 2))
    cluster.change("pods", "j-a-0", {"metadata": {"annotations": {"volcano.sh/task-spec": None}}})
    assert list(cluster.manager.world.pods.of_job(("ns", "j"))) == ["j-a-1"]


def test_pods_are_named_labelled_and_annotated_as_ever() -> None:
    cluster = started(
        task("a", 2, topologyPolicy="restricted", pod={"restartPolicy": "OnFailure"}),
        metadata={"annotations": {"volcano.sh/preemptable": "true", "other": "text"}},
        priorityClassName="high", running=False,
    )  # fmt: skip
    assert cluster.names() == ["j-a-0", "j-a-1"]
    pod = cluster.pods()["j-a-1"]
    assert pod["metadata"]["labels"] == {
        "own": "label",
        "volcano.sh/job-name": "j",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "a",
    }
    assert pod["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": GROUP,
        "volcano.sh/job-name": "j",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/job-version": "0",
        "volcano.sh/numa-topology-policy": "restricted",
        "volcano.sh/preemptable": "true",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "a",
        "volcano.sh/template-uid": "j-a",
    }
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["spec"]["priorityClassName"] == "high"
    assert pod["spec"]["restartPolicy"] == "OnFailure"
    cluster.wait(cluster.now + COUNTED_WITHIN)
    assert status(cluster)["pending"] == 2


def test_partitions_are_numbered_and_become_sub_groups() -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": {"mode": "soft"}}
    cluster = started(task("a", 4, partitionPolicy=parts), running=False)
    assert [cluster.pods()[f"j-a-{i}"]["metadata"]["labels"]["volcano.sh/partition-id"] for i in range(4)] == [
        "0", "0", "1", "1",
    ]  # fmt: skip
    assert cluster.groups()[0]["spec"]["subGroupPolicy"] == [{
        "name": "a", "subGroupSize": 2, "minSubGroups": 1, "networkTopology": {"mode": "soft"},
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "a"}},
        "matchLabelKeys": ["volcano.sh/partition-id"],
    }]  # fmt: skip


def test_the_first_pods_count_by_priority_in_what_is_asked_for() -> None:
    """minAvailable below the sum of the tasks': the most important tasks' pods are taken."""
    cluster = Cluster()
    cluster.manager.world.priorities |= {"high": 100}
    cluster.store(QUEUES, queue("default"))
    cheap = {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    dear = {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "10"}}}],
            "priorityClassName": "high"}  # fmt: skip
    cluster.create(JOBS, job(task("a", 2, pod=cheap), task("b", 1, pod=dear), minAvailable=2))
    cluster.settle()
    assert cluster.groups()[0]["spec"]["minResources"]["cpu"] == "11"


def test_without_its_queue_a_job_waits_and_says_so() -> None:
    cluster = Cluster()
    cluster.create(JOBS, job())
    cluster.settle()
    assert cluster.errors == ["queue default of the job is not there"]
    assert cluster.groups() == []


def test_the_scheduler_s_reason_becomes_an_event() -> None:
    cluster = started(running=False)
    condition = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable: no"}
    cluster.change(POD_GROUPS, GROUP, {"status": {"conditions": [condition]}})
    cluster.pod_phase("j-t-0", "Pending", restarts=1)
    cluster.settle()
    assert set(cluster.told("PodGroupPending")) == {
        "PodGroup ns:j unschedulable, reason: 2/2 tasks in gang unschedulable: no"
    }


def test_the_group_follows_the_job() -> None:
    cluster = started(task("a", 3, minAvailable=1))
    cluster.change(JOBS, "j", {"spec": {"minAvailable": 2, "priorityClassName": "low"}})
    cluster.settle()
    assert (cluster.groups()[0]["spec"]["minMember"], cluster.groups()[0]["spec"]["priorityClassName"]) == (2, "low")
    assert cluster.groups()[0]["spec"]["minResources"]["cpu"] == "2"


@pytest.mark.parametrize(
    ("owners", "names"),
    [(["uid-2"], ["j"]), (["other", "uid-2"], ["j"]), (["other"], ["j", "j-uid-2"]), ([], ["j", "j-uid-2"])],
)
def test_a_group_of_an_earlier_name_serves_the_job_that_owns_it(owners: list[str], names: list[str]) -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    references = [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": uid} for uid in owners]
    meta = {"name": "j", "namespace": "ns", "uid": "g", "ownerReferences": references}
    value = {"metadata": {"name": "j", "namespace": "ns", "uid": "uid-2"}, "spec": {"tasks": [task("a", 2)]}}
    cluster.store(POD_GROUPS, {"metadata": meta, "spec": {"minMember": 1, "queue": "default"}})
    cluster.create(JOBS, value)
    cluster.settle()
    assert sorted(group["metadata"]["name"] for group in cluster.groups()) == names


def test_the_groups_annotations_are_the_jobs_without_what_kubectl_keeps_of_it() -> None:
    notes = {"own": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    cluster = started(task("a", 1), metadata={"annotations": notes})
    assert cluster.groups()[0]["metadata"]["annotations"] == {"own": "x"}


@pytest.mark.parametrize("action", ["SyncJob", "ResumeJob"])
def test_an_action_that_changes_nothing_is_not_announced(action: str) -> None:
    cluster = started(task("a", 1))
    cluster.command(action, "Job", "j")
    cluster.settle()
    assert (list(cluster.told("ExecuteAction")), cluster.phase()) == ([], "Running")


def test_pods_count_as_pending_in_the_look_that_makes_them() -> None:
    cluster = started(task("a", 2, minAvailable=1), running=False)
    cluster.remove("pods", "j-a-0")
    cluster.all_pods("Running")
    cluster.manager.ready.clear()
    changes = list(cluster.run(Work(About.job, ("ns", "j"))).changes())
    made: list[Any] = [change.body["metadata"] for change in changes if isinstance(change, Create)]
    assert [meta["name"] for meta in made] == ["j-a-0"]
    [patch] = [change for change in changes if isinstance(change, Patch)]
    counts = {"a": {"phase": {"Pending": 1, "Running": 1}}}
    status: Any = patch.body["status"]
    assert (status["running"], status["pending"], status["taskStatusCount"]) == (1, 1, counts)


def test_nothing_is_written_when_nothing_has_changed() -> None:
    cluster = started()
    before = len(cluster.writes)
    cluster.manager.ask_job(("ns", "j"), Request())
    cluster.settle()
    assert len(cluster.writes) == before


def test_a_job_costs_one_status_write_for_many_pods() -> None:
    """100 pods that all start between two looks cost one status, as events of one job become one look."""
    cluster = started(task("a", 100), running=False)
    before = len(cluster.writes)
    cluster.all_pods("Running")
    cluster.settle()
    assert len([write for write in cluster.writes[before:] if isinstance(write, Patch)]) == 1
    assert status(cluster)["running"] == 100


# ---------------------------------------------------------------------- growing, shrinking, waiting


def test_scaling_up_and_down() -> None:
    cluster = started(task("a", 2, minAvailable=1))
    cluster.change(JOBS, "j", {"spec": {"tasks": [{**cluster.job()["spec"]["tasks"][0], "replicas": 4}]}})
    cluster.settle()
    assert cluster.names() == ["j-a-0", "j-a-1", "j-a-2", "j-a-3"]
    cluster.change(JOBS, "j", {"spec": {"tasks": [{**cluster.job()["spec"]["tasks"][0], "replicas": 1}]}})
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert cluster.names() == ["j-a-0"]
    assert cluster.phase() == "Running", "what the controller deletes is no eviction"


@pytest.mark.parametrize(
    ("needs", "ready", "starts"),
    [
        ({"name": ["a", "b"]}, ["a"], False),
        ({"name": ["a", "b"]}, ["a", "b"], True),
        ({"name": ["a", "b"], "iteration": "any"}, ["b"], True),
        ({"name": ["a", "b"], "iteration": "any"}, [], False),
        ({"name": ["a"], "iteration": "any"}, ["b"], False),
        ({"name": []}, [], True),
    ],
)
def test_tasks_wait_for_others(needs: dict[str, Any], ready: list[str], starts: bool) -> None:
    cluster = started(task("a", 1), task("b", 1), task("c", 1, dependsOn=needs), running=False)
    for name in ready:
        cluster.pod_phase(f"j-{name}-0", "Running")
    cluster.settle()
    assert ("j-c-0" in cluster.names()) == starts


# ---------------------------------------------------------------------- running and ending


@pytest.mark.parametrize(
    ("tasks", "spec", "ends", "phase"),
    [
        ([task("a", 2)], {}, {"j-a-0": "Succeeded", "j-a-1": "Succeeded"}, "Completed"),
        ([task("a", 2)], {}, {"j-a-0": "Succeeded"}, "Running"),
        ([task("a", 2)], {}, {"j-a-0": "Succeeded", "j-a-1": "Failed"}, "Failed"),
        ([task("a", 2, minAvailable=1)], {"minAvailable": 1}, {"j-a-0": "Succeeded", "j-a-1": "Failed"}, "Completed"),
        ([task("a", 1), task("b", 1)], {"minAvailable": 1}, {"j-a-0": "Succeeded", "j-b-0": "Failed"}, "Completed"),
        ([task("a", 2)], {"minSuccess": 1}, {"j-a-0": "Succeeded"}, "Completed"),
        ([task("a", 2)], {"minSuccess": 2}, {"j-a-0": "Succeeded", "j-a-1": "Failed"}, "Failed"),
        ([task("a", 3, minAvailable=2)], {"minAvailable": 2},
         {"j-a-0": "Succeeded", "j-a-1": "Succeeded", "j-a-2": "Failed"}, "Completed"),
        ([task("a", 2)], {}, {"j-a-0": "Pending", "j-a-1": "Pending"}, "Pending"),
        ([task("a", 3, minAvailable=2)], {"minAvailable": 2}, {"j-a-0": "Pending"}, "Running"),
        ([task("a", 3, minAvailable=2)], {"minAvailable": 2}, {"j-a-0": "Pending", "j-a-1": "Pending"}, "Pending"),
        ([task("a", 2, minAvailable=1), task("b", 1, minAvailable=1)], {"minAvailable": 2},
         {"j-a-0": "Succeeded", "j-a-1": "Succeeded", "j-b-0": "Failed"}, "Failed"),
        ([task("a", 2, minAvailable=1), task("b", 1, minAvailable=1)], {"minAvailable": 1},
         {"j-a-0": "Succeeded", "j-a-1": "Succeeded", "j-b-0": "Failed"}, "Completed"),
        ([task("a", 2, minAvailable=1), task("b", 1, minAvailable=1)], {"minAvailable": 2},
         {"j-a-0": "Succeeded", "j-a-1": "Failed", "j-b-0": "Succeeded"}, "Completed"),
    ],
)  # fmt: skip
def test_how_jobs_end(tasks: list[Any], spec: dict[str, Any], ends: dict[str, str], phase: str) -> None:
    cluster = started(*tasks, **spec)
    for name, ended in ends.items():
        cluster.pod_phase(name, ended)
    cluster.settle()
    assert cluster.phase() == phase


def test_the_end_of_a_job_is_counted_once_however_often_it_is_seen() -> None:
    cluster = started(task("a", 1))
    assert list(cluster.manager.jobs.endings.values()) == [], "it has not ended"
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.settle()
    once = [{("default", "Completed"): 1}]
    assert list(cluster.manager.jobs.endings.values()) == once
    for _ in range(2):
        cluster.manager.jobs.seen(read(Job, cluster.job()))
    assert list(cluster.manager.jobs.endings.values()) == once


def test_a_job_that_had_ended_before_the_controllers_began_is_not_counted() -> None:
    cluster = started(task("a", 1))
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.settle()
    later = Cluster()
    later.manager.jobs.seen(read(Job, cluster.job()))
    assert later.manager.jobs.endings == {}


def test_a_completed_job_keeps_its_finished_pods_and_counts_them() -> None:
    cluster = started(task("a", 3), minSuccess=1)
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.settle()
    assert (cluster.phase(), cluster.names()) == ("Completed", ["j-a-0"])
    cluster.reap()
    cluster.settle()
    assert status(cluster)["succeeded"] == 1
    assert status(cluster)["taskStatusCount"] == {"a": {"phase": {"Succeeded": 1}}}
    assert status(cluster)["runningDuration"] == "0s"
    assert cluster.groups() == []


def test_phases_are_remembered_each_once_the_newest_last() -> None:
    cluster = started(task("a", 1), policies=[{"event": "PodFailed", "action": "RestartJob"}])
    cluster.pod_phase("j-a-0", "Failed", 1)
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert [row["status"] for row in status(cluster)["conditions"]] == ["Running", "Restarting", "Pending"]


# ---------------------------------------------------------------------- the table


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("action", [*JOB_ACTIONS, "SyncJob"])
def test_every_phase_has_an_answer_to_every_action(phase: str, action: str) -> None:
    """Terminal phases stay; what is being taken down is never synced; every kill leads to a phase of its own."""
    step = step_for(phase, action)
    found = read(Job, job(minAvailable=2) | {"status": {"state": {"phase": phase}, "minAvailable": 2}})
    after = step.settle(found, Counts(running=2))
    assert after in PHASES
    if phase in FINISHED:
        assert (step.how, after, step.retry) == (How.KILL_ALIVE, phase, False)
    if phase not in ("Pending", "Running", "Restarting"):
        assert step.how is How.KILL_ALIVE
    if step.retry:
        assert after == "Restarting"


@pytest.mark.parametrize(
    ("action", "between", "end"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_a_job_is_taken_down_by_command(action: str, between: str, end: str) -> None:
    cluster = started(task("a", 2))
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.settle()
    cluster.command(action, "Job", "j")
    cluster.settle()
    assert cluster.phase() == between
    assert list(cluster.told("ExecuteAction")) == [f"Start to execute action {action} "]
    assert status(cluster)["terminating"] == 1
    assert cluster.names() == ["j-a-0"], "what has ended is kept"
    assert cluster.groups() == []
    assert status(cluster)["version"] == 1
    cluster.reap()
    cluster.settle()
    assert cluster.phase() == end
    assert list(cluster.told("CommandIssued")) == [
        f"Start to execute command {action}, and clean it up to make sure executed not more than once."
    ]
    assert not cluster.objects["commands.bus.volcano.sh"]


def test_an_aborted_job_is_resumed() -> None:
    cluster = started(task("a", 2))
    cluster.command("AbortJob", "Job", "j")
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert cluster.phase() == "Aborted"
    cluster.command("ResumeJob", "Job", "j")
    cluster.settle()
    assert (cluster.phase(), status(cluster)["retryCount"], status(cluster)["version"]) == ("Pending", 1, 2)
    assert len(cluster.groups()) == 1
    cluster.admit()
    cluster.settle()
    assert cluster.pods()["j-a-0"]["metadata"]["annotations"]["volcano.sh/job-version"] == "2"


def test_a_restarted_job_waits_in_its_queue_again_and_gives_up_after_its_retries() -> None:
    cluster = started(task("a", 2), maxRetry=2, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    cluster.pod_phase("j-a-0", "Failed", 1)
    cluster.settle()
    assert (cluster.phase(), status(cluster)["version"], cluster.names()) == ("Restarting", 1, [])
    assert status(cluster)["terminating"] == 2
    cluster.reap()
    cluster.settle()
    assert (cluster.phase(), cluster.names()) == ("Pending", []), "the new PodGroup has not been let in"
    cluster.admit()
    cluster.settle()
    cluster.all_pods("Running")
    cluster.settle()
    assert cluster.phase() == "Running"
    cluster.pod_phase("j-a-1", "Failed", 1)
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert (cluster.phase(), status(cluster)["retryCount"]) == ("Failed", 2)
    assert cluster.names() == ["j-a-1"], "the last try keeps its logs"


@pytest.mark.parametrize(
    ("action", "gone"),
    [
        ("RestartPod", ["j-a-0"]),
        ("RestartTask", ["j-a-0", "j-a-1", "j-a-2", "j-a-3"]),
        ("RestartPartition", ["j-a-0", "j-a-1"]),
    ],
)
def test_parts_are_restarted_without_waiting_again(action: str, gone: list[str]) -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2}
    cluster = started(task("a", 4, partitionPolicy=parts), task("b", 1), policies=[{"exitCode": 7, "action": action}])
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}
    cluster.pod_phase("j-a-0", "Failed", 7)
    cluster.settle()
    assert sorted(set(before) - set(cluster.names())) == gone
    cluster.reap()
    cluster.settle()
    after = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}
    assert sorted(name for name in before if after[name] != before[name]) == gone
    assert (status(cluster).get("version", 0), status(cluster)["retryCount"]) == (0, 1)
    cluster.all_pods("Running")
    cluster.settle()
    assert cluster.phase() == "Running"


def test_events_of_an_earlier_version_are_stale() -> None:
    """Both pods fail at once: the job is restarted once."""
    cluster = started(task("a", 2), policies=[{"event": "PodFailed", "action": "RestartJob"}])
    cluster.all_pods("Failed", 1)
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert (status(cluster)["retryCount"], status(cluster)["version"]) == (1, 1)


def test_a_deleted_pod_is_made_again_unless_a_policy_says_otherwise() -> None:
    cluster = started(task("a", 2))
    cluster.remove("pods", "j-a-1")
    cluster.settle()
    assert (cluster.names(), status(cluster).get("retryCount", 0)) == (["j-a-0", "j-a-1"], 0)
    cluster = started(task("a", 2), policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    cluster.remove("pods", "j-a-1")
    cluster.settle()
    assert cluster.phase() == "Restarting"


def test_what_fails_half_way_is_done_again() -> None:
    cluster = started(task("a", 3), running=False)
    assert len(cluster.names()) == 3
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    cluster.create(JOBS, job(task("a", 3)))
    cluster.settle()
    cluster.breaking[Create] = 2
    cluster.admit()
    cluster.settle()
    assert len(cluster.names()) == 3
    cluster.breaking |= {KillPod: 1, Patch: 1}
    cluster.command("RestartJob", "Job", "j")
    cluster.settle()
    assert (cluster.phase(), cluster.names(), status(cluster)["retryCount"]) == ("Restarting", [], 1)


def test_a_job_with_its_own_claims() -> None:
    own = [{"mountPath": "/data", "volumeClaim": {"storageClassName": "fast"}}]
    cluster = started(task("a", 1, pod={"initContainers": [{"name": "i", "image": "x"}]}), volumes=own)
    ((claim_key, claim),) = cluster.objects["persistentvolumeclaims"].items()
    assert claim_key[1].startswith("j-pvc-")
    assert len(claim_key[1]) == len("j-pvc-") + 12
    assert claim["spec"] == {"storageClassName": "fast"}
    assert cluster.job()["spec"]["volumes"][0]["volumeClaimName"] == claim_key[1]
    spec = cluster.pods()["j-a-0"]["spec"]
    (volume,) = spec["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim_key[1]}
    assert spec["containers"][0]["volumeMounts"] == [{"name": volume["name"], "mountPath": "/data"}]
    assert "volumeMounts" not in spec["initContainers"][0]
    assert status(cluster)["controlledResources"] == {f"volume-pvc-{claim_key[1]}": claim_key[1]}


def test_a_job_waits_for_a_claim_that_it_names() -> None:
    cluster = started(task("a", 1), volumes=[{"mountPath": "/data", "volumeClaimName": "mine"}])
    text = "pvc mine is not found, the job will be in the Pending state until the PVC is created"
    assert text in cluster.errors
    assert set(cluster.told("PVCError")) == {text}
    assert (cluster.phase(), cluster.pods()) == ("Pending", {})


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1GB"}}}]},
            "containers[0].resources.requests",
        ),
        ({"containers": "none"}, "containers"),
        ({"priority": 1 << 40}, "priority"),
    ],
)
def test_a_template_that_cannot_be_used_is_told_with_its_field(pod: dict[str, Any], path: str) -> None:
    cluster = started(task("a", 1, pod=pod))
    (told,) = set(cluster.told("PodGroupError"))
    assert told in cluster.errors, "it is looked at again: a priority class may come"
    assert told.startswith(f"Job ns/j, spec.tasks[0].template.spec.{path}")
    state = status(cluster)["state"]
    assert (state["reason"], state["message"]) == ("PodGroupError", told)
    assert (cluster.phase(), cluster.names()) == ("Pending", [])


def test_a_queue_that_is_not_there_is_told() -> None:
    cluster = Cluster()
    cluster.create(JOBS, job(task("a", 1), queue="nowhere"))
    cluster.settle()
    assert status(cluster)["state"]["message"] == "queue nowhere of the job is not there"
    assert set(cluster.told("QueueError")) == {"queue nowhere of the job is not there"}


@pytest.mark.parametrize("fields", [{}, {"minAvailable": 0}])
def test_a_job_stored_without_minimums_is_completed_as_admission_would(fields: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    nameless = {key: value for key, value in task("a", 2).items() if key != "name"}
    cluster.store(JOBS, {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": [nameless], **fields}})
    cluster.settle()
    assert (cluster.phase(), status(cluster)["minAvailable"]) == ("Pending", 2)
    assert cluster.groups()[0]["spec"]["minMember"] == 2
    cluster.admit()
    cluster.settle()
    assert cluster.names() == ["j-default0-0", "j-default0-1"]
    cluster.all_pods("Running")
    cluster.settle()
    assert cluster.phase() == "Running"


@pytest.mark.parametrize("of_task", [{"replicas": 0}, {"replicas": 2, "minAvailable": 0}])
def test_a_job_without_a_minimum_is_pending_until_a_pod_runs(of_task: dict[str, Any]) -> None:
    cluster = started(task("a", **of_task), running=False)
    assert cluster.phase() == "Pending"
    cluster.all_pods("Running")
    cluster.settle()
    assert cluster.phase() == ("Running" if of_task["replicas"] else "Pending")


def test_jobs_of_queues_that_extend_to_other_clusters_are_marked() -> None:
    cluster = Cluster()
    far = queue("default")
    far["spec"]["extendClusters"] = [{"name": "far"}]
    cluster.store(QUEUES, far)
    cluster.create(JOBS, job(task("a", 1)))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.job()["metadata"]["annotations"] == {"volcano.sh/job-forwarding": "true"}
    assert cluster.pods()["j-a-0"]["metadata"]["labels"]["volcano.sh/job-forwarding"] == "true"


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    cluster = started(task("a", 2))
    cluster.change(JOBS, "j", {"metadata": {"deletionTimestamp": "2023-11-14T22:13:21Z"}})
    cluster.remove("pods", "j-a-1")
    cluster.settle()
    assert cluster.names() == ["j-a-0"]
    cluster.remove(JOBS, "j")
    cluster.settle()
    assert (cluster.pods(), cluster.groups()) == ({}, [])


def test_a_job_of_the_same_name_does_not_touch_the_pods_of_the_one_before() -> None:
    cluster = started(task("a", 1))
    orphan = {**cluster.pods()["j-a-0"]}
    orphan["metadata"] = {**orphan["metadata"], "name": "j-a-9"}
    cluster.remove(JOBS, "j")
    cluster.store("pods", orphan)
    cluster.create(JOBS, job(task("a", 1)))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.names() == ["j-a-0", "j-a-9"]
