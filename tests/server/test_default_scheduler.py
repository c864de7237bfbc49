"""The embedded cluster's default scheduler places pods, and tells of those that it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.kube.recorder import Regarding
from stromboli.live.up.default_scheduler import DefaultScheduler
from tests.server.browser import Browser

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def browser() -> Iterator[Browser]:
    found = Browser()
    with found.runner:
        yield found


class Told:
    """What would be recorded: reasons and texts by pod."""

    def __init__(self) -> None:
        self.events: dict[str, tuple[str, str]] = {}

    def record(self, about: Regarding, _: str, reason: str, message: str) -> None:
        self.events[about.name] = (reason, message)


def test_a_pod_that_cannot_be_read_is_told_and_keeps_no_other_waiting(browser: Browser) -> None:
    told = Told()
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    browser("POST", "/api/v1/nodes", {"metadata": {"name": "n0"}, "status": {"allocatable": amounts}})
    for name, cpu in (("huge", "9e18"), ("usual", "1"), ("large", "100")):
        container = {"name": "c", "image": "one", "resources": {"requests": {"cpu": cpu}}}
        answer = browser("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}})
        assert answer.code == 201
    recorder: Any = told
    DefaultScheduler(browser.api, recorder).look()
    assert browser("GET", f"{PODS}/usual").body["spec"]["nodeName"] == "n0"
    assert {name: reason for name, (reason, _) in told.events.items()} == {
        "huge": "FailedScheduling", "usual": "Scheduled", "large": "FailedScheduling",
    }  # fmt: skip
    assert "spec.containers[0].resources.requests.cpu: '9e18' is too large" in told.events["huge"][1]


def test_pods_of_workloads_are_placed_and_none_is_made_up(browser: Browser) -> None:
    recorder: Any = Told()
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "2"}
    browser("POST", "/api/v1/nodes", {"metadata": {"name": "n0"}, "status": {"allocatable": amounts}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    stored = browser(
        "POST", "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "db"}, "spec": spec}
    )
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": stored.body["metadata"]["uid"]}
    for name in ("db-0", "db-1"):
        metadata = {"name": name, "labels": {"a": "b"}, "ownerReferences": [{**owner, "controller": True}]}
        assert browser("POST", PODS, {"metadata": metadata, "spec": template["spec"]}).code == 201
    DefaultScheduler(browser.api, recorder).look()
    assert [browser("GET", f"{PODS}/db-{n}").body["spec"].get("nodeName") for n in (0, 1)] == ["n0", "n0"]
