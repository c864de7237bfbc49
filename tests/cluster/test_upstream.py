"""PodGroups of scheduling.k8s.io as the scheduler's own, and what their conditions are to say."""

from __future__ import annotations

from typing import Any, Final

import pytest

from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import PodGroupCondition, PodGroupStatus
from stromboli.cluster.decoding.upstream import (
    REASON_SCHEDULED,
    any_group_of,
    in_queue,
    placed_anew,
    scheduled_in,
    told_upstream,
    topology_keys,
    with_theirs,
)
from stromboli.cluster.objects import from_value
from stromboli.model.job import Job, JobFacts
from stromboli.model.podgroup import PodGroup, upstream_name
from stromboli.testing.builders import Manifest

NAME: Final = upstream_name("g")
SCHEDULED: Final = "PodGroupInitiallyScheduled"
OLD, NOW = "2024-05-01T12:00:00Z", "2024-05-02T12:00:00Z"


def decoded(spec: Manifest, status: Manifest | None = None, known: Job | None = None, **metadata: Any) -> PodGroup:
    found = {"metadata": {"name": "g", "namespace": "ns", **metadata}, "spec": spec, "status": status or {}}
    group: Any = from_value("UpstreamPodGroup", found)
    return any_group_of(group, {} if known is None else {f"ns/{NAME}": known})


def said(kind: str, status: str = "True", reason: str = "", message: str = "", since: str = "") -> PodGroupCondition:
    return PodGroupCondition(kind, status, "", since, reason, message)


def gang(count: int) -> Manifest:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


def labels(*keys: str) -> Manifest:
    return {"schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({}, "spec.min_member", 1),
        (gang(3), "spec.min_member", 3),
        (gang(0), "spec.min_member", 0),
        ({}, "spec.network_topology", None),
        (labels(""), "spec.network_topology", None),
        (labels("", "rack", "zone"), "spec.network_topology",
         NetworkTopology(highest_tier_allowed=0, highest_tier_name="rack")),
        ({"priorityClassName": "high"}, "spec.priority_class_name", "high"),
        ({}, "priority", None),
        ({"priority": 7}, "priority", 7),
        ({}, "evicted_whole", False),
        ({"disruptionMode": {"all": {}}}, "evicted_whole", True),
        ({"disruptionMode": {"single": {}}}, "evicted_whole", False),
        ({"disruptionMode": "PodGroup"}, "evicted_whole", True),
        ({"disruptionMode": "Pod"}, "evicted_whole", False),
        ({}, "never_preempts", False),
        ({"preemptionPolicy": "Never"}, "never_preempts", True),
        ({"preemptionPolicy": "PreemptLowerPriority"}, "never_preempts", False),
        ({}, "uid", f"ns/{NAME}"),
        ({}, "name", NAME),
        ({}, "created", 86400),
        ({"parentCompositePodGroupName": "p"}, "parent", "p"),
    ],
)  # fmt: skip
def test_what_a_podgroup_of_kubernetes_says(spec: Manifest, field: str, value: object) -> None:
    found: Any = decoded(spec, creationTimestamp="1970-01-02T00:00:00Z")
    for name in field.split("."):
        found = getattr(found, name)
    assert found == value


def test_a_podgroup_of_kubernetes_keeps_its_uid_labels_and_annotations() -> None:
    found = decoded({}, uid="u", labels={"a": "b"}, annotations={"c": "d"})
    assert (found.uid, found.namespace, found.labels, found.annotations) == ("u", "ns", {"a": "b"}, {"c": "d"})
    assert in_queue(found, "q").spec.queue == "q"
    assert found.spec.queue == ""


def test_claims_that_the_pods_share_are_known_once_they_are_named() -> None:
    claims = [
        {"name": "a", "resourceClaimName": "x"},
        *({"name": name, "resourceClaimTemplateName": "t"} for name in "bcde"),
    ]
    made = [{"name": name, "resourceClaimName": f"made-{name}"} for name in "ace"]
    found = decoded({"resourceClaims": claims}, {"resourceClaimStatuses": made})
    assert found.claims == ("ns/x", "ns/made-c"), "the fifth is one too many"


PLACED: Final = {
    "type": SCHEDULED,
    "status": "True",
    "lastTransitionTime": OLD,
    "reason": "r",
    "message": "m",
}


@pytest.mark.parametrize(
    ("conditions", "phase"),
    [
        ([], "Pending"),
        ([PLACED], "Running"),
        ([{**PLACED, "status": "False"}], "Pending"),
        ([{"type": "Other", "status": "True"}], "Pending"),
        ([{"type": "Other", "status": "False"}, PLACED], "Running"),
        ([{**PLACED, "type": "PodGroupScheduled"}], "Running"),
    ],
)
def test_the_phase_of_a_group_that_is_not_known_follows_its_condition(conditions: list[Manifest], phase: str) -> None:
    status = decoded({}, {"conditions": conditions}).status
    assert status.phase == phase
    if PLACED in conditions:
        assert said(SCHEDULED, "True", "r", "m", OLD) in status.conditions


@pytest.mark.parametrize(("uid", "is_known"), [("u", True), ("other", False)])
def test_what_is_known_of_a_group_stays_with_what_it_says(uid: str, is_known: bool) -> None:
    ours, theirs = said("Unschedulable"), said("Other")
    known = Job(f"ns/{NAME}", JobFacts(PodGroup(uid, "ns", NAME, status=PodGroupStatus("Inqueue", (ours, theirs))), ""))
    status = decoded({}, {"conditions": [PLACED]}, known, uid="u").status
    kinds = [one.type for one in status.conditions]
    assert (status.phase, kinds) == (
        ("Inqueue", ["Unschedulable", SCHEDULED]) if is_known else ("Running", [SCHEDULED])
    )


def test_domains_are_made_of_labels_that_groups_of_kubernetes_name() -> None:
    def job(name: str, tier: str) -> Job:
        return Job(f"ns/{name}", JobFacts(PodGroup("u", "ns", name, spec=decoded(labels(tier)).spec), ""))

    jobs = [
        job(upstream_name("a"), "rack"),
        job("b", "zone"),
        job(upstream_name("c"), ""),
        job(upstream_name("d"), "rack"),
    ]
    assert topology_keys(jobs) == {"rack"}


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("scheduling.k8s.io/v1alpha2", "PodGroupScheduled"),
        ("scheduling.k8s.io/v1alpha3", SCHEDULED),
        ("scheduling.k8s.io/v1beta1", SCHEDULED),
    ],
)
def test_what_the_condition_is_called(version: str, name: str) -> None:
    assert scheduled_in(version) == name


DONE: Final = "all pods that must be placed together have been placed"
WAITS: Final = said("Unschedulable", message="no room")
WRITTEN: Final = said("S", "True", REASON_SCHEDULED, DONE, NOW)


@pytest.mark.parametrize(
    ("phase", "conditions", "written"),
    [
        ("Running", (), WRITTEN),
        ("Running", (said("S", "False", "Unschedulable", "no room", OLD),), WRITTEN),
        ("Running", (said("S", "True", "Other", "x", OLD),), None),
        ("Completed", (), WRITTEN),
        *((phase, (), None) for phase in ("", "Pending", "Inqueue")),
        ("Inqueue", (WAITS,), said("S", "False", "Unschedulable", "no room", NOW)),
        ("Pending", (said("NotAdmitted", message="full"),), said("S", "False", "Unschedulable", "full", NOW)),
        ("Inqueue", (said("NotAdmitted", message="full"), WAITS), said("S", "False", "Unschedulable", "no room", NOW)),
        ("Inqueue", (said("Unschedulable", "False", message="no room"),), None),
        ("Inqueue", (said("Other", message="no room"),), None),
        ("Inqueue", (WAITS, said("S", "False", "Unschedulable", "no room", OLD)), None),
        ("Inqueue", (WAITS, said("S", "False", "Unschedulable", "other", OLD)),
         said("S", "False", "Unschedulable", "no room", OLD)),
        ("Inqueue", (WAITS, said("S", "Unknown", "Unschedulable", "no room", OLD)),
         said("S", "False", "Unschedulable", "no room", NOW)),
        ("Inqueue", (WAITS, said("S", "True", "x", "y", OLD)), None),
    ],
)  # fmt: skip
def test_which_condition_is_written(
    phase: str, conditions: tuple[PodGroupCondition, ...], written: PodGroupCondition | None
) -> None:
    assert told_upstream(phase, conditions, NOW, "S") == written


@pytest.mark.parametrize(
    ("phase", "condition", "is_written"),
    [
        ("Running", ("DisruptionTarget", "True", "PreemptionByScheduler"), True),
        ("Running", ("DisruptionTarget", "False", "PreemptionByScheduler"), False),
        ("Running", ("DisruptionTarget", "True", "EvictionByEvictionAPI"), False),
        ("Running", ("Other", "True", "PreemptionByScheduler"), False),
        ("Inqueue", ("DisruptionTarget", "True", "PreemptionByScheduler"), False),
    ],
)
def test_a_gang_that_is_placed_again_is_no_target_any_more(
    phase: str, condition: tuple[str, str, str], is_written: bool
) -> None:
    written = placed_anew(phase, (WAITS, said(*condition)), NOW)
    wanted = said("DisruptionTarget", "False", "Scheduled", "the pods have been scheduled again", NOW)
    assert written == (wanted if is_written else None)


def test_conditions_of_a_cycle_stand_before_those_of_others() -> None:
    ours, theirs, stale = said("NotAdmitted"), said("Other"), said("Unschedulable")
    assert with_theirs((ours, said("Other", "False")), (stale, theirs)) == (ours, theirs)
