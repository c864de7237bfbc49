"""From objects to the values that scheduling works with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.decoding import templates
from stromboli.cluster.decoding.annotations import read_bool, read_int
from stromboli.cluster.decoding.decode import (
    disruption_budget_of,
    job_facts,
    located,
    node_of,
    offer_of,
    podgroup_of,
    priority_class_of,
    queue_of,
    quota_of,
    task_of,
)
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.errors import ManifestError
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import Job
from stromboli.model.objects.storage import Mount
from stromboli.model.podgroup import upstream_name
from stromboli.model.resources.axes import Axes
from stromboli.model.spec import LabelSelector
from stromboli.model.status import TaskStatus
from stromboli.model.task import Condition
from stromboli.model.values.times import seconds
from tests.cluster.objects import made, pod

GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture
def store():
    return TemplateStore(Axes())


def task(store, **options):
    return task_of(pod(**options), store)


# -- Tasks -----------------------------------------------------------------------------------------------------------


def test_pods_of_a_job_have_equal_values_once(store):
    labels = {"team": "blue", "app": "sim"}
    job = Job("ns/j")
    for name, notes in (("a", {GROUP: "a job"}), ("b", {GROUP: "a job"}), ("c", {GROUP: "a job", "x": "y"})):
        job.add(task(store, name=name, namespace="ns", uid=name, labels=dict(labels), annotations=notes))
    a, b, c = job.tasks.values()
    assert a.labels is b.labels is c.labels
    assert (a.annotations is b.annotations, c.annotations) == (True, {GROUP: "a job", "x": "y"})
    assert c.annotations[GROUP] is a.annotations[GROUP]
    assert a.namespace is b.namespace
    assert a.job is b.job is c.job
    assert [each.name for each in (a, b, c)] == ["a", "b", "c"]


def test_identity(store):
    found = task(
        store,
        name="job-worker-7",
        namespace="ns",
        uid="u1",
        creationTimestamp="2024-05-01T12:00:00Z",
        annotations={GROUP: "job"},
        ownerReferences=[{"kind": "Job", "name": "job", "uid": "j", "controller": True}],
        spec={"schedulerName": "volcano", "schedulingGates": [{"name": "g1"}, {"name": "g2"}]},
    )
    assert (found.uid, found.namespace, found.name, found.key) == ("u1", "ns", "job-worker-7", "ns/job-worker-7")
    assert (found.job, found.index, found.created, found.owner) == ("ns/job", 7, 1714564800, "job")
    assert (found.scheduler, found.gates) == ("volcano", ("g1", "g2"))


def test_a_pod_that_says_little_stands_in_the_default_namespace_and_is_its_own_uid(store):
    found = task(store, name="p")
    assert (found.uid, found.key, found.job, found.created, found.index) == ("default/p", "default/p", "", 0, -1)
    assert (found.priority, found.role, found.gates, found.owner, found.condition) == (1, "", (), "", None)


def test_an_empty_group_annotation_means_no_job(store):
    assert task(store, annotations={GROUP: ""}).job == ""


@pytest.mark.parametrize(
    ("phase", "deleting", "node", "status"),
    [
        ("Pending", False, "", TaskStatus.Pending),
        ("Pending", False, "n", TaskStatus.Bound),
        ("Pending", True, "", TaskStatus.Releasing),
        ("Running", False, "n", TaskStatus.Running),
        ("Running", True, "n", TaskStatus.Releasing),
        ("Succeeded", True, "n", TaskStatus.Succeeded),
        ("Failed", False, "n", TaskStatus.Failed),
        ("", False, "", TaskStatus.Unknown),
        ("Odd", False, "n", TaskStatus.Unknown),
    ],
)
def test_status(store, phase, deleting, node, status):
    times = {"deletionTimestamp": "2024-05-01T12:00:00Z"} if deleting else {}
    found = task(store, spec={"nodeName": node}, status={"phase": phase}, **times)
    assert (found.status, found.node_name, found.phase) == (status, node, phase)


@pytest.mark.parametrize(
    ("annotations", "labels", "role"),
    [
        ({}, {}, ""),
        ({"volcano.sh/task-spec": "a"}, {"volcano.sh/task-spec": "l"}, "a"),
        ({}, {"volcano.sh/task-spec": "l"}, "l"),
        ({"volcano.sh/task-spec": ""}, {"volcano.sh/task-spec": "l"}, ""),
    ],
)
def test_role(store, annotations, labels, role):
    assert task(store, annotations=annotations, labels=labels).role == role


@pytest.mark.parametrize(
    ("stated", "annotation", "priority"),
    [
        (None, None, 1),
        (0, None, 0),
        (50, None, 50),
        (50, "7", 7),
        (None, "-7", -7),
        (50, "+7", 7),
        (50, "seven", 50),
        (50, "", 50),
        (50, "2147483648", 50),
        (50, "-2147483648", -(2**31)),
        (50, "7.0", 50),
    ],
)
def test_priority(store, stated, annotation, priority):
    annotations = {} if annotation is None else {"volcano.sh/task-priority": annotation}
    assert task(store, spec={"priority": stated}, annotations=annotations).priority == priority


PREEMPTABLE, ZONE = "volcano.sh/preemptable", "volcano.sh/revocable-zone"


@pytest.mark.parametrize(
    ("annotations", "labels", "preemptable", "zone"),
    [
        ({}, {}, True, ""),
        ({PREEMPTABLE: "true"}, {}, True, "*"),
        ({PREEMPTABLE: "1"}, {PREEMPTABLE: "false"}, True, "*"),
        ({PREEMPTABLE: "false"}, {PREEMPTABLE: "true"}, False, ""),
        ({PREEMPTABLE: "yes"}, {}, False, ""),
        ({}, {PREEMPTABLE: "true"}, True, ""),
        ({}, {PREEMPTABLE: "F"}, False, ""),
        ({ZONE: "*"}, {}, True, "*"),
        ({ZONE: "rack1", PREEMPTABLE: "true"}, {}, True, ""),
        ({ZONE: "*", PREEMPTABLE: "false"}, {}, False, "*"),
    ],
)
def test_preemptable_and_revocable_zone(store, annotations, labels, preemptable, zone):
    found = task(store, annotations=annotations, labels=labels)
    assert (found.preemptable, found.revocable_zone) == (preemptable, zone)


def test_the_last_known_condition_and_nomination(store):
    conditions = [
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
    ]
    status = {"conditions": conditions, "nominatedNodeName": "n1", "startTime": "1970-01-01T00:01:00Z"}
    found = task(store, status=status)
    assert found.condition == Condition("False", "Unschedulable", "no room")
    assert (found.nominated_node, found.start_time) == ("n1", 60)


HELD = {"volcano.sh/pipelined-status": "true", "volcano.sh/pipelined-node": "n1"}


@pytest.mark.parametrize(("reserving", "status"), [((), "Pending"), ((False,), "Pending"), ((True,), "Pipelined")])
def test_a_reservation_is_taken_up_where_it_is_asked_for(store, reserving, status):
    assert task_of(pod(annotations=HELD), store, *reserving).status.name == status


PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


@pytest.mark.parametrize(
    ("conditions", "preempted"),
    [
        ([], False),
        ([PREEMPTED], True),
        ([{"type": "Ready", "status": "True"}, PREEMPTED], True),
        ([{**PREEMPTED, "status": "False"}], False),
        ([{**PREEMPTED, "reason": "EvictionByEvictionAPI"}], False),
        ([{**PREEMPTED, "type": "Ready"}], False),
    ],
)
def test_a_pod_is_preempted_as_its_condition_says(store, conditions, preempted):
    assert task(store, status={"conditions": conditions}).preempted is preempted


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        ({"cpu": 2**54}, "is too large: the most is 2^56 thousandths"),
        ({"memory": 2**57}, "is too large: the most is 2^56 bytes"),
        ({"example.com/gpu": 2**54}, "is too large: the most is 2^56 thousandths"),
        ({"cpu": "-1"}, "'-1' is negative"),
        ({"cpu": "one"}, "'one'"),
    ],
)
def test_amounts_out_of_bounds_are_named_with_their_unit(store, requests, problem):
    with pytest.raises(ManifestError) as caught:
        task(store, requests=requests)
    assert problem in caught.value.message


def test_go_reads_truths_in_twelve_ways():
    for text in ("1", "t", "T", "TRUE", "true", "True"):
        assert read_bool(text) is True
    for text in ("0", "f", "F", "FALSE", "false", "False"):
        assert read_bool(text) is False
    for text in ("", "yes", "tRUE", " true"):
        assert read_bool(text) is None


@given(st.integers(-(2**40), 2**40))
def test_numbers_of_32_bits(number):
    assert read_int(str(number), 32) == (number if -(2**31) <= number < 2**31 else None)


# -- Templates -------------------------------------------------------------------------------------------------------


def test_pods_with_equal_specs_share_a_template_wherever_they_run(store):
    first = task(store, name="a", requests={"cpu": "500m"})
    second = task(store, name="b", requests={"cpu": "500m"}, spec={"nodeName": "n"})
    other = task(store, name="c", requests={"cpu": "501m"})
    assert first.template is second.template
    assert first.template is not other.template
    assert [first.template.number, other.template.number, len(store)] == [0, 1, 2]
    assert second.spec.node_name == ""


def test_a_template_knows_request_vector_and_what_scores_count(store):
    found = task(store, requests={"cpu": "1500m", "memory": "1Gi", "example.com/gpu": 2}).template
    assert (found.vector, store.axes.names[3]) == ((1500, 2**30, 1, 2000), "unoffered")
    assert found.nonzero == (1500, 2**30)
    assert not found.best_effort
    nothing = task(store).template
    assert (nothing.vector, nothing.nonzero, nothing.best_effort) == ((0, 0, 1, 0), (100, 200 * 2**20), True)


def test_ignored_scalars_are_left_out():
    store = TemplateStore(Axes(), ignored=("example.com/gpu",))
    assert task(store, requests={"cpu": 1, "example.com/gpu": 2}).template.vector == (1000, 0, 1)


def resizing(requests, in_force, set_aside, *conditions):
    status = {"name": "c", "resources": {"requests": in_force}, "allocatedResources": set_aside}
    return {"requests": requests, "status": {"containerStatuses": [status], "conditions": list(conditions)}}


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "node too small"}


@pytest.mark.parametrize(
    ("options", "cpu"),
    [
        (resizing({"cpu": "1"}, {"cpu": "1"}, {"cpu": "1"}), 1000),
        (resizing({"cpu": "1"}, {"cpu": "2"}, {"cpu": "2"}), 2000),
        (resizing({"cpu": "1"}, {"cpu": "1"}, {"cpu": "3"}), 3000),
        (resizing({"cpu": "4"}, {"cpu": "1"}, {"cpu": "1"}), 4000),
        (resizing({"cpu": "4"}, {"cpu": "1"}, {"cpu": "1"}, INFEASIBLE), 1000),
    ],
)
def test_a_resize_in_place_counts_the_largest_amount(store, options, cpu):
    assert task(store, **options).template.vector[0] == cpu


def test_the_ordinary_state_of_a_running_pod_makes_no_template_of_its_own(store):
    plain = task(store, requests={"cpu": "1"}).template
    assert task(store, **resizing({"cpu": "1"}, {"cpu": "1"}, {"cpu": "1"})).template is plain
    assert task(store, **resizing({"cpu": "1"}, {"cpu": "1"}, {})).template is plain


def test_a_wrong_amount_of_the_kubelet_is_named(store):
    with pytest.raises(ManifestError) as caught:
        task(store, **resizing({"cpu": "1"}, {"cpu": "x"}, {}))
    assert caught.value.path == "status.containerStatuses"
    assert caught.value.object == "Pod default/x"


# -- Nodes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "annotations", "offer"),
    [
        ({}, {}, (4000, 2**30)),
        ({"volcano.sh/oversubscription": "true"}, {"volcano.sh/oversubscription-cpu": "500"}, (4500, 2**30)),
        (
            {"volcano.sh/oversubscription": "false"},
            {"volcano.sh/oversubscription-memory": "1024"},
            (4000, 2**30 + 1024),
        ),
        ({}, {"volcano.sh/oversubscription-cpu": "lots", "volcano.sh/oversubscription-memory": "1Gi"}, (4000, 2**30)),
    ],
)
def test_oversubscription_counts_whatever_the_label_says(labels, annotations, offer):
    status = {"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "10", "storage": "1Ti"}}
    node = node_of(made("Node", {"labels": labels, "annotations": annotations}, status=status))
    found = offer_of(node)
    assert (found.milli_cpu, found.memory, found.max_task_num) == (*offer, 10)
    assert found.scalars == {"pods": 10}
    assert node.allocatable == status["allocatable"]


def test_what_a_node_says_of_itself():
    node = node_of(
        made(
            "Node",
            {"name": "n", "labels": {"a": "b"}},
            spec={"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
            status={"capacity": {"cpu": "4"}, "images": [{"names": ["i:1"], "sizeBytes": 7}]},
        )
    )
    assert (node.name, node.labels, node.unschedulable, node.capacity) == ("n", {"a": "b"}, True, {"cpu": "4"})
    assert [(taint.key, taint.effect) for taint in node.taints] == [("k", "NoSchedule")]
    assert [(image.names, image.size_bytes) for image in node.images] == [(("i:1",), 7)]


# -- PodGroups, queues and the rest ----------------------------------------------------------------------------------


def group(spec=None, **metadata):
    return podgroup_of(made("PodGroup", {"name": "g", **metadata}, spec=spec or {}, status={"phase": "Inqueue"}))


def test_a_podgroup():
    found = group({"minMember": 3, "queue": "q"}, uid="u", creationTimestamp="1970-01-02T00:00:00Z")
    assert (found.uid, found.key, found.created, found.status.phase) == ("u", "default/g", 86400, "Inqueue")
    assert group().uid == "default/g"


def test_what_a_podgroup_says_of_its_job():
    axes = Axes()
    spec = {"minMember": 3, "minTaskMember": {"ps": 1}, "minResources": {"cpu": "2", "example.com/gpu": 1}}
    facts = job_facts(group(spec), "main", axes)
    assert (facts.queue, facts.min_available, facts.task_min, facts.priority) == ("main", 3, {"ps": 1}, 0)
    assert facts.min_vector == (2000, 0, 0, 1000)
    assert (facts.preemptable, facts.revocable_zone, facts.budget, facts.waiting_time) == (False, "", ("", ""), None)
    assert job_facts(group({"queue": "q"}), "main", axes).queue == "q"
    assert job_facts(group(), "main", axes).min_resources is None


@pytest.mark.parametrize(
    ("annotations", "waiting"),
    [
        ({"volcano.sh/sla-waiting-time": "1h"}, 3600),
        ({"sla-waiting-time": "90s"}, 90),
        ({"volcano.sh/sla-waiting-time": "1h", "sla-waiting-time": "90s"}, 3600),
        ({"volcano.sh/sla-waiting-time": "soon", "sla-waiting-time": "90s"}, 90),
        ({"volcano.sh/sla-waiting-time": "-1h", "sla-waiting-time": "90s"}, 90),
        ({"volcano.sh/sla-waiting-time": "500ms"}, 0.5),
        ({"volcano.sh/sla-waiting-time": "0"}, None),
        ({"volcano.sh/sla-waiting-time": "soon"}, None),
    ],
)
def test_waiting_time(annotations, waiting):
    assert job_facts(group(annotations=annotations), "", Axes()).waiting_time == waiting


@pytest.mark.parametrize(
    ("annotations", "budget"),
    [
        ({"volcano.sh/jdb-min-available": "50%"}, ("50%", "")),
        ({"volcano.sh/jdb-max-unavailable": "2"}, ("", "2")),
        ({"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "2"}, ("1", "")),
    ],
)
def test_budget(annotations, budget):
    assert job_facts(group(annotations=annotations), "", Axes()).budget == budget


def test_jobs_are_not_preemptable_unless_they_say_so():
    facts = job_facts(group(annotations={PREEMPTABLE: "true"}), "", Axes())
    assert (facts.preemptable, facts.revocable_zone) == (True, "*")
    assert job_facts(group(labels={PREEMPTABLE: "t"}), "", Axes()).preemptable


def test_queue_class_and_quota():
    queue = queue_of(made("Queue", {"name": "q", "annotations": {"a": "b"}}, spec={"weight": 2, "reclaimable": False}))
    assert (queue.name, queue.spec.weight, queue.reclaimable, queue.annotations) == ("q", 2, False, {"a": "b"})
    assert queue_of(made("Queue", spec=None)).reclaimable
    found = priority_class_of(made("PriorityClass", {"name": "high"}, value=-5, globalDefault=True))
    assert (found.name, found.value, found.global_default) == ("high", -5, True)
    status = {"hard": {"pods": 5}, "used": {"pods": "1"}}
    quota = quota_of(made("ResourceQuota", {"name": "r", "namespace": "ns"}, status=status))
    assert (quota.namespace, quota.name, quota.hard, quota.used) == ("ns", "r", {"pods": 5}, {"pods": "1"})


# -- Times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "since"),
    [
        (None, 0),
        ("", 0),
        ("0001-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59Z", -1),
        ("2024-02-29T23:59:59Z", 1709251199),
        ("2024-02-29T23:59:59.999999999Z", 1709251199),
        ("2024-03-01T01:59:59+02:00", 1709251199),
        ("2024-02-29t18:29:59-05:30", 1709251199),
        ("9999-12-31T23:59:59Z", 253402300799),
    ],
)
def test_times(text, since):
    assert seconds(text, "x") == since


@pytest.mark.parametrize(
    "text", ["2024-02-30T00:00:00Z", "2024-01-01 00:00:00Z", "٢٠٢٤-01-01T00:00:00Z", "2024-1-1T0:0:0Z"]
)
def test_what_is_no_time(text):
    with pytest.raises(ManifestError, match="is not a time") as caught:
        seconds(text, "metadata.creationTimestamp")
    assert caught.value.path == "metadata.creationTimestamp"


def test_templates_without_use_are_let_go_once_there_are_more_than_a_few(monkeypatch):
    monkeypatch.setattr(templates, "FEW", 4)
    store = TemplateStore(Axes())
    made = [task(store, spec={"nodeSelector": {"only": f"for-{number}"}}).template for number in range(5)]
    few = TemplateStore(Axes())
    kept = [task(few, spec={"nodeSelector": {"only": f"for-{number}"}}).template for number in range(4)]
    few.tidy([])
    assert few.all() == kept
    store.tidy(made[1:4])
    assert store.all() == made[1:4]
    again = task(store, spec={"nodeSelector": {"only": "for-0"}}).template
    assert again.number == 5, "no number is used twice"
    more = [task(store, spec={"nodeSelector": {"only": f"for-{number}"}}).template for number in (4, 6)]
    store.tidy([])
    assert store.all() == [*made[1:4], again, *more], "twice as many as were kept the last time are no more than a few"
    task(store, spec={"nodeSelector": {"only": "for-7"}})
    store.tidy([])
    assert store.all() == []


def test_claims_are_named_once_each_and_in_order(store):
    names = [*"fbdace", "b"]
    spec = {"resourceClaims": [{"name": f"r{place}", "resourceClaimName": name} for place, name in enumerate(names)]}
    assert task(store, namespace="ns", spec=spec).claims == tuple(f"ns/{name}" for name in "abcdef")


MADE_FROM = {"name": "r", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("claims", "made", "names", "lacks"),
    [
        ([], [], (), False),
        ([{"name": "r", "resourceClaimName": "c"}], [], ("ns/c",), False),
        ([MADE_FROM], [], (), True),
        ([MADE_FROM], [{"name": "r", "resourceClaimName": "c-1"}], ("ns/c-1",), False),
        ([MADE_FROM], [{"name": "r"}], (), False),
        ([MADE_FROM], [{"name": "s", "resourceClaimName": "c-1"}], (), True),
        ([{"name": "s", "resourceClaimName": "c"}, MADE_FROM], [], ("ns/c",), True),
        ([{"name": "r", "resourceClaimName": "c"}], [{"name": "r", "resourceClaimName": "d"}], ("ns/c",), False),
    ],
)
def test_claims_made_from_templates_are_known_once_the_status_names_them(store, claims, made, names, lacks):
    found = task(store, namespace="ns", spec={"resourceClaims": claims}, status={"resourceClaimStatuses": made})
    assert (found.claims, found.lacks_claims) == (names, lacks)


@pytest.mark.parametrize(("uid", "owner"), [("u", "u"), ("", "ns/p")])
def test_claims_of_volumes_and_those_made_for_the_pod(store, uid, owner):
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "emptyDir": {}},
        {"name": "d", "ephemeral": {}},
    ]
    found = task(store, name="p", namespace="ns", uid=uid, spec={"volumes": volumes})
    assert found.volumes == (Mount("ns/c"), Mount("ns/p-d", owner))


@pytest.mark.parametrize(
    ("owners", "first", "controller"),
    [
        ([], "", ""),
        ([("Job", "j", True)], "j", "Job/j"),
        ([("Job", "j", False)], "j", ""),
        ([("Job", "j", False), ("ReplicaSet", "web-1", True)], "j", "ReplicaSet/web-1"),
    ],
)
def test_owners_of_a_pod(store, owners, first, controller):
    references = [{"kind": kind, "name": name, "uid": "o", "controller": is_it} for kind, name, is_it in owners]
    found = task(store, ownerReferences=references)
    assert (found.owner, found.controller) == (first, controller)


def test_a_pod_names_its_group_by_annotation_or_by_the_field_of_kubernetes(store):
    field = {"schedulingGroup": {"podGroupName": "g"}}
    assert task(store, namespace="ns", spec=field).job == f"ns/{upstream_name('g')}"
    assert task(store, namespace="ns", spec=field, annotations={GROUP: "a"}).job == "ns/a"


@pytest.mark.parametrize(("stated", "grace"), [(None, 30), (0, 0), (90, 90)])
def test_how_long_a_pod_may_take_to_end(store, stated, grace):
    assert task(store, spec={"terminationGracePeriodSeconds": stated}).grace == grace


def test_what_a_budget_allows():
    status = {"disruptionsAllowed": 2, "disruptedPods": {"b": "2024-05-01T12:00:00Z"}}
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    found = disruption_budget_of(
        made("PodDisruptionBudget", {"name": "x", "namespace": "ns"}, spec=spec, status=status)
    )
    assert found == DisruptionBudget("ns", "x", LabelSelector({"app": "a"}), 2, ("b",))


def test_places_of_an_error_are_filled_in_where_they_are_not_known():
    error = ManifestError("is wrong", path="spec")
    there = located(error, file="a.yaml", document=2, title="Pod ns/p")
    again = located(there, file="b.yaml", document=3, title="Pod ns/q")
    for found in (there, again):
        known = found.problem, found.file, found.document, found.object, found.path
        assert known == ("is wrong", "a.yaml", 2, "Pod ns/p", "spec")
