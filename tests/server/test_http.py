"""The API server request by request, without a socket."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.browser import (
    APPLY,
    CONFIGS,
    JSON,
    MERGE,
    PODS,
    STRATEGIC,
    TABLE,
    Browser,
    config,
    definition,
    pod,
)

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def test_strangers_are_told_nothing_but_health_and_version(browser):
    assert browser("GET", PODS, token="guess").body["message"] == "Unauthorized"
    urls = ("/healthz", "/readyz", "/livez", "/version", PODS, "/apis")
    assert [browser("GET", url, token="guess").code for url in urls] == [
        200, 200, 200, 200, 401, 401,
    ]  # fmt: skip


def test_a_new_pod_has_what_kubernetes_fills_in(browser):
    made = browser.post(PODS, pod("a", container={"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}))
    assert made.code == 201
    spec, status = made.body["spec"], made.body["status"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert (spec["restartPolicy"], spec["priority"], len(spec["tolerations"])) == ("Always", 0, 2)
    assert status == {"phase": "Pending", "qosClass": "Guaranteed"}


def test_names_are_taken_once_and_generated_where_wished(browser):
    browser.post(CONFIGS, config("one"))
    assert browser.post(CONFIGS, config("one")).text == 'configmaps "one" already exists'
    made = browser.post(CONFIGS, {"metadata": {"generateName": "many-"}}).body["metadata"]["name"]
    assert made.startswith("many-")
    assert len(made) == 10
    assert len(browser.post(PODS, pod("", metadata={"generateName": "g" * 90})).body["metadata"]["name"]) == 63


def test_a_change_is_held_against_the_same_rules(browser):
    browser.post(CONFIGS, config("c"))
    patched = browser.patch(f"{CONFIGS}/c", {"metadata": {"annotations": {"a": "x" * 262_144}}})
    assert (patched.code, browser.get(f"{CONFIGS}/c").body["metadata"].get("annotations")) == (422, None)


WRONG_DELETIONS: list[tuple[str, Any, str]] = [
    ("gracePeriodSeconds=soon", None, "soon"),
    ("", {"gracePeriodSeconds": "soon"}, "gracePeriodSeconds"),
    ("", {"preconditions": []}, "preconditions"),
    ("", {"preconditions": {"uid": 3}}, "uid"),
    ("", {"propagationPolicy": "Backward"}, "Backward"),
    ("propagationPolicy=Backward", None, "Backward"),
]


@pytest.mark.parametrize(("query", "body", "text"), WRONG_DELETIONS)
def test_a_deletion_that_cannot_be_read_deletes_nothing(browser, query, body, text):
    browser.post(PODS, pod("a"))
    answers = [browser.delete(f"{PODS}/a?{query}", body), browser.delete(f"{PODS}?{query}", body)]
    if body is not None:
        answers.append(browser.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}, "deleteOptions": body}))
    assert {answer.code for answer in answers} <= {400, 422}
    assert all(text in answer.text for answer in answers)
    assert browser.get(f"{PODS}/a").code == 200


REFUSED = [
    ({"metadata": {"name": "Big"}}, 422, "a lowercase RFC 1123 subdomain must consist of"),
    ({"metadata": {}}, 422, "name or generateName is required"),
    ({"metadata": {"name": "a", "labels": {"x": "a b"}}}, 422, "a valid label must be an empty string or"),
    (
        {"metadata": {"name": "a"}, "data": {"a": 1}},
        400,
        "cannot unmarshal number into Go struct field ConfigMap.data.a",
    ),
    ({"metadata": {"name": "a", "labels": {"x" * 64: "a"}}}, 422, "name part must be no more than 63 bytes"),
    (
        {"metadata": {"name": "a", "annotations": {"x" * 251 + ".io/" + "y": "a"}}},
        422,
        "prefix part must be no more than 253 bytes",
    ),
    (
        {"metadata": {"name": "a", "annotations": {"a": "x" * 262_144}}},
        422,
        "metadata.annotations: Too long: may not be more than 262144 bytes",
    ),
    ({"metadata": {"name": "a"}, "kind": "Secret"}, 400, "does not match the expected API version"),
]


@pytest.mark.parametrize(("body", "code", "text"), REFUSED)
def test_a_wrong_object_is_refused_with_kubernetes_words(browser, body, code, text):
    answer = browser.post(CONFIGS, body)
    assert answer.code == code
    assert text in answer.text


@pytest.mark.parametrize("what", ["exec", "attach", "portforward"])
def test_simulated_pods_say_that_they_have_no_containers(browser, what):
    browser.post(PODS, pod("a"))
    answer = browser.get(f"{PODS}/a/{what}")
    assert (answer.code, answer.body["reason"]) == (501, "NotImplemented")
    assert answer.text == f'pods "a": pods are simulated here and have no containers: {what} is not served'
    assert browser.get(f"{PODS}/none/{what}").text == 'pods "none" not found'


CLASSES = [
    ("mine", 2_000_000_000, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
    ("system-mine", 1, "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for"),
]


@pytest.mark.parametrize(("name", "value", "text"), CLASSES)
def test_the_highest_priorities_are_the_systems(browser, name, value, text):
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert text in browser.post(classes, {"metadata": {"name": name}, "value": value}).text
    assert len(browser.get(classes).body["items"]) == 2


WRONG_PODS = [
    ({"containers": []}, "spec.containers: Required value"),
    ({"container": {"image": ""}}, "spec.containers[0].image: Required value"),
    (
        {"container": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}},
        "must be less than or equal to cpu limit of 1",
    ),
    ({"container": {"name": "Bad Name"}}, 'spec.containers[0].name: Invalid value: "Bad Name": a lowercase RFC 1123'),
    (
        {"container": {"resources": {"requests": {"nvidia.com/gpu": 1}}}},
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    (
        {"container": {"resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}}},
        "must be equal to nvidia.com/gpu limit of 2",
    ),
    (
        {"container": {"resources": {"limits": {"nvidia.com/gpu": "1500m"}}}},
        'limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer',
    ),
    (
        {"container": {"resources": {"limits": {"gpu": 1}}}},
        'resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
    ),
    (
        {"container": {"resources": {"limits": {"pods": 1}}}},
        'resources.limits[pods]: Invalid value: "pods": must be a standard resource for containers',
    ),
    ({"priorityClassName": "vip"}, "no PriorityClass with name vip was found"),
    (
        {"restartPolicy": "Maybe"},
        'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "Never", "OnFailure"',
    ),
]


@pytest.mark.parametrize(("spec", "text"), WRONG_PODS)
def test_a_wrong_pod_is_refused_with_kubernetes_words(browser, spec, text):
    assert text in browser.post(PODS, pod("a", **spec)).text


def test_unknown_fields_are_refused_told_or_dropped_as_the_client_wishes(browser):
    wrong = pod("a", foo=1)
    strict = browser.post(PODS + "?fieldValidation=Strict", wrong)
    assert strict.code == 400
    assert strict.text.endswith('strict decoding error: unknown field "spec.foo"')
    warned = browser.post(PODS + "?fieldValidation=Warn", wrong)
    assert ("warning", '299 - "unknown field \\"spec.foo\\""') in warned.headers
    assert "foo" not in warned.body["spec"]
    odd = browser.post(PODS + "?fieldValidation=Warn", {**pod("b"), "\u2713\r\nX-Evil: 1": 1})
    assert (odd.code, [value for name, value in odd.headers if name == "warning"]) == (
        201,
        ['299 - "unknown field \\"???X-Evil: 1\\""'],
    )


def test_a_stale_version_is_a_conflict(browser):
    old = browser.post(CONFIGS, config("c", a="1")).body
    new = browser.put(f"{CONFIGS}/c", {**old, "data": {"a": "2"}})
    assert new.code == 200
    stale = browser.put(f"{CONFIGS}/c", {**old, "data": {"a": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert stale.text.startswith('Operation cannot be fulfilled on configmaps "c": the object has been modified')


def test_a_write_that_changes_nothing_leaves_the_version(browser):
    old = browser.post(CONFIGS, config("c", a="1")).body
    assert browser.put(f"{CONFIGS}/c", old).body == old
    assert browser.patch(f"{CONFIGS}/c", {"data": {"a": "1"}}).body == old


def test_a_dry_run_answers_and_keeps_nothing(browser):
    assert browser.post(CONFIGS + "?dryRun=All", config("c")).code == 201
    assert browser.get(f"{CONFIGS}/c").code == 404


PATCHES = [
    (MERGE, {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
    (STRATEGIC, {"data": {"a": "9"}}, {"a": "9", "b": "2"}),
    (JSON, [{"op": "replace", "path": "/data/a", "value": "7"}, {"op": "remove", "path": "/data/b"}], {"a": "7"}),
]


@pytest.mark.parametrize(("media", "patch", "data"), PATCHES)
def test_patches(browser, media, patch, data):
    browser.post(CONFIGS, config("c", a="1", b="2"))
    assert browser.patch(f"{CONFIGS}/c", patch, media).body["data"] == data


def test_a_strategic_patch_merges_containers_by_name(browser):
    browser.post(PODS, pod("a"))
    patch = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
    container = browser.patch(f"{PODS}/a", patch, STRATEGIC).body["spec"]["containers"]
    assert [(one["name"], one["image"], one["terminationMessagePolicy"]) for one in container] == [
        ("main", "busybox:2", "File")
    ]


def test_a_pods_spec_stays_as_it_is(browser):
    browser.post(PODS, pod("a"))
    answer = browser.patch(f"{PODS}/a", {"spec": {"hostname": "other"}})
    assert answer.code == 422
    assert "pod updates may not change fields other than" in answer.text


def test_status_and_spec_are_written_apart(browser):
    browser.post(PODS, pod("a"))
    both = {"spec": {"hostname": "x"}, "status": {"phase": "Running"}}
    after = browser.patch(f"{PODS}/a/status", both).body
    assert (after["status"]["phase"], "hostname" in after["spec"]) == ("Running", False)
    assert browser.patch(f"{PODS}/a", {"status": {"phase": "Failed"}}).body["status"]["phase"] == "Running"


def test_a_page_belongs_to_the_moment_of_the_first(browser):
    for name in "abcde":
        browser.post(CONFIGS, config(name))
    names: list[str] = []
    url, token = CONFIGS + "?limit=2", ""
    while True:
        page = browser.get(url + token).body
        names += [item["metadata"]["name"] for item in page["items"]]
        browser.delete(f"{CONFIGS}/e")
        if "continue" not in page["metadata"]:
            break
        token = f"&continue={page['metadata']['continue']}"
    assert names == ["a", "b", "c", "d", "e", "kube-root-ca.crt"]


def test_a_forgotten_page_is_gone(browser):
    answer = browser.get(CONFIGS + "?limit=1&continue=eyJsaXN0IjoiMSJ9")
    assert (answer.code, answer.body["reason"]) == (410, "Expired")


SELECTORS = [
    ("labelSelector=app=a", ["a"]),
    ("labelSelector=app%20in%20(a,b),!old", ["a"]),
    ("labelSelector=app!=a", ["b", "c"]),
    ("labelSelector=old", ["b"]),
    ("fieldSelector=metadata.name=c", ["c"]),
    ("fieldSelector=spec.nodeName!=", ["c"]),
    ("fieldSelector=spec.nodeName=,status.phase=Pending", ["a", "b"]),
]


@pytest.mark.parametrize(("query", "names"), SELECTORS)
def test_selectors(browser, query, names):
    browser.post(PODS, pod("a", metadata={"labels": {"app": "a"}}))
    browser.post(PODS, pod("b", metadata={"labels": {"app": "b", "old": ""}}))
    browser.post(PODS, pod("c", nodeName="n"))
    assert [item["metadata"]["name"] for item in browser.get(f"{PODS}?{query}").body["items"]] == names


def test_a_field_that_cannot_be_selected_by_is_named(browser):
    assert browser.get(PODS + "?fieldSelector=spec.foo=1").text == "field label not supported: spec.foo"


def test_a_watch_brings_what_is_there_and_what_came_since(browser):
    first = browser.post(CONFIGS, config("a")).body["metadata"]["resourceVersion"]
    browser.patch(f"{CONFIGS}/a", {"data": {"x": "1"}})
    browser.delete(f"{CONFIGS}/a")
    seen = [
        (event["type"], event["object"]["metadata"]["name"])
        for event in browser.events(f"{CONFIGS}?resourceVersion={first}")
    ]
    assert seen == [("MODIFIED", "a"), ("DELETED", "a")]
    assert [event["object"]["metadata"]["name"] for event in browser.events(CONFIGS)] == ["kube-root-ca.crt"]


def test_a_watch_with_a_selector_sees_objects_come_and_go(browser):
    start = browser.post(PODS, pod("a")).body["metadata"]["resourceVersion"]
    browser.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
    browser.patch(f"{PODS}/a", {"metadata": {"annotations": {"y": "1"}}})
    browser.patch(f"{PODS}/a", {"metadata": {"labels": {"x": None}}})
    events = browser.events(f"{PODS}?resourceVersion={start}&labelSelector=x=1")
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[-1]["object"]["metadata"]["labels"] == {"x": "1"}


def test_a_watch_from_long_ago_is_told_to_list_again(browser):
    browser.api.store.of(("", "configmaps")).floor = browser.api.store.version
    (event,) = browser.events(CONFIGS + "?resourceVersion=1")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("body", [b'{"kind": "\xff"}', b"[" * 100_000, b"\xff"])
def test_a_body_that_cannot_be_decoded_is_the_clients_fault(browser, body, media):
    assert browser("POST", PODS, body, media).code == 400


def test_a_watch_list_ends_its_first_part_with_a_bookmark(browser):
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = browser.events(f"{CONFIGS}?{query}")
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_tables_show_kubectls_columns(browser):
    browser.post(PODS, pod("a"))
    browser.now += 200
    table = browser.get(PODS, accept=TABLE).body
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"] == ["a", "0/1", "Pending", "0", "3m20s", "<none>", "<none>", "<none>", "<none>"]


def test_a_pod_is_bound_once(browser):
    browser.post(PODS, pod("a"))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert browser.post(f"{PODS}/a/binding", binding).code == 201
    bound = browser.get(f"{PODS}/a").body
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    again = browser.post(f"{PODS}/a/binding", binding)
    told = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    assert (again.code, again.text) == (409, told)


def test_a_gated_pod_is_not_bound(browser):
    browser.post(PODS, pod("a", schedulingGates=[{"name": "example.com/wait"}]))
    assert "non-empty .spec.schedulingGates" in browser.post(f"{PODS}/a/binding", {"target": {"name": "n1"}}).text


def test_a_pod_on_a_node_is_left_its_time(browser):
    browser.post(PODS, pod("a", nodeName="n1"))
    dying = browser.delete(f"{PODS}/a").body["metadata"]
    assert (dying["deletionTimestamp"], dying["deletionGracePeriodSeconds"]) == ("2023-11-14T22:13:50Z", 30)
    browser.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert browser.get(f"{PODS}/a").code == 404


def test_a_pod_that_waits_or_is_done_goes_at_once(browser):
    browser.post(PODS, pod("a"))
    assert browser.delete(f"{PODS}/a").code == 200
    assert browser.get(f"{PODS}/a").code == 404


def test_preconditions_of_a_deletion(browser):
    browser.post(CONFIGS, config("a"))
    answer = browser.delete(f"{CONFIGS}/a", {"preconditions": {"uid": "another"}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


def test_a_patch_meant_for_another_object_of_that_name_is_refused_as_invalid(browser):
    browser.post(CONFIGS, config("a"))
    answer = browser.patch(f"{CONFIGS}/a", {"metadata": {"uid": "another", "labels": {"x": "y"}}})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert 'metadata.uid: Invalid value: "another": field is immutable' in answer.body["message"]
    assert "labels" not in browser.get(f"{CONFIGS}/a").body["metadata"]


def test_finalizers_hold_an_object(browser):
    body = config("a")
    body["metadata"]["finalizers"] = ["example.com/wait"]
    browser.post(CONFIGS, body)
    assert "deletionTimestamp" in browser.delete(f"{CONFIGS}/a").body["metadata"]
    browser.patch(f"{CONFIGS}/a", {"metadata": {"finalizers": None}})
    assert browser.get(f"{CONFIGS}/a").code == 404


def _owned(browser, child, **owner):
    body = config(child)
    body["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", **owner}]
    browser.post(CONFIGS, body)


@pytest.mark.parametrize(("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["b", "c"])])
def test_what_is_owned_goes_with_its_owner(browser, policy, left):
    uid = browser.post(CONFIGS, config("a")).body["metadata"]["uid"]
    _owned(browser, "b", name="a", uid=uid, blockOwnerDeletion=True)
    child = browser.get(f"{CONFIGS}/b").body["metadata"]["uid"]
    _owned(browser, "c", name="b", uid=child)
    browser.delete(f"{CONFIGS}/a", {"propagationPolicy": policy})
    names = [item["metadata"]["name"] for item in browser.get(CONFIGS).body["items"]]
    assert names == [*left, "kube-root-ca.crt"]


def test_objects_without_an_owner_are_collected(browser):
    _owned(browser, "b", name="a", uid="unknown")
    assert browser.get(f"{CONFIGS}/b").code == 404


def test_a_namespace_goes_when_it_is_empty(browser):
    browser.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    browser.post("/api/v1/namespaces/team/pods", pod("a", nodeName="n"))
    browser.post("/api/v1/namespaces/team/configmaps", config("c"))
    browser.delete("/api/v1/namespaces/team")
    assert browser.get("/api/v1/namespaces/team").body["status"]["phase"] == "Terminating"
    refused = browser.post("/api/v1/namespaces/team/pods", pod("b"))
    assert refused.text.endswith("unable to create new content in namespace team because it is being terminated")
    browser.delete("/api/v1/namespaces/team/pods/a?gracePeriodSeconds=0")
    assert browser.get("/api/v1/namespaces/team").code == 404


def test_some_namespaces_stay_and_objects_need_one(browser):
    assert "this namespace may not be deleted" in browser.delete("/api/v1/namespaces/default").text
    assert browser.post("/api/v1/namespaces/none/pods", pod("a")).text == 'namespaces "none" not found'


def _ready(browser, name):
    browser.post(PODS, pod(name, nodeName="n", metadata={"labels": {"app": "x"}}))
    ready = [{"type": "Ready", "status": "True"}]
    browser.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": ready}})


def test_an_eviction_honours_the_disruption_budget(browser):
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    for name in ("a", "b"):
        _ready(browser, name)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    browser.post(budgets, {"metadata": {"name": "b"}, "spec": spec})
    assert browser.get(f"{budgets}/b").body["status"]["disruptionsAllowed"] == 1
    assert browser.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}}).code == 201
    refused = browser.post(f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
    assert (refused.code, refused.text) == (429, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert (
        refused.body["details"]["causes"][0]["message"]
        == "The disruption budget b needs 1 healthy pods and has 1 currently"
    )
    assert "retry-after" not in dict(refused.headers), "kubectl drain would wait it ten times over, past its --timeout"
    assert "deletionTimestamp" not in browser.get(f"{PODS}/b").body["metadata"]


@pytest.fixture
def widgets(browser):
    assert browser.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()).code == 201
    return browser


def test_a_defined_kind_is_served_completed_and_held_to_its_schema(widgets):
    made = widgets.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 3}})
    assert (made.body["spec"], made.body["metadata"]["generation"]) == ({"size": 3, "color": "red"}, 1)
    wrong = widgets.post(WIDGETS, {"metadata": {"name": "v"}, "spec": {"size": 30, "color": "blue"}})
    assert wrong.text == (
        'Widget.example.com "v" is invalid: [spec.size: Invalid value: 30: spec.size in body should be less than or '
        'equal to 10, spec.color: Unsupported value: "blue": supported values: "red", "green"]'
    )
    assert "spec.size: Required value" in widgets.post(WIDGETS, {"metadata": {"name": "v"}, "spec": {}}).text
    typed = widgets.post(WIDGETS, {"metadata": {"name": "v"}, "spec": {"size": "x"}})
    assert 'spec.size in body must be of type integer: "string"' in typed.text


def test_a_custom_object_counts_generations_of_its_spec_alone(widgets):
    widgets.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 3}, "status": {"phase": "Mine"}})
    assert "status" not in widgets.get(f"{WIDGETS}/w").body
    changed = widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 4}}).body["metadata"]["generation"]
    told = widgets.patch(f"{WIDGETS}/w/status", {"status": {"phase": "Done"}, "spec": {"size": 9}}).body
    assert (changed, told["metadata"]["generation"], told["spec"]["size"]) == (2, 2, 4)


def test_a_kind_goes_with_its_definition(widgets):
    widgets.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 3}})
    widgets.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    assert widgets.get(WIDGETS).text == "the server could not find the requested resource"
    widgets.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    assert widgets.get(WIDGETS).body["items"] == []


def test_what_is_served_is_told_in_all_its_forms(widgets):
    names = {one["name"] for one in widgets.get("/apis").body["groups"]}
    assert {"apps", "batch", "example.com"} <= names
    whole = widgets.get("/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").body
    found = {one["metadata"]["name"]: one["versions"][0]["resources"][0]["resource"] for one in whole["items"]}
    assert found["example.com"] == "widgets"
    paths = widgets.get("/openapi/v3").body["paths"]
    document = widgets.get(paths["apis/example.com/v1"]["serverRelativeURL"]).body
    assert "com.example.v1.Widget" in document["components"]["schemas"]
    reviewed = widgets.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}).body
    assert reviewed["status"] == {"allowed": True}


V2, V2BETA1 = (f"application/json;g=apidiscovery.k8s.io;v={one};as=APIGroupDiscoveryList" for one in ("v2", "v2beta1"))


@pytest.mark.parametrize(
    ("accept", "version", "media"),
    [
        (V2, "apidiscovery.k8s.io/v2", V2),
        (f"{V2BETA1},application/json", "apidiscovery.k8s.io/v2beta1", V2BETA1),
        (f"{V2},{V2BETA1},application/json", "apidiscovery.k8s.io/v2", V2),
        (V2.replace("v2", "v9") + ",application/json", "v1", "application/json"),
        ("application/json", "v1", "application/json"),
    ],
)
def test_discovery_is_told_in_the_version_that_the_client_reads(browser, accept, version, media):
    answer = browser.get("/apis", accept=accept)
    assert (answer.body["apiVersion"], dict(answer.headers)["content-type"]) == (version, media)
    assert "resources" in str(answer.body) or version == "v1"


def _apply(browser, manager, force="false", **data):
    url = f"{CONFIGS}/c?fieldManager={manager}&force={force}"
    return browser.patch(url, config("c", **data), APPLY)


def test_an_apply_owns_what_it_sets_and_drops_what_it_sets_no_more(browser):
    assert _apply(browser, "one", a="1", b="2").code == 201
    assert _apply(browser, "two", c="3").body["data"] == {"a": "1", "b": "2", "c": "3"}
    after = _apply(browser, "one", a="1").body
    assert after["data"] == {"a": "1", "c": "3"}
    owned = {one["manager"]: one["fieldsV1"] for one in after["metadata"]["managedFields"]}
    assert owned == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:c": {}}}}


def test_an_apply_over_a_field_of_another_manager_is_a_conflict_unless_forced(browser):
    _apply(browser, "one", a="1")
    refused = _apply(browser, "two", a="2")
    assert (refused.code, refused.text) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.a')
    forced = _apply(browser, "two", force="true", a="2").body
    assert [one["manager"] for one in forced["metadata"]["managedFields"]] == ["two"]


def test_an_update_takes_fields_of_a_followed_object(browser):
    _apply(browser, "one", a="1", b="2")
    browser.patch(f"{CONFIGS}/c?fieldManager=hand", {"data": {"a": "9"}})
    refused = _apply(browser, "one", a="1", b="2")
    assert 'conflict with "hand" using v1' in refused.text
    assert refused.body["details"]["causes"][0]["field"] == ".data.a"


def _pods_of(browser, *containers):
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": n, "image": n} for n in containers]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    url = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=one"
    return browser.patch(url, body, APPLY).body["spec"]["template"]["spec"]["containers"]


def test_an_applied_item_goes_with_what_was_filled_in(browser):
    assert [one["name"] for one in _pods_of(browser, "x", "y")] == ["x", "y"]
    (left,) = _pods_of(browser, "y")
    assert (left["name"], left["imagePullPolicy"]) == ("y", "Always")


def test_kubectl_takes_over_what_it_applied_from_the_clients_side(browser):
    last = '{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"c"}}'
    body = config("c", a="1", b="2")
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    browser.post(f"{CONFIGS}?fieldManager=kubectl-client-side-apply", body)
    assert browser.get(f"{CONFIGS}/c").body["metadata"]["managedFields"][0]["manager"] == "kubectl-client-side-apply"
    assert _apply(browser, "kubectl", b="9").code == 409
    taken = _apply(browser, "kubectl", a="9").body
    assert taken["data"] == {"a": "9", "b": "2"}
    assert '"data":{"a":"9"}' in taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
