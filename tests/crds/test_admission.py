"""What admission fills in and refuses, with its texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stromboli.api.kinds import CRON_JOBS, JOBS, POD_GROUPS, QUEUES
from stromboli.crds import admission
from stromboli.crds.admission import Objects, Settings
from tests.support.admission_cases import CASES, NEW_CRON_JOBS, POLICIES, WORLD, Case, job, queue, task

# ---------------------------------------------------------------------- filling in


def test_a_job_is_completed() -> None:
    found: Any = admission.default(
        JOBS,
        {"metadata": {"name": "j"}, "spec": {"plugins": {"mpi": ["--master=m"]}, "tasks": [
            {"replicas": 3, "template": {"spec": {"hostNetwork": True}}},
            {"name": "m", "replicas": 4, "minAvailable": 1, "maxRetry": 7},
            {"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}},
            {"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2}},
        ]}},
        WORLD,
    )  # fmt: skip
    spec = found["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        14,
    )
    assert [(row["name"], row["minAvailable"], row["maxRetry"]) for row in spec["tasks"]] == [
        ("default0", 3, 3), ("m", 1, 7), ("default2", 4, 3), ("default3", 6, 3),
    ]  # fmt: skip
    assert spec["tasks"][0]["template"]["spec"] == {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    assert spec["plugins"] == {"mpi": ["--master=m"], "svc": [], "ssh": []}


def test_what_is_stated_stays_and_the_object_given_is_not_changed() -> None:
    given = job(task(minAvailable=0, maxRetry=1), schedulerName="mine", maxRetry=9, minAvailable=1, plugins={"env": []})
    before = copy.deepcopy(given)
    found: Any = admission.default(JOBS, given, WORLD, Settings(scheduler_names=("first", "second")))
    assert given == before
    assert found == given
    bare: Any = admission.default(JOBS, {"spec": {}}, WORLD, Settings(scheduler_names=("first", "second")))
    assert bare["spec"]["schedulerName"] == "first"


def test_what_cannot_be_read_is_left_to_the_schema() -> None:
    given = {"spec": {"tasks": "none"}}
    assert admission.default(JOBS, given, WORLD) is given
    assert admission.default("widgets.example.com", given, WORLD) is given


@pytest.mark.parametrize(
    ("annotations", "path", "weights"),
    [
        ({"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/2"}, "root/a/b", "1/1/2"),
        ({"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}, "root/a", "1/2"),
        ({"volcano.sh/hierarchy": "a"}, "a", None),
    ],
)
def test_a_queue_is_completed(annotations: dict[str, str], path: str, weights: str | None) -> None:
    found: Any = admission.default(QUEUES, {"metadata": {"name": "q", "annotations": annotations}, "spec": {}}, WORLD)
    assert found["spec"] == {"reclaimable": True, "weight": 1}
    assert found["metadata"]["annotations"]["volcano.sh/hierarchy"] == path
    assert found["metadata"]["annotations"].get("volcano.sh/hierarchy-weights") == weights


def test_a_queue_that_says_no_stays_so() -> None:
    found: Any = admission.default(
        QUEUES, {"metadata": {"name": "q"}, "spec": {"reclaimable": False, "weight": 4}}, WORLD
    )
    assert found["spec"] == {"reclaimable": False, "weight": 4}


@pytest.mark.parametrize(
    ("namespace", "asked", "gets"),
    [("team", "default", "low"), ("team", "top", "top"), ("other", "default", "default")],
)
def test_a_pod_group_goes_to_the_queue_of_its_namespace(namespace: str, asked: str, gets: str) -> None:
    group = {"metadata": {"name": "g", "namespace": namespace}, "spec": {"queue": asked}}
    found: Any = admission.default(POD_GROUPS, group, WORLD)
    assert found["spec"]["queue"] == gets


# ---------------------------------------------------------------------- refusing


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_rule(case: Case) -> None:
    found = admission.validate(case.resource, case.value, case.old, WORLD, case.settings)
    assert found == ([case.text] if case.text else [])


@pytest.mark.parametrize(("policies", "text"), POLICIES)
def test_policies_of_a_task(policies: list[Any], text: str) -> None:
    for_task = admission.validate(JOBS, job(task(policies=policies)), None, WORLD)
    assert bool(for_task) == bool(text)


def test_the_controller_may_name_the_claims_that_it_makes() -> None:
    before = job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClassName": "s"}}])
    after = job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClassName": "s"}, "volumeClaimName": "made"}])
    assert admission.validate(JOBS, after, before, WORLD) == []


def test_a_queue_must_hold_what_its_descendants_may_use() -> None:
    world = Objects({QUEUES: [queue("a"), queue("b", "a"), queue("c", "b", capability={"cpu": 7, "memory": "2Gi"})]})
    text = "queue a capability[memory]=1Gi is smaller than its descendants' max capability=2Gi"
    assert admission.validate(QUEUES, queue("a", capability={"cpu": 7, "memory": "1Gi"}), queue("a"), world) == [text]


def test_a_pod_group_that_is_there_is_not_judged_again() -> None:
    value = {"metadata": {"name": "g"}, "spec": {"queue": "none"}}
    assert admission.validate(POD_GROUPS, value, value, WORLD) == []


@pytest.mark.parametrize(("spec", "problem"), NEW_CRON_JOBS)
def test_cron_jobs_that_change_are_judged_as_new_ones(spec: dict[str, str], problem: str) -> None:
    spec = {"schedule": "*/5 * * * mon-fri", **spec}
    found = {"metadata": {"name": spec.pop("name", "c")}, "spec": spec}
    assert admission.validate(CRON_JOBS, found, found, WORLD) == ([problem] if problem else [])


def test_a_refusal_reads_as_a_webhook_s() -> None:
    assert admission.denied(JOBS, ["no", "never"]) == (
        'admission webhook "validatejob.volcano.sh" denied the request: no; never'
    )
    assert admission.validate("widgets.example.com", {}, None, WORLD) == []


def test_what_cannot_be_read_is_refused_by_field() -> None:
    text = "Queue q, spec.weight: expected a whole number, got a text"
    assert admission.validate(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": "1"}}, None, WORLD) == [text]
