"""Small things in which people would notice that this is no kube-apiserver: each as a real one answers it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.browser import APPLY, JSON, MERGE, PODS, STRATEGIC, Browser, definition, pod

NAMESPACED = "/api/v1/namespaces/default"
JOBS, CRON_JOBS = (f"/apis/batch/v1/namespaces/default/{plural}" for plural in ("jobs", "cronjobs"))
LIMITED = "/apis/example.com/v1/namespaces/default/things"
UNREADABLE, MAP = "json: cannot unmarshal {} into Go value of type {}", "map[string]interface {}"
LIMITS = {
    "few": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    "one": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
    "short": {"type": "string", "minLength": 2, "maxLength": 3},
    "small": {"type": "integer", "minimum": 0, "maximum": 5},
    "either": {"x-kubernetes-int-or-string": True},
}


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": LIMITS}}}
    things = definition("things", "Thing", schema={"openAPIV3Schema": schema}, subresources={})
    with found.runner:
        found.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", things)
        found.post(PODS, pod("p"))
        found.post(LIMITED, {"metadata": {"name": "t"}})
        yield found


def template(**container: Any) -> dict[str, Any]:
    whole = {"name": "c", "image": "i", **container}
    return {"spec": {"restartPolicy": "Never", "containers": [whole]}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"few": []}, "spec.few: Invalid value: 0: spec.few in body should have at least 1 items"),
        ({"few": ["a"] * 3}, "spec.few: Too many: 3: must have at most 2 items"),
        ({"one": ["a"] * 2}, "spec.one: Too many: 2: must have at most 1 item"),
        ({"short": "a"}, 'spec.short: Invalid value: "a": spec.short in body should be at least 2 chars long'),
        ({"short": "aaaa"}, "spec.short: Too long: may not be more than 3 bytes"),
        ({"small": 6}, "spec.small: Invalid value: 6: spec.small in body should be less than or equal to 5"),
        ({"small": -1}, "spec.small: Invalid value: -1: spec.small in body should be greater than or equal to 0"),
        (
            {"either": True},
            'spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"',
        ),
    ],
)
def test_limits_of_a_schema_are_told_in_its_words(browser, spec, text):
    answer = browser.post(LIMITED, {"metadata": {"name": "w"}, "spec": spec})
    assert (answer.code, answer.text) == (422, f'Thing.example.com "w" is invalid: {text}')


@pytest.mark.parametrize(
    ("media", "patch", "code", "text"),
    [
        (MERGE, [], 400, f"error decoding patch: {UNREADABLE.format('array', MAP)}"),
        (STRATEGIC, "a", 400, UNREADABLE.format("string", MAP)),
        (STRATEGIC, 1, 400, UNREADABLE.format("number", MAP)),
        (JSON, {}, 400, f"error decoding patch: {UNREADABLE.format('object', '[]handlers.jsonPatchOp')}"),
        (
            JSON,
            [{"op": "test", "path": "/metadata/name", "value": "q"}],
            422,
            "the server rejected our request due to an error in our request",
        ),
    ],
)  # fmt: skip
def test_a_patch_that_is_none_is_refused_in_its_words(browser, media, patch, code, text):
    answer = browser.patch(f"{PODS}/p", patch, media)
    assert (answer.code, answer.text) == (code, text)


def test_amounts_that_are_none_are_told_as_they_are(browser):
    answer = browser.post(PODS, pod("q", container={"resources": {"requests": {"cpu": "x"}}}))
    assert answer.text.startswith('Pod in version "v1" cannot be handled as a Pod: quantities must match the regular')


def test_a_deadline_may_only_come_nearer():
    browser = Browser()
    with browser.runner:
        browser.post(PODS, pod("p"))
        texts = []
        for seconds in (-1, 0, 5, 6, 4, None):
            answer = browser.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": seconds}})
            texts.append(answer.code == 200 or answer.text.partition("is invalid: ")[2])
        refused = browser.post(PODS, pod("q", activeDeadlineSeconds=0))
    path, range_of = "spec.activeDeadlineSeconds: Invalid value:", "must be between {} and 2147483647, inclusive"
    both = f"[{path} -1: {range_of.format(0)}, {path} -1: {range_of.format(1)}]"
    assert texts == [
        both,
        f"{path} 0: {range_of.format(1)}",
        True,
        f"{path} 6: must be less than or equal to previous value",
        True,
        f"{path} null: must not update from a positive integer to nil value",
    ]
    assert refused.text == f'Pod "q" is invalid: {path} 0: {range_of.format(1)}'


def test_probes_of_a_web_page_get_their_defaults(browser):
    hooks = {"preStop": {"httpGet": {"port": 2, "path": "/bye"}}, "postStart": {"exec": {"command": ["a"]}}}
    made = browser.post(PODS, pod("w", container={"livenessProbe": {"httpGet": {"port": 1}}, "lifecycle": hooks}))
    container = made.body["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}
    assert container["lifecycle"] == {
        "preStop": {"httpGet": {"port": 2, "path": "/bye", "scheme": "HTTP"}},
        "postStart": {"exec": {"command": ["a"]}},
    }


def test_pods_request_what_they_limit_and_templates_do_not(browser):
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    made = browser.post(PODS, pod("r", container={"resources": resources})).body["spec"]["containers"][0]
    assert made["resources"] == {**resources, "requests": {"cpu": "500m", "memory": "1Gi"}}
    job = browser.post(JOBS, {"metadata": {"name": "r"}, "spec": {"template": template(resources=resources)}}).body
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"] == resources


def test_a_job_gets_a_selector_of_its_own(browser):
    made = browser.post(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template()}}).body
    uid = made["metadata"]["uid"]
    labels = {f"{prefix}controller-uid": uid for prefix in ("", "batch.kubernetes.io/")}
    labels |= {f"{prefix}job-name": "j" for prefix in ("", "batch.kubernetes.io/")}
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert (made["spec"]["template"]["metadata"]["labels"], made["metadata"]["labels"]) == (labels, labels)
    changed = browser.patch(f"{JOBS}/j", {"spec": {"suspend": True}}).body
    assert changed["spec"] == {**made["spec"], "suspend": True}


def test_a_job_keeps_the_selector_and_labels_that_it_brings(browser):
    spec = {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}
    spec["template"] = {**template(), "metadata": {"labels": {"a": "b"}}}
    made = browser.post(JOBS, {"metadata": {"name": "m", "labels": {"c": "d"}}, "spec": spec}).body
    assert made["spec"]["selector"] == {"matchLabels": {"a": "b"}}
    assert (made["spec"]["template"]["metadata"], made["metadata"]["labels"]) == ({"labels": {"a": "b"}}, {"c": "d"})


def test_the_template_of_a_cron_jobs_jobs_is_completed(browser):
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}}
    made = browser.post(CRON_JOBS, {"metadata": {"name": "c"}, "spec": spec}).body["spec"]
    whole = made["jobTemplate"]["spec"]["template"]
    assert (made["concurrencyPolicy"], whole["metadata"], whole["spec"]["dnsPolicy"]) == ("Allow", {}, "ClusterFirst")
    assert "selector" not in made["jobTemplate"]["spec"]


def owners_of(answer):
    return [
        (one["manager"], one["operation"], *(name[2:] for name in one["fieldsV1"]["f:data"]), one["time"][-3:])
        for one in answer.body["metadata"]["managedFields"]
    ]


def applying(browser, manager, **data):
    wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    return owners_of(browser.patch(f"{NAMESPACED}/configmaps/c?fieldManager={manager}", wish, APPLY))


def test_owners_of_fields_stand_in_kubernetes_order():
    browser = Browser()
    with browser.runner:
        applying(browser, "z", z="1")
        applying(browser, "a", a="1")
        told = owners_of(browser.patch(f"{NAMESPACED}/configmaps/c?fieldManager=b", {"data": {"b": "1"}}))
        assert told == [("a", "Apply", "a", "20Z"), ("z", "Apply", "z", "20Z"), ("b", "Update", "b", "20Z")]
        browser.now += 1
        applying(browser, "z", z="1")
        assert applying(browser, "a", a="2") == [
            ("z", "Apply", "z", "20Z"), ("a", "Apply", "a", "21Z"), ("b", "Update", "b", "20Z"),
        ]  # fmt: skip


def test_a_manager_that_applies_another_value_owns_it_still_by_applying():
    browser = Browser()
    with browser.runner:
        applied = [applying(browser, "me", a="1"), applying(browser, "me", a="2")]
        browser.now += 1
        applied += [applying(browser, "me", a="2"), applying(browser, "me", a="3")]
    assert applied == [[("me", "Apply", "a", time)] for time in ("20Z", "20Z", "20Z", "21Z")]


def test_a_status_that_a_kind_does_not_have_is_not_found_by_its_name(browser):
    assert browser.get(f"{LIMITED}/t/status").text == 'things.example.com "t" not found'
    assert browser.get(f"{NAMESPACED}/configmaps/t/status").text == "the server could not find the requested resource"


def test_namespaces_are_not_deleted_all_at_once(browser):
    assert browser.delete("/api/v1/namespaces").code == 405
    core = {one["name"]: one["verbs"] for one in browser.get("/api/v1").body["resources"]}
    assert ("deletecollection" in core["namespaces"], "deletecollection" in core["pods"]) == (False, True)


def test_health_is_told_in_detail_on_request(browser):
    assert browser.get("/readyz?verbose").content == b"[+]ping ok\nreadyz check passed\n"
    assert browser.get("/livez").content == b"ok"


def test_a_job_may_be_applied_again_as_it_was_written(browser):
    """What is merged into a list replaces it, and so leaves out what was filled in: that is no change of the job."""
    jobs, queues = (
        "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
    )
    tasks = [{"replicas": 2, "template": template()}]
    browser.post(queues, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    browser.patch(f"{queues}/default/status", {"status": {"state": "Open"}})
    made = browser.post(jobs, {"metadata": {"name": "j"}, "spec": {"tasks": tasks}}).body["spec"]
    assert browser.patch(f"{jobs}/j", {"spec": {"tasks": tasks}}).body["spec"] == made
    other = browser.patch(f"{jobs}/j", {"spec": {"tasks": [{**tasks[0], "maxRetry": 5}]}})
    assert (other.code, "may not change fields" in other.text) == (400, True)
