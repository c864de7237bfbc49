"""One gang for all pods below an owner: by the table of kinds, where it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.fields import Metadata
from stromboli.api.fields import OwnerReference as Reference
from stromboli.cluster.kinds import OwnerReference
from stromboli.cluster.owners.gangs import Owner, owner_of
from stromboli.cluster.owners.kinds import OWNER_KINDS
from stromboli.controllers.changes import Read
from stromboli.controllers.manager import Settings
from stromboli.controllers.owners import DEEPEST
from stromboli.controllers.readings import FRESH
from stromboli.errors import ManifestError
from tests.controllers.cluster import Cluster, Manifest

ASKED: dict[str, Any] = {"scheduling.volcano.sh/group-by": "top-owner"}


def container(cpu: str = "1") -> Manifest:
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}}


def owned(name: str, *owners: tuple[str, str, str], labels: Any = None, annotations: Any = None) -> Manifest:
    """Metadata of an object that the first of ``owners`` controls: API version, kind and name."""
    references = [
        {"apiVersion": version, "kind": kind, "name": owner, "uid": f"uid-of-{owner}", "controller": True}
        for version, kind, owner in owners
    ]
    return {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-of-{name}",
        "ownerReferences": references,
        "labels": labels or {},
        "annotations": annotations or {},
    }


def pod(name: str, *owners: tuple[str, str, str], labels: Any = None, **annotations: str) -> Manifest:
    metadata = owned(name, *owners, labels=labels, annotations=annotations)
    return {"metadata": metadata, "spec": {"schedulerName": "volcano", **container()["spec"]}}


JOB_SET: Any = {
    "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    "replicatedJobs": [
        {"name": "driver", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": container("2")}}},
        {"name": "workers", "replicas": 2,
         "template": {"spec": {"parallelism": 4, "completions": 3, "template": container()}}},
    ],
}  # fmt: skip
JOB = ("batch/v1", "Job", "js-workers-0")
SET = ("jobset.x-k8s.io/v1alpha2", "JobSet", "js")
LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "workers", "jobset.sigs.k8s.io/job-index": "0"}


def job_set(cluster: Cluster, spec: Any = JOB_SET, *above: tuple[str, str, str], **asked: str) -> None:
    job = {"parallelism": 4, "template": container()}
    cluster.objects["jobs.batch"] = {("ns", "js-workers-0"): {"metadata": owned("js-workers-0", SET), "spec": job}}
    metadata = owned("js", *above, annotations=asked)
    cluster.objects["jobsets.jobset.x-k8s.io"] = {("ns", "js"): {"metadata": metadata, "spec": spec}}


def grouped(settings: Settings | None = None, **asked: str) -> tuple[Cluster, Manifest]:
    cluster = Cluster(settings)
    job_set(cluster)
    cluster.store("pods", pod("p", JOB, labels=LABELS, **asked))
    cluster.settle()
    (group,) = cluster.groups()
    return cluster, group


@pytest.mark.parametrize(("settings", "asked"), [(Settings(group_by=frozenset({"JobSet"})), {}), (Settings(), ASKED)])
def test_a_job_set_is_one_gang_of_its_jobs(settings: Settings, asked: dict[str, str]) -> None:
    cluster, group = grouped(settings, **asked)
    assert group["metadata"]["name"] == "podgroup-uid-of-js"
    assert group["metadata"]["ownerReferences"] == [
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "uid": "uid-of-js",
         "controller": True}
    ]  # fmt: skip
    spec = group["spec"]
    assert spec["minMember"] == 7
    assert (spec["minResources"]["cpu"], spec["minResources"]["pods"]) == ("8", "7")
    assert spec["subGroupPolicy"] == [
        {"name": name, "subGroupSize": size, "minSubGroups": number,
         "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/replicatedjob-name": name}},
         "matchLabelKeys": ["jobset.sigs.k8s.io/job-index"]}
        for name, size, number in (("driver", 1, 1), ("workers", 3, 2))
    ]  # fmt: skip
    assert "minTaskMember" not in spec
    assert cluster.pods()["p"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "podgroup-uid-of-js"


def reads(cluster: Cluster) -> list[str]:
    """The kinds of what was read."""
    return [write.kind for write in cluster.writes if isinstance(write, Read)]


QUEUE, LEAST = "scheduling.volcano.sh/queue-name", "scheduling.volcano.sh/group-min-member"
MODE, TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"


def told_by(job: dict[str, str], whole: dict[str, str]) -> Manifest:
    """The group of a JobSet by its annotations, by those of its Job."""
    cluster = Cluster(Settings(group_by=frozenset({"JobSet"})))
    job_set(cluster, JOB_SET, ("example.com/v1", "Run", "r"), **whole)
    cluster.objects["jobs.batch"]["ns", "js-workers-0"]["metadata"]["annotations"] = job
    cluster.store("pods", pod("p", JOB, labels=LABELS))
    cluster.settle()
    (group,) = cluster.groups()
    assert group["metadata"]["name"] == "podgroup-uid-of-js"
    return group


def test_of_what_owners_say_the_highest_counts_and_all_is_inherited() -> None:
    group = told_by({QUEUE: "low", MODE: "hard", TIER: "1"}, {QUEUE: "high", TIER: "2"})
    assert group["spec"]["queue"] == "high"
    assert group["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    notes = group["metadata"]["annotations"]
    assert {key: notes.get(key) for key in (MODE, TIER)} == {MODE: "hard", TIER: "2"}


@pytest.mark.parametrize(
    ("said", "least", "cpu", "parts"),
    [
        ("7", 7, "8", True),
        ("3", 3, "3", False),
        (str(2**31 - 1), 2**31 - 1, "2147483647", False),
        (str(2**31), 1, "1", False),
    ],
)
def test_a_gang_of_another_size_than_its_owners_has_no_parts(said: str, least: int, cpu: str, parts: bool) -> None:
    spec = told_by({}, {LEAST: said})["spec"]
    found = spec["minMember"], spec["minResources"]["cpu"], "subGroupPolicy" in spec
    assert found == (least, cpu, parts)


def test_without_a_word_each_job_is_a_gang_as_before() -> None:
    cluster, group = grouped()
    assert group["metadata"]["name"] == "podgroup-uid-of-js-workers-0"
    assert group["spec"]["minMember"] == 1
    assert reads(cluster) == ["Job", "JobSet"], "the Job is not followed here"


def test_an_owner_of_the_owner_may_ask_and_is_read_once() -> None:
    cluster = Cluster()
    job_set(cluster, **ASKED)
    job = cluster.objects["jobs.batch"]["ns", "js-workers-0"]
    followed = Owner(job["metadata"]["uid"], controller=_reference(job))
    cluster.manager.world.owners["Job", "ns", "js-workers-0"] = followed
    for name in ("p", "q"):
        cluster.store("pods", pod(name, JOB, labels=LABELS))
    cluster.settle()
    (group,) = cluster.groups()
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == ("podgroup-uid-of-js", 7)
    assert reads(cluster) == ["JobSet"]


@pytest.mark.parametrize("is_left", [False, True])
def test_an_owner_that_is_owned_no_longer_has_a_group_of_its_own(is_left: bool) -> None:
    cluster = Cluster()
    job_set(cluster, **ASKED)
    owner = Reference(*SET, "uid-of-js", controller=True)
    for owners in [(owner,), ()] if is_left else [(owner,)]:
        job = Metadata(name="js-workers-0", namespace="ns", uid="uid-of-js-workers-0", owner_references=owners)
        cluster.manager.seen_owner("Job", job, None)
    cluster.store("pods", pod("p", JOB, labels=LABELS))
    cluster.settle()
    meta = cluster.groups()[0]["metadata"]
    assert meta["name"] == ("podgroup-uid-of-" + ("js-workers-0" if is_left else "js"))
    assert meta["ownerReferences"][0]["controller"] is True


def _reference(body: Manifest) -> Any:
    found = body["metadata"]["ownerReferences"][0]
    return OwnerReference(found["apiVersion"], found["kind"], found["name"], found["uid"], controller=True)


def test_a_gang_follows_its_owner_as_pods_come() -> None:
    cluster, _ = grouped(**ASKED)
    job_set(cluster, {"replicatedJobs": JOB_SET["replicatedJobs"][:1]})
    cluster.store("pods", pod("q", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    assert cluster.groups()[0]["spec"]["minMember"] == 7, "what was read a moment ago still counts"
    cluster.now += FRESH
    cluster.store("pods", pod("r", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    (group,) = cluster.groups()
    assert (group["spec"]["minMember"], len(group["spec"]["subGroupPolicy"])) == (1, 1)


@pytest.mark.parametrize("denial", ['jobsets.jobset.x-k8s.io "js" is forbidden', "the server could not find it"])
def test_an_owner_that_cannot_be_read_leaves_the_gang_of_what_could_and_is_told(denial: str) -> None:
    cluster = Cluster()
    job_set(cluster)
    del cluster.objects["jobsets.jobset.x-k8s.io"]
    cluster.denial = denial
    cluster.store("pods", pod("p", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    (group,) = cluster.groups()
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == ("podgroup-uid-of-js-workers-0", 4)
    (text,) = cluster.told("OwnerNotRead")
    assert text.startswith(f"JobSet js cannot be read ({denial}), so its pods are not grouped by it")


def test_another_object_of_the_owners_name_is_not_taken_for_it() -> None:
    cluster = Cluster()
    job_set(cluster)
    cluster.objects["jobsets.jobset.x-k8s.io"]["ns", "js"]["metadata"]["uid"] = "another"
    cluster.store("pods", pod("p", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    assert cluster.groups()[0]["metadata"]["name"] == "podgroup-uid-of-js-workers-0"


def test_owners_of_unknown_kinds_are_climbed_where_asked_and_not_for_ever() -> None:
    cluster = Cluster()
    chain = [("x.io/v1", "Thing", f"t{number}") for number in range(20)]
    cluster.objects["things.x.io"] = {
        ("ns", f"t{number}"): {"metadata": owned(f"t{number}", *chain[number + 1 : number + 2])} for number in range(20)
    }
    cluster.store("pods", pod("p", chain[0], **ASKED))
    cluster.store("pods", pod("q", chain[0]))
    cluster.settle()
    names = sorted(group["metadata"]["name"] for group in cluster.groups())
    assert names == ["podgroup-uid-of-t0", f"podgroup-uid-of-t{DEEPEST - 1}"]


def test_a_size_that_is_no_number_is_told_and_makes_no_group() -> None:
    cluster = Cluster()
    job_set(cluster, {"replicatedJobs": [{**JOB_SET["replicatedJobs"][0], "replicas": "many"}]})
    cluster.store("pods", pod("p", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    (text,) = cluster.told("OwnerNotRead")
    assert "'many' is not a number of pods" in text


ROLE = {"template": container()}
POLICY = {"schedulingPolicy": {"minAvailable": 2, "queue": "q", "priorityClass": "high"}}


@pytest.mark.parametrize(
    ("kind", "spec", "labels", "wanted"),
    [
        (
            ("kubeflow.org/v1", "PyTorchJob"),
            {"pytorchReplicaSpecs": {"Master": ROLE, "Worker": {**ROLE, "replicas": 3}}},
            {"training.kubeflow.org/replica-type": "worker"},
            {"minMember": 4, "minTaskMember": {"master": 1, "worker": 3}, "role": "worker"},
        ),
        (
            ("kubeflow.org/v1", "PyTorchJob"),
            {"runPolicy": POLICY, "pytorchReplicaSpecs": {"Worker": {**ROLE, "replicas": 3}}},
            {"training.kubeflow.org/replica-type": "worker"},
            {"minMember": 2, "queue": "q", "priorityClassName": "high", "role": "worker"},
        ),
        (
            ("kubeflow.org/v2beta1", "MPIJob"),
            {"mpiReplicaSpecs": {"Launcher": ROLE, "Worker": {**ROLE, "replicas": 2}}},
            {"training.kubeflow.org/job-role": "worker"},
            {"minMember": 3, "minTaskMember": {"launcher": 1, "worker": 2}, "role": "worker"},
        ),
        (
            ("kubeflow.org/v2beta1", "MPIJob"),
            {"launcherCreationPolicy": "WaitForWorkersReady",
             "mpiReplicaSpecs": {"Launcher": ROLE, "Worker": {**ROLE, "replicas": 2}}},
            {"training.kubeflow.org/job-role": "worker"},
            {"minMember": 2, "minTaskMember": {"worker": 2}, "role": "worker"},
        ),
        (
            ("ray.io/v1", "RayCluster"),
            {"headGroupSpec": ROLE,
             "workerGroupSpecs": [{**ROLE, "groupName": "gpu", "replicas": 2, "numOfHosts": 2, "minReplicas": 1}]},
            {"ray.io/group": "gpu"},
            {"minMember": 5, "minTaskMember": {"headgroup": 1, "gpu": 4}, "role": "gpu"},
        ),
        (
            ("ray.io/v1", "RayJob"),
            {"rayClusterSpec": {
                "headGroupSpec": ROLE, "enableInTreeAutoscaling": True,
                "workerGroupSpecs": [{**ROLE, "groupName": "gpu", "replicas": 2, "numOfHosts": 2, "minReplicas": 1}]}},
            {"ray.io/group": "headgroup"},
            {"minMember": 3, "minTaskMember": {"headgroup": 1, "gpu": 2}, "role": "headgroup"},
        ),
        (
            ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": container()}},
            {"leaderworkerset.sigs.k8s.io/group-index": "1"},
            {"minMember": 4, "name": "podgroup-uid-of-o-1"},
        ),
        (
            ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
            {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 4, "workerTemplate": container()}},
            {"leaderworkerset.sigs.k8s.io/group-index": "0"},
            {"minMember": 1, "name": "podgroup-uid-of-o-0"},
        ),
        (("batch/v1", "Job"), {"parallelism": 5, "completions": 3, "template": container()}, {}, {"minMember": 3}),
        (("apps/v1", "Deployment"), {"replicas": 5, "template": container()}, {}, {"minMember": 1}),
        (("apps/v1", "StatefulSet"), {"replicas": 5, "template": container()}, {}, {"minMember": 1}),
        (("apps/v1", "DaemonSet"), {"template": container()}, {}, {"minMember": 1}),
        (
            ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
            {"batchSchedulerOptions": {"queue": "q"}},
            {},
            {"minMember": 1, "queue": "q"},
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_what_each_kind_says_of_its_gang(
    kind: tuple[str, str], spec: Manifest, labels: dict[str, str], wanted: dict[str, Any]
) -> None:
    cluster = Cluster()
    version, name = kind
    group = version.partition("/")[0]
    cluster.objects[f"{name.lower()}s.{group}"] = {("ns", "o"): {"metadata": owned("o"), "spec": spec}}
    cluster.store("pods", pod("p", (version, name, "o"), labels=labels, **ASKED))
    cluster.settle()
    (found,) = cluster.groups()
    spec = found["spec"]
    annotations = cluster.pods()["p"]["metadata"]["annotations"]
    got = {
        "minMember": spec["minMember"],
        "name": found["metadata"]["name"],
        "role": annotations.get("volcano.sh/task-spec"),
        **{key: spec.get(key) for key in ("minTaskMember", "queue", "priorityClassName", "subGroupPolicy")},
    }
    usual = {"name": "podgroup-uid-of-o", "role": None, "minTaskMember": None, "queue": None,
             "priorityClassName": None, "subGroupPolicy": None}  # fmt: skip
    assert got == {**usual, **wanted}


@pytest.mark.parametrize(
    ("first", "least"),
    [({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, 1), ({}, 1)],
    ids=["in order", "one depends on the other"],
)
def test_jobs_that_start_after_others_are_not_waited_for(first: Manifest, least: int) -> None:
    cluster = Cluster()
    one, two = JOB_SET["replicatedJobs"]
    job_set(cluster, {"replicatedJobs": [one, {**two, "dependsOn": [] if first else [{"name": "driver"}]}], **first})
    cluster.store("pods", pod("p", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    assert cluster.groups()[0]["spec"]["minMember"] == least


def test_a_train_job_is_as_large_as_its_job_set_and_a_cron_job_keeps_runs_apart() -> None:
    cluster = Cluster()
    job_set(cluster, JOB_SET, ("trainer.kubeflow.org/v1alpha1", "TrainJob", "tj"))
    queue = {"scheduling.volcano.sh/queue-name": "team", "volcano.sh/network-topology-mode": "soft"}
    cluster.objects["trainjobs.trainer.kubeflow.org"] = {
        ("ns", "tj"): {"metadata": owned("tj", ("batch/v1", "CronJob", "nightly"), annotations=queue), "spec": {}}
    }
    cluster.store("pods", pod("p", JOB, labels=LABELS, **ASKED))
    cluster.settle()
    (group,) = cluster.groups()
    assert group["metadata"]["name"] == "podgroup-uid-of-tj"
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (7, "team")
    assert group["spec"]["networkTopology"] == {"mode": "soft"}


def test_owners_above_the_one_that_the_gang_is_made_for_say_nothing_of_it() -> None:
    """A TrainJob above the JobSet is read to see whether it asks for more, and does not."""
    cluster = Cluster(Settings(group_by=frozenset({"JobSet"})))
    job_set(cluster, JOB_SET, ("trainer.kubeflow.org/v1alpha1", "TrainJob", "tj"))
    cluster.objects["trainjobs.trainer.kubeflow.org"] = {
        ("ns", "tj"): {"metadata": owned("tj", annotations={QUEUE: "team"}), "spec": {}}
    }
    cluster.store("pods", pod("p", JOB, labels=LABELS))
    cluster.settle()
    (group,) = cluster.groups()
    assert (group["metadata"]["name"], group["spec"].get("queue")) == ("podgroup-uid-of-js", None)


@pytest.mark.parametrize(("leader", "cpu"), [({}, "4"), ({"leaderTemplate": container("3")}, "6")])
def test_a_leader_takes_what_its_own_template_says(leader: Manifest, cpu: str) -> None:
    workers = {"size": 4, "workerTemplate": container(), **leader}
    body = {"metadata": owned("o"), "spec": {"leaderWorkerTemplate": workers}}
    found = owner_of(OWNER_KINDS["leaderworkerset.x-k8s.io", "LeaderWorkerSet"], body)
    assert found.usage()["cpu"] == cpu


def replicated(replicas: Any = 1, parallelism: Any = 1, cpu: str = "1") -> Manifest:
    """The spec of a JobSet with one role."""
    job = {"spec": {"parallelism": parallelism, "template": container(cpu)}}
    return {"replicatedJobs": [{"name": "r", "replicas": replicas, "template": job}]}


ENTRY = "spec.replicatedJobs[]"
LEADERS: Manifest = {"leaderWorkerTemplate": {"workerTemplate": container()}}
LARGEST = 2**31 - 1
ROWS = {row.kind: row for row in OWNER_KINDS.values()}


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        pytest.param("JobSet", replicated(2, 3), [6], id="a product"),
        pytest.param("JobSet", replicated(0, 3), [0], id="scaled to nothing"),
        pytest.param("JobSet", replicated(2**16, 2**15 - 1), [2**31 - 2**16], id="just few enough"),
        pytest.param("Job", {"parallelism": LARGEST, "template": container()}, [LARGEST], id="the most"),
        pytest.param("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 3, **LEADERS["leaderWorkerTemplate"]}},
                     [1, 2], id="a leader and workers"),
        pytest.param("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 1, **LEADERS["leaderWorkerTemplate"]}},
                     [1, 0], id="a leader alone"),
        pytest.param("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 0, **LEADERS["leaderWorkerTemplate"]}},
                     [1, 0], id="less than a leader"),
    ],
)  # fmt: skip
def test_how_many_pods_an_owner_makes(kind: str, spec: Manifest, pods: list[int]) -> None:
    assert [part.pods for part in owner_of(ROWS[kind], {"spec": spec}).parts] == pods


@pytest.mark.parametrize(
    ("kind", "spec", "path", "problem"),
    [
        ("JobSet", replicated(2**16, 2**15), ENTRY, "2147483648 must be from 0 to 2147483647"),
        ("Job", {"parallelism": LARGEST + 1, "template": container()}, "spec.template.spec",
         "2147483648 must be from 0 to 2147483647"),
        ("JobSet", replicated(-1), "replicas", "-1 is not a number of pods"),
        ("JobSet", replicated(True), "replicas", "True is not a number of pods"),
        ("JobSet", replicated(1, 1.5), "template.spec.parallelism", "1.5 is not a number of pods"),
        ("JobSet", replicated(cpu="-1"), "template.spec.template.spec.containers[0].resources.requests.cpu",
         "'-1' is negative"),
    ],
)  # fmt: skip
def test_numbers_of_an_owner_that_cannot_be_used_are_refused(
    kind: str, spec: Manifest, path: str, problem: str
) -> None:
    with pytest.raises(ManifestError) as failure:
        owner_of(ROWS[kind], {"spec": spec})
    assert (failure.value.path, problem in str(failure.value)) == (path, True)
