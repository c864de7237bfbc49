"""Pods in files get the PodGroups that the controllers of a live cluster make for them by their owners."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.cli.owner_groups import OwnerGroups
from stromboli.cluster.kinds import Pod
from stromboli.cluster.owners.workload_pods import Whose
from stromboli.controllers.changes import builtins
from stromboli.controllers.owners import DEEPEST
from stromboli.model.values.reading import convert
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests as m
from tests.cli.manifests import Obj
from tests.controllers.cluster import Cluster

ASKED: dict[str, Any] = {"scheduling.volcano.sh/group-by": "top-owner"}
LEAST = "scheduling.volcano.sh/group-min-member"
MINIMUM: dict[str, Any] = {LEAST: "2", "volcano.sh/x": "y"}
QUEUE: dict[str, Any] = {"scheduling.volcano.sh/queue-name": "q"}
SET = ("jobset.x-k8s.io/v1alpha2", "JobSet", "js")
ROLE, INDEX = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"


def template(cpu: str = "3", labels: Any = None) -> Obj:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": labels or {}}, "spec": {"schedulerName": "volcano", "containers": [container]}}


def owner(kind: tuple[str, str, str], spec: Any, *above: tuple[str, str, str], uids: bool = True, **notes: str) -> Obj:
    """An object of ``kind`` (API version, kind, name) that the first of ``above`` controls, with such annotations."""
    version, name, called = kind
    references = [
        {"apiVersion": v, "kind": k, "name": n, "controller": True, "uid": f"uid-of-{n}"} for v, k, n in above
    ]
    metadata: Obj = {"name": called, "namespace": "ns", "annotations": notes, "ownerReferences": references}
    if uids:
        metadata["uid"] = f"uid-of-{called}"
    return {"apiVersion": version, "kind": name, "metadata": metadata, "spec": spec}


def pod(name: str, *above: tuple[str, str, str], labels: Any = None, cpu: str = "1", **notes: Any) -> Obj:
    found = owner(("v1", "Pod", name), template(cpu)["spec"], *above, **notes)
    found["metadata"]["labels"] = labels or {}
    return found


def job_set(*, jobs: int = 2, uids: bool = True, **notes: str) -> list[Obj]:
    """A JobSet of two Jobs of two pods each, and so many of these Jobs."""
    spec = {"parallelism": 2, "completions": 2}
    roles = [{"name": "w", "replicas": 2, "template": {"spec": {**spec, "template": template()}}}]
    found = [owner(SET, {"replicatedJobs": roles}, uids=uids, **notes)]
    for number in range(jobs):
        made = {**spec, "template": template(labels={ROLE: "w", INDEX: str(number)})}
        found.append(owner(("batch/v1", "Job", f"js-w-{number}"), made, SET, uids=uids))
    return found


def planned(directory: Path, *objects: Obj) -> Planning:
    registry = full_registry("")
    loaded = config_of(Settings(), registry)
    planning = Planning(loaded, registry, now=1_800_000_000.0, grouping=OwnerGroups())
    planning.load([m.write(directory, [m.node("n1", cpu="8"), *objects])])
    planning.run(1)
    return planning


def groups(planning: Planning) -> dict[str, Obj]:
    """The specs of all PodGroups."""
    return {uid: builtins(job.group.spec) for uid, job in planning.state.jobs.items()}


@pytest.mark.parametrize("uids", [True, False])
def test_the_jobs_of_a_job_set_are_one_gang(tmp_path: Path, uids: bool) -> None:
    planning = planned(tmp_path, *job_set(uids=uids, **ASKED))
    ((uid, spec),) = groups(planning).items()
    assert uid == "ns/podgroup-uid-of-js"
    assert (spec["minMember"], str(spec["minResources"]["cpu"])) == (4, "12")
    assert [one["matchLabelKeys"] for one in spec["subGroupPolicy"]] == [(INDEX,)]
    assert {task.job for task in planning.state.tasks.values()} == {uid}
    assert planning.plans[-1].binds == [], "12 of 8 cores"
    assert planning.loading.kinds_ignored() == []


def test_a_gang_of_a_job_set_is_placed_as_a_whole(tmp_path: Path) -> None:
    planning = planned(tmp_path, m.node("n2", cpu="8"), *job_set(**ASKED))
    assert len(planning.plans[-1].binds) == 4


def test_without_a_word_each_job_is_a_gang_of_its_own(tmp_path: Path) -> None:
    found = groups(planned(tmp_path, *job_set()))
    assert {uid: spec["minMember"] for uid, spec in found.items()} == {
        "ns/podgroup-uid-of-js-w-0": 1, "ns/podgroup-uid-of-js-w-1": 1,
    }  # fmt: skip


def test_what_has_no_pods_below_it_is_told(tmp_path: Path) -> None:
    lonely = owner(("kubeflow.org/v1", "PyTorchJob", "pt"), {})
    (text,) = planned(tmp_path, *job_set(**ASKED), lonely).loading.kinds_ignored()
    assert text.startswith("1 object of kind kubeflow.org/v1 PyTorchJob is not looked at: which pods it leads to is")
    (text,) = planned(tmp_path, *job_set(jobs=0, **ASKED)).loading.kinds_ignored()
    assert "JobSet is not looked at: which pods it leads to is its operator's doing" in text


JOB = ("batch/v1", "Job", "j")
TORCH = ("kubeflow.org/v1", "PyTorchJob", "pt")
WORKERS = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws")
REPLICAS = ("apps/v1", "ReplicaSet", "rs")
RUN = ("example.com/v1", "Run", "r")
TRAIN = ("trainer.kubeflow.org/v1alpha1", "TrainJob", "t")
THREE = {"parallelism": 3, "template": template("1")}
TYPE = "training.kubeflow.org/replica-type"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(
            [*job_set(), pod("p", ("batch/v1", "Job", "js-w-0"), labels={ROLE: "w"}, **ASKED)], id="asked by a pod"
        ),
        pytest.param(
            [
                owner(
                    TORCH,
                    {"pytorchReplicaSpecs": {n: {"template": template("1")} for n in ("Master", "Worker")}},
                    **ASKED,
                ),
                pod("a", TORCH, labels={TYPE: "master"}),
                pod("b", TORCH, labels={TYPE: "worker"}),
            ],
            id="roles",
        ),
        pytest.param(
            [
                owner(WORKERS, {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template("1")}}, **ASKED),
                *(
                    pod(f"p{n}", WORKERS, labels={"leaderworkerset.sigs.k8s.io/group-index": str(n // 2)})
                    for n in range(4)
                ),
            ],
            id="parts",
        ),
        pytest.param([owner(REPLICAS, {}, **MINIMUM), pod("p", REPLICAS)], id="a minimum"),
        pytest.param([owner(RUN, {}, **ASKED), owner(JOB, THREE, RUN), pod("p", JOB, **ASKED)], id="an unknown kind"),
        pytest.param(
            [owner(RUN, {}), owner(JOB, THREE, RUN, **ASKED), pod("p", JOB)], id="an unknown kind above one that asks"
        ),
        pytest.param([owner(TRAIN, {}, **ASKED), owner(JOB, THREE, TRAIN), pod("p", JOB)], id="a kind without a size"),
        pytest.param(
            [owner(JOB, THREE, **ASKED, **QUEUE), m.queue("q"), pod("p", JOB)],
            id="a queue",
        ),
    ],
)
def test_groups_are_those_of_the_controllers(tmp_path: Path, objects: list[Obj]) -> None:
    planning = planned(tmp_path, *objects)
    cluster = Cluster()
    for one in objects:
        resource, metadata = _resource(one), one["metadata"]
        if resource != "pods":
            cluster.objects.setdefault(resource, {})[metadata.get("namespace", ""), metadata["name"]] = one
    for one in objects:
        if one["kind"] == "Pod":
            cluster.store("pods", one)
    cluster.settle()
    live = {f"ns/{one['metadata']['name']}": one for one in cluster.groups()}
    found = {uid: spec for uid, spec in groups(planning).items() if uid in live}
    assert set(live) == set(found)
    assert {uid: plain(spec) for uid, spec in found.items()} == {uid: plain(one["spec"]) for uid, one in live.items()}
    for uid, one in live.items():
        kept = one["metadata"].get("annotations", {})
        assert kept.items() <= dict(planning.state.jobs[uid].annotations).items()
    for name, one in cluster.pods().items():
        task = planning.state.tasks[f"ns/{name}"]
        assert {key: task.annotations.get(key) for key in one["metadata"]["annotations"]} == one["metadata"][
            "annotations"
        ]


def plain(spec: Obj) -> Any:
    """A spec with lists and texts alone, as JSON has them."""
    return msgspec.json.decode(msgspec.json.encode(spec, enc_hook=str))


def _resource(one: Obj) -> str:
    group = one["apiVersion"].rpartition("/")[0]
    return ".".join(filter(None, [f"{one['kind'].lower()}s", group]))


def test_an_owner_that_is_not_listed_is_told(tmp_path: Path) -> None:
    planning = planned(tmp_path, owner(JOB, THREE, SET, **ASKED), pod("p", JOB))
    (remark,) = planning.loading.remarks
    assert remark.object == "Pod ns/p"
    assert remark.problem.startswith("JobSet js decides on the PodGroup of this pod on a live cluster, but it is not")
    assert [spec["minMember"] for spec in groups(planning).values()] == [3]


def test_another_object_of_the_owners_name_is_not_taken_for_it(tmp_path: Path) -> None:
    other, *jobs = job_set(**ASKED)
    other["metadata"]["uid"] = "another"
    planning = planned(tmp_path, other, *jobs, pod("p", ("batch/v1", "Job", "js-w-0"), **ASKED))
    assert "another object bears the name by now" in str(planning.loading.remarks)
    assert "ns/podgroup-another" not in groups(planning)


def test_an_owner_whose_size_is_no_number_is_told(tmp_path: Path) -> None:
    whole, *jobs = job_set(**ASKED)
    whole["spec"]["replicatedJobs"][0]["replicas"] = "many"
    planning = planned(tmp_path, whole, *jobs, pod("p", SET, **ASKED))
    assert "'many' is not a number of pods" in str(planning.loading.remarks)


def test_the_command_plans_the_gang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = m.write(tmp_path, [m.node("n1", cpu="8"), *job_set(**ASKED)])
    assert main(["plan", str(file)]) == 0
    said = capsys.readouterr()
    assert "0 pods bound, 4 pods of 1 job wait" in said.out
    assert "JobSet" not in said.err
    assert main(["lint", str(file)]) == 1
    assert "beyond the whole cluster in cpu: 12 > 8" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("metadata", [{"annotations": 7}, {"ownerReferences": 5}, {"ownerReferences": [5]}])
@pytest.mark.parametrize("asked", [{}, ASKED])
def test_what_cannot_be_read_of_an_owner_counts_as_absent(tmp_path: Path, metadata: Obj, asked: Any) -> None:
    run = owner(RUN, {})
    run["metadata"].update(metadata)
    planning = planned(tmp_path, run, pod("p", RUN, **asked))
    assert planning.loading.problems == []
    assert set(groups(planning)) == {"ns/podgroup-uid-of-r"}
    assert len(planning.plans[-1].binds) == 1


def test_owners_that_control_each_other_are_each_looked_at_a_few_times() -> None:
    """Their ways are as many as there are owners, to the power of how far they are followed."""
    names = [("example.com/v1", "Run", f"r{number}") for number in range(6)]
    asked = Counter[str]()
    bodies = {(*one[:2], "ns", one[2]): owner(one, {}, *names) for one in names}

    def body_of(name: Whose) -> Obj | None:
        asked[name[3]] += 1
        return bodies.get(name)

    assert OwnerGroups()(convert(pod("p", *names), Pod), body_of) is None
    assert asked.total() <= DEEPEST * len(names)
