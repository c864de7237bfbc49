"""Whatever comes in, the server answers it, and means what it says: nothing breaks it, refusals keep nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.browser import APPLY, JSON, MERGE, PODS, STRATEGIC, Browser, definition, pod

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
NAMES = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "containers",
        "size",
        "color",
        "finalizers",
        "ownerReferences",
        "annotations",
        "resources",
        "requests",
        "cpu",
        "$patch",
        "tolerations",
        "conditions",
        "image",
        "generateName",
    ]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": st.sampled_from(["/spec/containers/0", "/metadata/labels", "/spec", "", "/x~0", "nothing"]),
        "from": st.sampled_from(["/spec", "/metadata/name"]),
        "value": VALUES,
    }
)
ADDRESSES = [
    PODS,
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/batch/v1/namespaces/default/cronjobs",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/resourcequotas",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
]


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    with found.runner:
        found.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        found.post(PODS, pod("a"))
        yield found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(url=st.sampled_from(ADDRESSES), body=VALUES, spec=VALUES)
def test_any_body_is_created_or_refused(browser: Browser, url: str, body: Any, spec: Any) -> None:
    for tried in (body, {"metadata": {"name": "x"}, "spec": spec}):
        before = browser.api.store.version
        answer = browser.post(url, tried)
        assert answer.code in (201, 400, 403, 404, 409, 422), answer.content
        assert answer.code == 201 or browser.api.store.version == before
        if answer.code == 201 and "namespaces/" in url + "/":
            browser.delete(f"{url}/{answer.body['metadata']['name']}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(media=st.sampled_from([MERGE, STRATEGIC, APPLY, JSON]), patch=VALUES | st.lists(OPERATIONS, max_size=3))
def test_any_patch_is_made_or_refused(browser: Browser, media: str, patch: Any) -> None:
    answer = browser.patch(f"{PODS}/a?fieldManager=me", patch, media)
    assert answer.code in (200, 400, 403, 404, 409, 415, 422), answer.content
    assert browser.get(f"{PODS}/a").body["metadata"]["name"] == "a"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    text=st.text("abc=!,()in <>/~\"'", max_size=12),
    query=st.sampled_from(["labelSelector", "fieldSelector", "continue", "limit"]),
)
def test_any_query_is_answered(browser: Browser, text: str, query: str) -> None:
    from urllib.parse import quote

    assert browser.get(f"{PODS}?{query}={quote(text)}").code in (200, 400, 410)
