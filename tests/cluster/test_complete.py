"""What is added as the controllers of a live cluster would add it."""

from __future__ import annotations

import pytest

from stromboli.api.fields import NetworkTopology
from stromboli.cluster.complete import complete, group_of_pod, missing_queues, topology_of, with_minimum
from stromboli.cluster.decoding.decode import podgroup_of, task_of
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.events import Added, Modified
from stromboli.cluster.job_pods import group_of, pods_of, with_defaults
from stromboli.cluster.usage import quota_usage
from stromboli.errors import ManifestError
from stromboli.model.resources.axes import Axes
from tests.cluster.objects import made, pod

GROUP = "scheduling.k8s.io/group-name"
OURS = {"schedulerName": "volcano"}


def seen(*objects):
    """(additions, problems) to objects."""
    found = complete(Added(type(each).__name__, each) for each in objects)
    additions = [each for each in found if not isinstance(each, ManifestError)]
    return additions, [each for each in found if isinstance(each, ManifestError)]


def added(*objects, kind):
    """The objects of ``kind`` that are added or changed, by name."""
    additions, problems = seen(*objects)
    assert not problems
    return {each.event.object.metadata.name: each.event.object for each in additions if each.event.kind == kind}


def quantities(amounts):
    return {name: str(amount) for name, amount in amounts.items()}


# -- Queues and namespaces -------------------------------------------------------------------------------------------


def test_an_empty_cluster_gets_the_queues_that_the_scheduler_makes():
    additions, _ = seen()
    assert [each.sentence for each in additions] == [
        "Queue root is added, as the scheduler makes it when it starts",
        "Queue default is added, as the scheduler makes it when it starts",
    ]
    root, default = (each.event.object for each in additions)
    assert (root.spec.weight, root.spec.reclaimable, root.status.state) == (1, False, "Open")
    assert (default.spec.weight, default.spec.reclaimable) == (1, True)


def test_queues_that_are_there_stay_as_they_are():
    assert not added(made("Queue", {"name": "root"}), made("Queue", {"name": "default"}), kind="Queue")
    assert [each.event.object.metadata.name for each in missing_queues(["root"], "main")] == ["main"]


def test_namespaces_that_objects_live_in():
    found = added(
        pod(namespace="a"), made("PodGroup", {"namespace": "b"}), made("Namespace", {"name": "a"}), kind="Namespace"
    )
    assert {name: each.metadata.labels for name, each in found.items()} == {"b": {"kubernetes.io/metadata.name": "b"}}


# -- Plain pods ------------------------------------------------------------------------------------------------------


def test_a_plain_pod_gets_a_group_of_its_own():
    plain = pod(
        "p",
        uid="u1",
        namespace="ns",
        requests={"cpu": "500m", "memory": "1Gi"},
        spec={**OURS, "priorityClassName": "high"},
        creationTimestamp="2024-05-01T12:00:00Z",
        labels={"app": "a", "volcano.sh/preemptable": "true"},
        annotations={"scheduling.volcano.sh/queue-name": "q", "volcano.sh/revocable-zone": "*", "other": "x"},
    )
    additions, _ = seen(
        plain, made("Queue", {"name": "root"}), made("Queue", {"name": "default"}), made("Namespace", {"name": "ns"})
    )
    assert [each.sentence for each in additions] == [
        "PodGroup ns/podgroup-u1 is added, for Pod ns/p, which names no group",
        "Pod ns/p belongs to PodGroup ns/podgroup-u1",
    ]
    group = additions[0].event.object
    assert (group.spec.min_member, group.spec.queue, group.spec.priority_class_name) == (1, "q", "high")
    assert group.status.phase == "Pending"
    assert group.metadata.labels == {"volcano.sh/preemptable": "true"}
    assert group.metadata.annotations == {"volcano.sh/revocable-zone": "*"}
    assert quantities(group.spec.min_resources) == {
        "cpu": "500m",
        "memory": "1Gi",
        "requests.cpu": "500m",
        "requests.memory": "1Gi",
        "pods": "1",
        "count/pods": "1",
    }
    assert podgroup_of(group).created == 1714564800
    changed = additions[1].event
    assert isinstance(changed, Modified)
    assert changed.object.metadata.annotations[GROUP] == "podgroup-u1"
    assert changed.object.metadata.annotations["other"] == "x"


def test_pods_of_one_controlling_owner_share_a_group():
    owner = [
        {"kind": "Other", "name": "o", "uid": "o"},
        {"kind": "ReplicaSet", "name": "rs", "uid": "r", "controller": True},
    ]
    pods = [pod(name, spec=OURS, ownerReferences=owner) for name in ("a", "b")]
    additions, _ = seen(*pods)
    assert [each.event.object.metadata.name for each in additions if each.event.kind == "PodGroup"] == ["podgroup-r"]
    assert {name: each.metadata.annotations[GROUP] for name, each in added(*pods, kind="Pod").items()} == {
        "a": "podgroup-r",
        "b": "podgroup-r",
    }


@pytest.mark.parametrize(
    ("text", "least"),
    [("3", 3), ("0", 0), ("-1", 1), ("many", 1), (str(2**31 - 1), 2**31 - 1), (str(2**31), 1), (None, 1)],
)
def test_an_owner_says_how_many_pods_must_run_at_once_and_what_they_inherit(text, least):
    notes = {"scheduling.volcano.sh/group-min-member": text} if text else {}
    group = with_minimum(
        group_of_pod(pod("p", spec=OURS)), pod("p", spec=OURS), {**notes, "other": "x", "volcano.sh/a": "y"}
    )
    assert group.spec.min_member == least
    assert group.metadata.annotations == {"volcano.sh/a": "y"}


def test_the_group_of_a_pod_without_an_owner_is_controlled_by_it():
    (owner,) = group_of_pod(pod("p", uid="u", spec=OURS)).metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "p", "u", True)


@pytest.mark.parametrize(("text", "tier"), [("2", 2), (str(2**31 - 1), 2**31 - 1), (str(2**31), None), ("x", None)])
def test_the_highest_tier_that_a_pod_names_is_a_number_of_32_bits(text, tier):
    found = topology_of({"volcano.sh/network-topology-highest-tier": text})
    assert found == NetworkTopology("hard", tier)


def test_a_pod_without_a_uid_lends_its_name():
    assert list(added(pod("p", spec=OURS), kind="PodGroup")) == ["podgroup-p"]


@pytest.mark.parametrize(
    "left",
    [
        pod(spec={"schedulerName": "default-scheduler"}),
        pod(),
        pod(spec=OURS, annotations={GROUP: "g"}),
    ],
)
def test_pods_of_others_and_members_of_a_group_are_left_alone(left):
    assert not added(left, kind="PodGroup")
    assert not added(left, kind="Pod")


def test_a_group_that_is_there_already_is_used():
    existing = made("PodGroup", {"name": "podgroup-u1", "uid": "g"})
    found = pod("p", uid="u1", spec=OURS)
    assert not added(found, existing, kind="PodGroup")
    assert added(found, existing, kind="Pod")["p"].metadata.annotations[GROUP] == "podgroup-u1"


def test_a_pod_that_was_replaced_counts_as_it_is_now():
    assert not added(pod("p", spec=OURS), pod("p", spec=OURS, annotations={GROUP: "g"}), kind="PodGroup")


@pytest.mark.parametrize(
    ("annotations", "mode", "tier"),
    [
        ({"volcano.sh/network-topology-mode": "Soft"}, "soft", None),
        ({"volcano.sh/network-topology-mode": "odd", "volcano.sh/network-topology-highest-tier": "2"}, "hard", 2),
        ({"volcano.sh/network-topology-highest-tier": "x"}, "hard", None),
    ],
)
def test_network_topology_of_a_plain_pod(annotations, mode, tier):
    topology = group_of_pod(pod(annotations=annotations)).spec.network_topology
    assert topology is not None
    assert (topology.mode, topology.highest_tier_allowed) == (mode, tier)
    assert group_of_pod(pod()).spec.network_topology is None


def test_of_two_forms_of_a_disruption_budget_the_first_is_passed_on():
    annotations = {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "2"}
    assert group_of_pod(pod(annotations=annotations)).metadata.annotations == {"volcano.sh/jdb-min-available": "1"}


def test_priorities_come_from_the_classes():
    high = made("PriorityClass", {"name": "high"}, value=1000)
    pods = [
        pod("a", spec={"priorityClassName": "high"}),
        pod("b", spec={"priorityClassName": "high", "priority": 5}),
        pod("c", spec={"priorityClassName": "unknown"}),
        pod("d", spec={**OURS, "priorityClassName": "high"}),
    ]
    additions, _ = seen(*pods, high)
    assert [each.sentence for each in additions if each.event.kind == "Pod"] == [
        "Pod default/a has priority 1000 by class high",
        "Pod default/d has priority 1000 by class high and belongs to PodGroup default/podgroup-d",
    ]
    assert {name: each.spec.priority for name, each in added(*pods, high, kind="Pod").items()} == {"a": 1000, "d": 1000}


def test_a_pod_that_cannot_be_used_is_a_problem_of_its_own():
    additions, problems = seen(pod("bad", spec=OURS, requests={"cpu": "-1"}), pod("good", spec=OURS))
    assert [str(each) for each in problems] == [
        "Pod default/bad, spec.containers[0].resources.requests.cpu: '-1' is negative"
    ]
    assert [each.event.object.metadata.name for each in additions if each.event.kind == "Pod"] == ["good"]


# -- What counts against quotas --------------------------------------------------------------------------------------


def test_quota_usage():
    container = {"resources": {"requests": {"cpu": "1", "example.com/gpu": 2},
                 "limits": {"cpu": "2", "memory": "1Gi", "example.com/gpu": 2}}}  # fmt: skip
    spec = pod(spec={"containers": [container], "overhead": {"cpu": "100m"}}).spec
    assert quantities(quota_usage([(spec, 2), (pod(requests={"cpu": "1m"}).spec, 1)])) == {
        "cpu": "2201m",
        "example.com/gpu": "4",
        "requests.cpu": "2201m",
        "requests.example.com/gpu": "4",
        "limits.cpu": "4200m",
        "limits.memory": "2Gi",
        "pods": "3",
        "count/pods": "3",
    }


# -- Volcano Jobs ----------------------------------------------------------------------------------------------------


def task(name="worker", replicas=2, cpu="1", **more):
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more.pop("spec", {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec, **more.pop("template", {})}, **more}


def job(*tasks, name="j", uid="u", spec=None, **more):
    metadata = {"name": name, "namespace": "ns", "uid": uid, **more.pop("metadata", {})}
    return made("Job", metadata, spec={"tasks": list(tasks), **(spec or {})}, **more)


def group_spec(found, **priorities):
    return group_of(with_defaults(found), priorities).spec


def test_a_job_gets_its_group_and_its_pods():
    found = job(task(replicas=2), spec={"queue": "q", "priorityClassName": "high", "minAvailable": 1})
    high = made("PriorityClass", {"name": "high"}, value=7)
    (group,) = added(found, high, kind="PodGroup").values()
    assert (group.metadata.name, group.metadata.namespace, group.spec.queue) == ("j-u", "ns", "q")
    assert (group.spec.min_member, group.spec.min_task_member, group.spec.priority_class_name) == (
        1,
        {"worker": 2},
        "high",
    )
    pods = added(found, high, kind="Pod")
    assert list(pods) == ["j-worker-0", "j-worker-1"]
    made_of = [task_of(each, TemplateStore(Axes())) for each in pods.values()]
    assert [(each.job, each.role, each.index, each.priority) for each in made_of] == [
        ("ns/j-u", "worker", 0, 7),
        ("ns/j-u", "worker", 1, 7),
    ]
    assert [each.scheduler for each in made_of] == ["volcano", "volcano"]
    second = pods["j-worker-1"]
    assert second.metadata.annotations == {
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": "j-worker",
        GROUP: "j-u",
    }
    assert second.metadata.labels == {
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-namespace": "ns",
    }
    (owner,) = second.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Job", "j", "u", True)
    assert second.status.phase == "Pending"


def test_sentences_of_a_job():
    additions, _ = seen(job(task(replicas=1)))
    assert [each.sentence for each in additions if each.event.kind in ("PodGroup", "Pod")] == [
        "PodGroup ns/j-u is added, as the controller of Job ns/j makes it",
        "Pod ns/j-worker-0 is added, as the controller of Job ns/j makes it",
    ]


def test_what_template_and_job_say_is_passed_on():
    found = job(
        task(
            template={"metadata": {"labels": {"app": "a"}, "annotations": {"note": "n"}}},
            spec={"schedulerName": "other", "priorityClassName": "low"},
            topologyPolicy="single-numa-node",
        ),
        metadata={"annotations": {"volcano.sh/preemptable": "true", "private": "x"}},
        spec={"priorityClassName": "high"},
    )
    first = next(pods_of(with_defaults(found), {"low": 1, "high": 2}))
    assert first.metadata.labels["app"] == "a"
    annotations = first.metadata.annotations
    assert (annotations["note"], annotations["volcano.sh/preemptable"], annotations.get("private")) == (
        "n",
        "true",
        None,
    )
    assert annotations["volcano.sh/numa-topology-policy"] == "single-numa-node"
    assert (first.spec.scheduler_name, first.spec.priority_class_name, first.spec.priority) == ("other", "low", 1)


def test_defaults_of_a_job():
    found = with_defaults(job(task(name="", replicas=3), task(name="", replicas=2, minAvailable=1)))
    assert [(each.name, each.min_available) for each in found.spec.tasks] == [("default0", 3), ("default1", 1)]
    assert (found.spec.min_available, found.spec.queue, found.spec.scheduler_name) == (4, "default", "volcano")


@pytest.mark.parametrize(
    ("minimum", "tasks", "cpu"),
    [
        # below the sum of the tasks' minimums: the first pods, higher priorities first
        (1, [task("a", 2, "1", minAvailable=2), task("b", 2, "10", minAvailable=2)], "1"),
        (3, [task("a", 2, "1", minAvailable=2), task("b", 2, "10", minAvailable=2)], "12"),
        (1, [task("a", 2, "1"), task("b", 2, "10", spec={"priorityClassName": "high"})], "10"),
        (3, [task("a", 2, "1"), task("b", 2, "10", spec={"priorityClassName": "high"})], "21"),
        # else each task's minimum, then whatever comes first
        (4, [task("a", 5, "1", minAvailable=1), task("b", 2, "10", minAvailable=1)], "13"),
        (7, [task("a", 5, "1", minAvailable=1), task("b", 2, "10", minAvailable=1)], "25"),
        (0, [task("a", 5, "1", minAvailable=1), task("b", 2, "10", minAvailable=1)], "11"),
        (9, [task("a", 1, "1", minAvailable=1)], "1"),
    ],
)
def test_min_resources_of_a_job(minimum, tasks, cpu):
    assert group_spec(job(*tasks, spec={"minAvailable": minimum}), high=9).min_resources["cpu"] == cpu


def test_partitions():
    policy = {"totalPartitions": 3, "partitionSize": 3, "minPartitions": 2, "networkTopology": {"mode": "soft"}}
    found = job(task(replicas=9, partitionPolicy=policy), task(name="ps", replicas=1))
    spec = group_spec(found)
    (part,) = spec.sub_group_policy
    assert (part.name, part.sub_group_size, part.min_sub_groups, part.match_label_keys) == (
        "worker", 3, 2, ("volcano.sh/partition-id",),
    )  # fmt: skip
    assert part.label_selector.match_labels == {"volcano.sh/task-spec": "worker"}
    assert part.network_topology.mode == "soft"
    assert (spec.min_member, spec.min_task_member) == (7, {"worker": 6, "ps": 1})
    labels = [each.metadata.labels.get("volcano.sh/partition-id") for each in pods_of(with_defaults(found), {})]
    assert labels == [*"000111222", None]


def test_a_job_without_a_uid_lends_its_name():
    assert list(added(job(task(), uid=""), kind="PodGroup")) == ["j"]


def test_a_group_named_like_the_job_is_used():
    existing = made("PodGroup", {"name": "j", "namespace": "ns"})
    assert not added(job(task()), existing, kind="PodGroup")
    pods = added(job(task()), existing, kind="Pod")
    assert {each.metadata.annotations[GROUP] for each in pods.values()} == {"j"}


def test_a_job_that_has_pods_or_is_done_gets_none():
    running = pod("j-worker-0", namespace="ns", annotations={"volcano.sh/job-name": "j", GROUP: "j-u"})
    assert not added(job(task()), running, kind="PodGroup")
    done = job(task(), status={"state": {"phase": "Completed"}})
    assert not added(done, kind="Pod")


def test_a_job_that_cannot_be_used_is_a_problem_of_its_own():
    additions, problems = seen(job(task(), task(), name="bad"), job(task(), name="good"))
    assert [str(each) for each in problems] == ["Job ns/bad, spec.tasks[1].name: duplicated task name worker"]
    assert [each.event.object.metadata.name for each in additions if each.event.kind == "PodGroup"] == ["good-u"]
