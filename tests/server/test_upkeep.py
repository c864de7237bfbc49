"""One object's trouble is logged by its name, and everything else is looked after all the same."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.server.controllers import node_lifecycle
from stromboli.server.controllers.node_lifecycle import FORGOTTEN, GRACE, ORPHANED
from tests.server.browser import LEASES, PODS, Browser, pod

NODES = "/api/v1/nodes"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def breaks(monkeypatch, holder, name):
    """Let a function of ``holder`` fail with an unforeseen error for every argument that mentions ``bad``."""
    original = getattr(holder, name)

    def fails(*given, **more):
        if "'bad'" in repr(given):
            raise ZeroDivisionError("an unforeseen error")
        return original(*given, **more)

    monkeypatch.setattr(holder, name, fails)


def settle_at_once(browser, writes):
    """Store objects, or with None drop them, then do what follows from all of it together."""
    for collection, key, body in writes:
        if body is None:
            browser.api.store.drop(collection, key)
        else:
            browser.api.store.put(collection, {**body, "metadata": {"namespace": key[0], "name": key[1]}})
    browser.settle()


SORTS: dict[str, Any] = {
    "_settle_node": (("", "nodes"), "", {"kind": "Node", "spec": {"unschedulable": True}}, "spec"),
    "_settle_namespace": (("", "namespaces"), "", {"kind": "Namespace"}, None),
    "_settle_status": (("policy", "poddisruptionbudgets"), "default", {"spec": {"minAvailable": 1}}, "status"),
}
"""What does the work, what it is about, and which part of the object it changes."""


@pytest.mark.parametrize("work", SORTS)
def test_what_housekeeping_cannot_do_to_one_object_is_logged_and_the_others_have_their_turn(
    work, browser, monkeypatch, caplog
):
    collection, namespace, body, changed = SORTS[work]
    breaks(monkeypatch, browser.api.keeper, work)
    settle_at_once(browser, [(collection, (namespace, name), body) for name in ("bad", "good")])
    found = {name: browser.api.store.get(collection, (namespace, name)).body for name in ("bad", "good")}
    if changed:
        assert found["bad"].get(changed) == body.get(changed) != found["good"][changed]
    else:
        assert browser.get("/api/v1/namespaces/good/serviceaccounts/default").code == 200
    (said,) = caplog.records
    assert ("bad" in said.getMessage(), said.exc_info[0]) == (True, ZeroDivisionError)


def test_what_cannot_be_deleted_keeps_nothing_else_in_its_namespace(browser, monkeypatch, caplog):
    browser.post("/api/v1/namespaces", {"metadata": {"name": "space"}})
    for name in ("bad", "good"):
        browser.post("/api/v1/namespaces/space/configmaps", {"metadata": {"name": name}})
    breaks(monkeypatch, browser.api.writer, "delete")
    browser.delete("/api/v1/namespaces/space")
    left = browser.get("/api/v1/namespaces/space/configmaps").body["items"]
    assert [one["metadata"]["name"] for one in left] == ["bad"]
    assert all("'space', 'bad'" in said.getMessage() for said in caplog.records)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_dependent_that_cannot_be_deleted_keeps_no_other(policy, browser, monkeypatch, caplog):
    owner = browser.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "owner"}}).body["metadata"]
    said = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    for name in ("bad", "good"):
        body = {"metadata": {"name": name, "ownerReferences": [said]}}
        browser.post("/api/v1/namespaces/default/secrets", body)
    breaks(monkeypatch, browser.api.writer, "delete")
    browser.delete("/api/v1/namespaces/default/configmaps/owner", {"propagationPolicy": policy})
    left = browser.get("/api/v1/namespaces/default/secrets").body["items"]
    assert [one["metadata"]["name"] for one in left] == ["bad"]
    assert "'bad'" in caplog.records[0].getMessage()


def with_kubelets(browser):
    for name in ("bad", "good"):
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        browser.post(NODES, {"metadata": {"name": name}, "status": ready})
        browser.post(LEASES, {"metadata": {"name": name}, "spec": {"leaseDurationSeconds": 40}})
    browser.api.clockwork.tick()


def after(browser, seconds):
    browser.now += seconds
    browser.api.clockwork.tick()
    browser.settle()


def test_a_node_that_cannot_be_called_silent_keeps_no_other_from_it(browser, monkeypatch, caplog):
    with_kubelets(browser)
    breaks(monkeypatch, node_lifecycle, "silenced")
    after(browser, GRACE + 1)
    states = {one["metadata"]["name"]: one["status"]["conditions"] for one in browser.get(NODES).body["items"]}
    assert [states[name][0]["status"] for name in ("bad", "good")] == ["True", "Unknown"]
    assert [said.getMessage() for said in caplog.records] == ["node bad"]


TROUBLES = {
    "taints that cannot be read": ("expulsions", "node bad"),
    "tolerations that cannot be read": ("leaves_at", "pod ('default', 'bad')"),
    "a pod that cannot be deleted": ("delete_if_possible", "pod ('default', 'bad')"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_pod_that_cannot_be_driven_out_keeps_no_other_from_leaving(trouble, browser, monkeypatch, caplog):
    function, told = TROUBLES[trouble]
    with_kubelets(browser)
    for name in ("bad", "good"):
        browser.post(PODS, pod(name, nodeName=name))
        browser.patch(f"{NODES}/{name}", {"spec": {"taints": [{"key": "flood", "effect": "NoExecute"}]}})
    breaks(monkeypatch, node_lifecycle, function)
    after(browser, 1)
    going = [
        one["metadata"]["name"] for one in browser.get(PODS).body["items"] if "deletionTimestamp" in one["metadata"]
    ]
    assert (going, [said.getMessage() for said in caplog.records]) == (["good"], [told])


def test_what_is_left_behind_goes_whatever_else_cannot(browser, monkeypatch, caplog):
    for name in ("bad", "good"):
        browser.post(PODS, pod(name, nodeName="gone"))
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        browser.post("/api/v1/namespaces/default/events", {"metadata": {"name": name}, "involvedObject": involved})
    breaks(monkeypatch, browser.api.writer, "delete")
    breaks(monkeypatch, browser.api.store, "drop")
    browser.api.clockwork.tick()
    after(browser, ORPHANED)
    assert [one["metadata"]["name"] for one in browser.get(PODS).body["items"]] == ["bad"]
    after(browser, FORGOTTEN + 60)
    assert [one["metadata"]["name"] for one in browser.get("/api/v1/events").body["items"]] == ["bad"]
    assert {said.getMessage() for said in caplog.records} == {"pod ('default', 'bad')", "event ('default', 'bad')"}


@pytest.mark.parametrize(
    ("api_version", "kind", "stays"),
    [
        pytest.param("kubeflow.org/v1", "TFJob", True, id="a kind that is not served"),
        pytest.param("v1", "ConfigMap", False, id="a kind that is served: there is no such object"),
    ],
)
def test_what_is_owned_by_an_unknown_object_stays_where_its_kind_is_unknown_too(browser, api_version, kind, stays):
    """Nothing says that it has gone: its operator's definitions may be elsewhere, as when pods are copied."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u"}
    browser.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s", "ownerReferences": [owner]}})
    browser.settle()
    assert browser.get("/api/v1/namespaces/default/secrets/s").code == (200 if stays else 404)


def test_what_custom_objects_own_goes_with_their_definition(browser):
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }  # fmt: skip
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert browser.post(definitions, definition).code == 201
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    owners = []
    for name in ("v", "w"):
        made = browser.post(widgets, {"metadata": {"name": name}, "apiVersion": "example.com/v1", "kind": "Widget"})
        uid = made.body["metadata"]["uid"]
        owners.append({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid})
    browser.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s", "ownerReferences": owners}})
    browser.settle()
    assert browser.get("/api/v1/namespaces/default/secrets/s").code == 200
    browser.delete(f"{definitions}/widgets.example.com")
    browser.settle()
    assert browser.get("/api/v1/namespaces/default/secrets/s").code == 404
