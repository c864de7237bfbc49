"""Whatever users have done to a cluster, it starts again: what is wrong is reported."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from stromboli.crds.manifests import definitions
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.live.scheduler.configuration import Source
from stromboli.live.up.shown_configuration import show_configuration
from stromboli.server.controllers import own_definitions
from stromboli.server.storage.journal import SqliteJournal
from tests.server.browser import Browser

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = f"{DEFINITIONS}/queues.scheduling.volcano.sh"


@contextmanager
def _started(folder):
    journal = SqliteJournal(folder / "base")
    browser = Browser(journal=journal)
    with browser.runner:
        yield browser
    journal.close()


def test_a_definition_in_the_place_of_ours_that_cannot_become_ours_is_set_aside(tmp_path, caplog):
    with _started(tmp_path) as browser:
        theirs = browser.get(QUEUES).body
        assert browser.delete(QUEUES).code == 200
        theirs["metadata"] = {"name": theirs["metadata"]["name"]}
        theirs["spec"]["scope"] = "Namespaced"
        assert browser.post(DEFINITIONS, theirs).code == 201
    for _ in range(2):
        with _started(tmp_path) as browser:
            assert browser.get(QUEUES).body["spec"]["scope"] == "Cluster"
            queue = {"metadata": {"generateName": "q"}, "spec": {"weight": 1}}
            assert browser.post("/apis/scheduling.volcano.sh/v1beta1/queues", queue).code == 201
    assert [("queues.scheduling.volcano.sh" in line, "was set aside" in line) for line in caplog.messages] == [
        (True, True)
    ]


def test_objects_that_cannot_be_of_our_definition_go_with_theirs(tmp_path, caplog):
    with _started(tmp_path) as browser:
        theirs = browser.get(QUEUES).body
        assert browser.delete(QUEUES).code == 200
        theirs["metadata"] = {"name": theirs["metadata"]["name"]}
        theirs["spec"]["scope"] = "Namespaced"
        assert browser.post(DEFINITIONS, theirs).code == 201
        queue = {"metadata": {"name": "q"}, "spec": {"weight": 1}}
        assert browser.post("/apis/scheduling.volcano.sh/v1beta1/namespaces/default/queues", queue).code == 201
    for _ in range(2):
        with _started(tmp_path) as browser:
            assert browser.get("/apis/scheduling.volcano.sh/v1beta1/queues").body["items"] == []
    assert [line.partition(" of the journal")[0] for line in caplog.messages] == [
        "customresourcedefinitions.apiextensions.k8s.io queues.scheduling.volcano.sh",
        "queues.scheduling.volcano.sh default/q",
    ]


def test_a_quota_that_forbids_what_every_cluster_has_keeps_no_start(tmp_path, caplog):
    with _started(tmp_path) as browser:
        assert browser.delete("/api/v1/namespaces/default/services/kubernetes").code == 200
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"services": "0"}}}
        assert browser.post("/api/v1/namespaces/default/resourcequotas", quota).code == 201
    with _started(tmp_path) as browser:
        assert browser.get("/api/v1/namespaces/default/services/kubernetes").code == 404
        assert browser.get(QUEUES).code == 200
    assert [line.partition(":")[0] for line in caplog.messages] == ["Service kubernetes is missing"]


def test_a_configuration_that_may_not_be_shown_counts_all_the_same(tmp_path, caplog):
    with _started(tmp_path) as browser:
        browser.post("/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
        assert browser.post("/api/v1/namespaces/volcano-system/resourcequotas", quota).code == 201
        source = show_configuration(browser.api, Source(), tmp_path)
        assert source.text() == DEFAULT_CONFIG
    assert caplog.messages[0].startswith("ConfigMap volcano-system/volcano-scheduler-configmap cannot be written: ")


def test_our_definitions_are_those_that_users_can_apply_and_clusters_share_no_part_of_them():
    one, other = (list(own_definitions.own_definitions()) for _ in range(2))
    assert one == definitions()
    one[0]["spec"]["versions"].clear()
    assert other == definitions()


@pytest.mark.parametrize(
    ("broken", "said"),
    [({"scope": "Everywhere"}, "Unsupported value"), ({"versions": None}, "versions"), ({"colour": "red"}, "colour")],
)
def test_a_definition_of_ours_that_a_cluster_would_refuse_is_noticed(broken, said, monkeypatch):
    first: dict[str, Any] = definitions()[0]
    monkeypatch.setattr(own_definitions, "definitions", lambda: [{**first, "spec": {**first["spec"], **broken}}])
    with pytest.raises(ValueError, match=f"is no sound definition: .*{said}"):
        own_definitions._checked.__wrapped__()
