"""Limit ranges: what pods are given that they do not say, and what is refused; texts are Kubernetes'."""

from __future__ import annotations

import pytest

from tests.server.browser import PODS, Browser, pod

RANGES = "/api/v1/namespaces/default/limitranges"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def _ranged(browser, **item):
    body = {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", **item}]}}
    return browser.post(RANGES, body).body["spec"]["limits"][0]


def _with(requests=None, limits=None, **spec):
    given = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return pod("a", container={"resources": given}, **spec)


COMPLETED = [
    ({"max": {"cpu": "2"}}, {"max": {"cpu": "2"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}),
    ({"min": {"cpu": "1"}}, {"min": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}),
    (
        {"default": {"cpu": "1"}, "defaultRequest": {"memory": "1Gi"}, "max": {"cpu": "4"}},
        {"default": {"cpu": "1"}, "defaultRequest": {"memory": "1Gi", "cpu": "1"}, "max": {"cpu": "4"}},
    ),
    ({"type": "Pod", "max": {"cpu": "2"}}, {"max": {"cpu": "2"}}),
]


@pytest.mark.parametrize(("item", "stored"), COMPLETED)
def test_a_range_says_what_follows_from_it(browser, item, stored):
    found = _ranged(browser, **item)
    found.pop("type")
    assert found == stored


def test_what_containers_do_not_say_is_filled_in_and_told(browser):
    _ranged(browser, default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "500m"})
    first = {"name": "first", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Ki"}}}
    made = browser.post(PODS, _with({"cpu": "1"}, initContainers=[first])).body
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"},
    }  # fmt: skip
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container main; cpu, memory limit for container main; "
        "cpu, memory limit for init container first"
    )
    assert made["status"]["qosClass"] == "Burstable"
    assert browser.post(PODS, pod("b")).body["status"]["qosClass"] == "Burstable", "it asks for something now"


REFUSED = [
    ({"min": {"cpu": "1"}}, _with({"cpu": "500m"}), "minimum cpu usage per Container is 1, but request is 500m"),
    (
        {"type": "Pod", "min": {"cpu": "1"}},
        _with(),
        "minimum cpu usage per Pod is 1.  No request is specified",
    ),
    (
        {"max": {"memory": "1Gi"}},
        _with(limits={"memory": "2Gi"}),
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
    ),
    ({"type": "Pod", "max": {"cpu": "1"}}, _with(), "maximum cpu usage per Pod is 1.  No limit is specified"),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        _with({"cpu": "1"}, {"cpu": "3"}),
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        _with({"cpu": "1"}),
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
    ),
]


@pytest.mark.parametrize(("item", "body", "why"), REFUSED)
def test_what_is_out_of_range_is_refused(browser, item, body, why):
    _ranged(browser, **item)
    answer = browser.post(PODS, body)
    assert (answer.code, answer.text) == (403, f'pods "a" is forbidden: {why}')


def test_a_whole_pod_may_be_limited_and_a_claim(browser):
    items = [
        {"type": "Pod", "max": {"cpu": "2"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
    ]
    browser.post(RANGES, {"metadata": {"name": "r"}, "spec": {"limits": items}})
    second = {"name": "second", "image": "i", "resources": {"limits": {"cpu": "1500m"}}}
    body = _with(limits={"cpu": "1"})
    body["spec"]["containers"].append(second)
    assert "maximum cpu usage per Pod is 2, but limit is 2500m" in browser.post(PODS, body).text
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    told = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    assert told in browser.post(claims, {"metadata": {"name": "c"}, "spec": spec}).text
