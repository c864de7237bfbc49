"""PodGroups, CompositePodGroups and Workloads of scheduling.k8s.io are served, and refused in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.browser import MERGE, TABLE, Browser

Json = dict[str, Any]
BETA = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GROUPS = f"{BETA}/podgroups"
WORKLOADS = f"{BETA}/workloads"
COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
REFERENCE = {"workloadName": "w", "templateName": "t"}


@pytest.fixture
def browser() -> Any:
    found = Browser()
    yield found
    found.runner.close()


def named(spec: Json, name: str = "g") -> Json:
    return {"metadata": {"name": name}, "spec": spec}


def gang(least: int = 2, **more: Any) -> Json:
    return {"schedulingPolicy": {"gang": {"minCount": least}}, **more}


def claims(*named: str, count: int = 1) -> list[Json]:
    return [{"name": f"c{number}", **dict.fromkeys(named, "x")} for number in range(count)]


ONE = "must specify one of"
CHOICE = "`resourceClaimName`, `resourceClaimTemplateName`"
NAMED = "resourceClaimName, resourceClaimTemplateName"
EXACTLY = "must specify exactly one of"
WRONG: dict[str, tuple[Json, str]] = {
    "no policy": (
        {"schedulingPolicy": {}},
        f'spec.schedulingPolicy: Invalid value: "": {ONE}: `basic`, `gang`',
    ),
    "two policies": (
        {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
        f'spec.schedulingPolicy: Invalid value: "{{basic, gang}}": {EXACTLY}: `basic`, `gang`',
    ),
    "no pods": (gang(0), "spec.schedulingPolicy.gang.minCount: Required value"),
    "fewer than no pods": (
        gang(-1),
        "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
    ),
    "two topologies": (
        gang(schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}),
        "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
    ),
    "no claim": (
        gang(resourceClaims=claims()),
        f'spec.resourceClaims[0]: Invalid value: "": {ONE}: {CHOICE}',
    ),
    "both claims": (
        gang(resourceClaims=claims("resourceClaimName", "resourceClaimTemplateName")),
        f'spec.resourceClaims[0]: Invalid value: "{{{NAMED}}}": {EXACTLY}: {CHOICE}',
    ),
    "five claims": (
        gang(resourceClaims=claims("resourceClaimName", count=5)),
        "spec.resourceClaims: Too many: 5: must have at most 4 items",
    ),
    "a claim twice": (
        gang(resourceClaims=claims("resourceClaimName") * 2),
        'spec.resourceClaims[1]: Duplicate value: "c0"',
    ),
    "no mode": (
        gang(disruptionMode={}),
        f'spec.disruptionMode: Invalid value: "": {ONE}: `single`, `all`',
    ),
    "a parent without a workload": (
        gang(parentCompositePodGroupName="p"),
        "spec.workloadRef: Required value: must be set when parentCompositePodGroupName is set",
    ),
}


@pytest.mark.parametrize("row", WRONG)
def test_what_is_no_group_is_refused(browser: Browser, row: str) -> None:
    spec, text = WRONG[row]
    answer = browser.post(GROUPS, named(spec))
    assert (answer.code, answer.text) == (422, f'PodGroup.scheduling.k8s.io "g" is invalid: {text}')


def nested(depth: int) -> Json:
    inner: Json = {"podGroupTemplates": [{"name": "t", **GANG}]}
    for number in range(depth):
        policy = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
        inner = {"compositePodGroupTemplates": [{"name": f"c{number}", **policy, **inner}]}
    return inner


def leaves(*names: str, **more: Any) -> Json:
    return {"podGroupTemplates": [{"name": name, **GANG, **more} for name in names]}


def below(spec: Json, **more: Any) -> Json:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    return {"compositePodGroupTemplates": [{"name": "c", **policy, **spec, **more}]}


COMPOSITE = "spec.compositePodGroupTemplates[0]"
DEEP = f'{COMPOSITE}: Invalid value: "array": maximum template hierarchy depth is 4'
PRIORITIES = "detected multiple priority configurations"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"podGroupTemplates": [{"name": "t", **GANG}]}, ""),
        (nested(3), ""),
        (nested(4), DEEP),
        (nested(5), DEEP),
        (nested(40), DEEP),
        ({}, f"{ONE}: `podGroupTemplates`, `compositePodGroupTemplates`"),
        (
            {"podGroupTemplates": [{"name": f"t{number}", **GANG} for number in range(9)]},
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
        ),
        (
            {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {}}]},
            f'spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "": {ONE}: `basic`, `gang`',
        ),
        (leaves("a", "b"), ""),
        (leaves("a", ""), "spec.podGroupTemplates[1].name: Required value"),
        (leaves("A"), 'spec.podGroupTemplates[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist'),
        (leaves("a", "a"), 'spec.podGroupTemplates[1]: Duplicate value: "a"'),
        (below(leaves("c")), f'{COMPOSITE}.podGroupTemplates[0].name: Duplicate value: "c"'),
        (below(below(leaves("a"))), f'{COMPOSITE}.compositePodGroupTemplates[0].name: Duplicate value: "c"'),
        (below({}), f'{COMPOSITE}: Invalid value: "c": must have at least one child PodGroupTemplate or Composite'),
        (leaves("a", "b", priority=1), ""),
        (below(leaves("a", priority=1)), PRIORITIES),
        (below(leaves("a", "b"), priorityClassName="x"), PRIORITIES),
        (below(leaves("a", priorityClassName="x"), priorityClassName="x"), ""),
    ],
)
def test_workloads(browser: Browser, spec: Json, text: str) -> None:
    answer = browser.post(WORKLOADS, named(spec))
    assert (answer.code, text in answer.body.get("message", "")) == (422 if text else 201, True)


def test_a_group_of_groups_belongs_to_a_workload(browser: Browser) -> None:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    answer = browser.post(COMPOSITES, named(policy))
    assert answer.text.endswith("spec.workloadRef: Required value")
    assert browser.post(COMPOSITES, named({**policy, "workloadRef": REFERENCE})).code == 201


def test_what_is_left_out_is_filled_in(browser: Browser) -> None:
    browser.post(CLASSES, {"metadata": {"name": "high"}, "value": 7})
    made = browser.post(GROUPS, named({**GANG, "priorityClassName": "high"})).body
    assert made["spec"] == {
        **GANG, "disruptionMode": {"single": {}}, "priorityClassName": "high", "priority": 7,
        "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip
    answer = browser.post(GROUPS, named(gang(priority=5), "other"))
    told = "priority set in the pod group (5) must match the priority computed (0) based on the priority class set"
    assert answer.text == f'podgroups.scheduling.k8s.io "other" is forbidden: {told} in the spec'


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"priority": 3}, "priority"),
        ({"disruptionMode": {"single": None, "all": {}}}, "disruptionMode"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}]}}, "schedulingConstraints"),
        ({"schedulingPolicy": {"gang": None, "basic": {}}}, "schedulingPolicy.basic"),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, ""),
    ],
)
def test_all_but_the_count_stays(browser: Browser, change: Json, field: str) -> None:
    browser.post(GROUPS, named(GANG))
    answer = browser.patch(f"{GROUPS}/g", {"spec": change}, media=MERGE)
    assert (answer.code, field in answer.body.get("message", "")) == (422 if field else 200, True)


def test_how_a_group_stands_is_shown(browser: Browser) -> None:
    browser.post(GROUPS, named({**GANG, "workloadRef": REFERENCE}))
    assert row(browser)[:4] == ["g", "Gang", "w", "Pending"]
    for kind, status, shown in (
        ("PodGroupInitiallyScheduled", "False", "Unschedulable"),
        ("PodGroupInitiallyScheduled", "True", "Scheduled"),
        ("DisruptionTarget", "True", "Told"),
        ("DisruptionTarget", "False", "Pending"),
    ):
        one = {"type": kind, "status": status, "reason": "Told", "message": ""}
        told = {"status": {"conditions": [{**one, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        assert browser.patch(f"{GROUPS}/g/status", told, media=MERGE).code == 200
        assert row(browser)[3] == shown


def test_a_group_names_only_claims_that_it_has(browser: Browser) -> None:
    browser.post(GROUPS, named(gang(resourceClaims=claims("resourceClaimTemplateName"))))
    answers = [
        browser.patch(
            f"{GROUPS}/g/status",
            {"status": {"resourceClaimStatuses": [{"name": name, "resourceClaimName": "x"}]}},
            media=MERGE,
        )
        for name in ("c0", "c1")
    ]
    assert [one.code for one in answers] == [200, 422]
    told = 'Invalid value: "c1": must match the name of an entry in `spec.resourceClaims`'
    assert answers[1].text.endswith(f"status.resourceClaimStatuses[0].name: {told}")


def test_drivers_tell_of_allocated_devices_and_what_they_told_goes_with_these(browser: Browser) -> None:
    url = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    assert browser.post(url, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}).code == 201

    def device(name: str) -> Json:
        return {"driver": "d.example.com", "pool": "p", "device": name}

    def told(*allocated: str, of: tuple[str, ...] = ()) -> Any:
        results = [{"request": "r", **device(name)} for name in allocated]
        allocation = {"allocation": {"devices": {"results": results}} if allocated else None}
        status = {**allocation, "devices": [device(name) for name in of]}
        return browser.patch(f"{url}/c/status", {"status": status}, media=MERGE)

    refused = told("a", of=("a", "b"))
    assert (refused.code, refused.text.partition(": ")[2]) == (
        422, 'status.devices[1]: Invalid value: "d.example.com/p/b": must be an allocated device in the claim',
    )  # fmt: skip
    assert told(of=("a",)).code == 422
    assert told("a", "b", of=("a", "b")).code == 200
    kept = told("a", of=("a", "b"))
    assert (kept.code, kept.body["status"]["devices"]) == (200, [device("a")])
    assert "devices" not in told(of=("a",)).body["status"], "those that were given back with this write"


def row(browser: Browser) -> list[Any]:
    [found] = browser.get(GROUPS, accept=TABLE).body["rows"]
    cells: list[Any] = found["cells"]
    return cells


def test_a_name_that_both_have_means_volcano_s(browser: Browser) -> None:
    groups = [one["name"] for one in browser.get("/apis").body["groups"]]
    assert groups.index("scheduling.volcano.sh") < groups.index("scheduling.k8s.io")
