"""What is refused wherever a type stands, and forms of values that once broke what came after."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.server.storage.selection import matches, of_selector
from tests.server.browser import APPLY, CONFIGS, PODS, Browser, config, definition, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NODES = "/api/v1/nodes"
TERM = "spec.selector.matchExpressions[0]"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def _budget(**selector: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}


def _tolerating(**toleration: Any) -> dict[str, Any]:
    return pod("a", tolerations=[toleration])


def _owned(**owner: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c", "ownerReferences": [owner]}}


def _near(**term: Any) -> dict[str, Any]:
    return pod("a", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def _on(**term: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    return pod("a", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (BUDGETS, _budget(matchExpressions=[{"key": "a"}]), f'{TERM}.operator: Invalid value: "": not a valid selector'),
    (BUDGETS, _budget(matchExpressions=[{"key": "a", "operator": "In"}]), f"{TERM}.values: Required value: must be"),
    (
        BUDGETS,
        _budget(matchExpressions=[{"key": "a", "operator": "Exists", "values": ["b"]}]),
        f"{TERM}.values: Forbidden: may not be specified",
    ),
    (BUDGETS, _budget(matchExpressions=[{"operator": "Exists"}]), f"{TERM}.key: Invalid value"),
    (BUDGETS, _budget(matchLabels={"a": "b c"}), "spec.selector.matchLabels: Invalid value"),
    (BUDGETS, _budget(matchLabels={"": "b"}), "spec.selector.matchLabels: Invalid value"),
    (PODS, _tolerating(key="a", operator="Exists", value="b"), "value must be empty when `operator` is 'Exists'"),
    (PODS, _tolerating(value="b"), "operator must be Exists when `key` is empty"),
    (PODS, _tolerating(key="a", operator="Exists", tolerationSeconds=3), "effect must be 'NoExecute'"),
    (PODS, _near(labelSelector={}), "topologyKey: Required value: can not be empty"),
    (PODS, _on(key="a", operator="Gt", values=["1", "2"]), "must be specified single value"),
    (PODS, _on(operator="Exists"), "matchExpressions[0].key: Required value"),
    (CONFIGS, _owned(name="x", uid="1"), "metadata.ownerReferences[0].kind: Invalid value"),
    (NODES, {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k"}]}}, "spec.taints[0].effect: Required value"),
    (
        NODES,
        {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "-1"}}},
        'status.allocatable[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    (
        "/api/v1/namespaces/default/resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "-1"}}},
        "spec.hard[pods]: Invalid value",
    ),
    (
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 70000}]}},
        "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        {"metadata": {"name": "j"}, "spec": {"parallelism": -1, "template": {"spec": {"restartPolicy": "Never"}}}},
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "c"}, "subjects": [{"kind": "User"}]},
        "subjects[0].name: Required value",
    ),
    (PODS, pod("a", topologySpreadConstraints=[{"topologyKey": "z"}]), "maxSkew: Invalid value: 0"),
    (
        NODES,
        {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": "Never"}]}},
        'spec.taints[0].effect: Unsupported value: "Never": supported values',
    ),
]


@pytest.mark.parametrize(("url", "body", "text"), WRONG)
def test_what_kubernetes_refuses_of_a_type_is_refused(browser, url, body, text):
    answer = browser.post(url, body)
    assert (answer.code, text in answer.text) == (422, True), answer.content


PERCENTS = [
    ("x%", "a valid percent string must be a numeric string"),
    ("5", "a valid percent string must be a numeric string"),
    ("101%", "must not be greater than 100%"),
    (-1, "must be greater than or equal to 0"),
]


@pytest.mark.parametrize("name", ["minAvailable", "maxUnavailable"])
@pytest.mark.parametrize(("value", "text"), PERCENTS)
def test_a_budget_counts_pods_or_percents(browser, name, value, text):
    body = {"metadata": {"name": "b"}, "spec": {name: value, "selector": {}}}
    answer = browser.post(BUDGETS, body)
    assert (answer.code, text in answer.text) == (422, True), answer.content


def test_rules_are_asked_only_of_values_that_can_be_read(browser):
    selectors: list[dict[str, Any]] = [{"matchLabels": "all"}, {"matchLabels": {"a": []}}, {"matchExpressions": ["a"]}]
    for selector in selectors:
        assert browser.post(BUDGETS, _budget(**selector)).code == 400
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "x"}}}
    assert browser.post(NODES, node).code == 400
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": ""}}}
    assert browser.post("/api/v1/namespaces/default/resourcequotas", quota).code == 400
    browser.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    widget = {"metadata": {"name": "w", "ownerReferences": [{"uid": 5}]}, "spec": {"size": 1}}
    assert browser.post("/apis/example.com/v1/namespaces/default/widgets", widget).code == 422


def test_a_selector_without_an_operator_selects_nothing():
    """A journal, or another server, may hold one."""
    terms = of_selector({"matchExpressions": [{"key": "a"}, {}]})
    assert terms is not None
    assert not matches(terms, {"a": "1", "": "x"})


@pytest.mark.parametrize("spec", [{"containers": ["a"]}, {"containers": "a"}, "a", {"volumes": [[{}]]}])
def test_an_apply_of_other_types_is_refused(browser, spec):
    browser.post(PODS, pod("a"))
    wish = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    assert browser.patch(f"{PODS}/a?fieldManager=me", wish, APPLY).code == 400


@pytest.mark.parametrize("last", ['{"data": {"a": 1}}', '{"data": [1]}', "[]", "{", "5"])
def test_what_was_applied_last_may_be_anything(browser, last):
    body = config("c", a="1")
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    browser.post(CONFIGS, body)
    assert browser.patch(f"{CONFIGS}/c?fieldManager=kubectl&force=true", config("c", a="2"), APPLY).code == 200
