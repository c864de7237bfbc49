"""The ConfigMap of the embedded cluster: made where it is missing, a user's text stays and is followed."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.live.installation.manifests import Parts, manifests
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.up.shown_configuration import show_configuration
from stromboli.live.up.up import Setup, up
from stromboli.narration.observe import Counting
from stromboli.server.storage.journal import SqliteJournal
from stromboli.server.verbs.writing import Options
from tests.server.browser import APPLY, MERGE, Browser

CONFIG_MAP = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
EDITED = "actions: allocate\n"


@contextmanager
def _started(folder, file=""):
    """A server with a journal, and where its scheduler finds the configuration."""
    journal = SqliteJournal(folder / "base")
    browser = Browser(journal=journal)
    with browser.runner:
        yield browser, show_configuration(browser.api, Source(str(file) if file else ""), folder)
    journal.close()


def _edit(browser, text, media=MERGE):
    return browser("PATCH", f"{CONFIG_MAP}?fieldManager=kubectl-edit", _config_map(text), media)


def _config_map(text):
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}


def _shown(browser):
    return browser.get(CONFIG_MAP).body["data"]["volcano-scheduler.conf"]


def _configuration(source):
    return Configuration(source, lambda *told, **fields: None)  # type: ignore[arg-type]


def _actions(configuration):
    return [str(action) for action in configuration.current.actions]


def test_the_scheduler_follows_what_a_user_writes_and_the_next_start_keeps_it(tmp_path):
    with _started(tmp_path) as (browser, source):
        assert _shown(browser) == DEFAULT_CONFIG
        configuration = _configuration(source)
        assert (_actions(configuration), configuration.refresh()) == (["enqueue", "allocate", "backfill"], False)
        assert _edit(browser, EDITED).code == 200
        assert (configuration.refresh(), _actions(configuration)) == (True, ["allocate"])
    for _ in range(2):
        with _started(tmp_path) as (browser, source):
            assert _shown(browser) == EDITED
            assert _actions(_configuration(source)) == ["allocate"]


def test_a_file_counts_and_is_shown_unless_a_user_has_changed_the_config_map(tmp_path, caplog):
    file = tmp_path / "mine.conf"
    file.write_text("actions: backfill\n")
    with _started(tmp_path) as (browser, _):
        assert _shown(browser) == DEFAULT_CONFIG
    with _started(tmp_path, file) as (browser, source):
        assert (_shown(browser), source.path) == ("actions: backfill\n", str(file))
        assert caplog.messages == []
        _edit(browser, EDITED)
    with _started(tmp_path, file) as (browser, source):
        assert (_shown(browser), source.path) == (EDITED, str(file))
    assert [line.endswith(f"but the configuration is that of {file}") for line in caplog.messages] == [True]


def test_a_running_cluster_keeps_the_configuration_and_names_the_config_map_that_is_refused(tmp_path):
    told = Counting()
    name = "ConfigMap volcano-system/volcano-scheduler-configmap"

    async def story():
        async with up(Setup(data=tmp_path, period=0.05, observer=told)) as cluster:
            api = cluster.serving.api
            resource = api.catalogue.stored()["", "configmaps"]
            key = ("volcano-system", "volcano-scheduler-configmap")
            data = {"data": {"volcano-scheduler.conf": "# mine\nactions: allocat\n"}}
            api.writer.patch(resource, key, lambda body: body | data, "", Options())
            for _ in range(100):
                await asyncio.sleep(0.1)
                found = [one for one in api.bodies("", "events") if one["reason"] == "ConfigurationRefused"]
                if found:
                    return found, (api.body("", "configmaps", *key) or {})["metadata"]["uid"]
            raise AssertionError("no event")

    (event,), uid = asyncio.run(story())
    (line,) = told.of("config_invalid")
    assert line["text"] == name
    why, told_too, _ = str(line["error"]).partition("; using previous configuration")
    assert told_too
    assert why.startswith(f"{name}:2: ")
    assert "allocat" in why
    assert str(tmp_path) not in why
    assert event["message"] == f"{why}; the previous configuration stays in force"
    assert (event["type"], event["involvedObject"]["uid"]) == ("Warning", uid)


def test_the_built_in_configuration_never_changes():
    configuration = _configuration(Source(""))
    assert configuration.refresh() is False
    assert _actions(configuration) == ["enqueue", "allocate", "backfill"]


@pytest.mark.parametrize("text", ["actions: [", "actions: nothing-that-is-known\n", "plugins: 5\n"])
def test_a_config_map_that_cannot_be_used_keeps_no_start_and_counts_once_it_is_mended(tmp_path, caplog, text):
    with _started(tmp_path) as (browser, _):
        _edit(browser, text)
    with _started(tmp_path) as (browser, source):
        assert _shown(browser) == text
        configuration = _configuration(source)
        assert _actions(configuration) == ["enqueue", "allocate", "backfill"]
        _edit(browser, EDITED)
        assert (configuration.refresh(), _actions(configuration)) == (True, ["allocate"])
    (line,) = caplog.messages
    assert line.startswith("the built-in configuration counts until ConfigMap volcano-system/volcano-scheduler-config")


def test_a_config_map_without_the_configuration_changes_nothing_and_is_told(tmp_path, caplog):
    with _started(tmp_path) as (browser, source):
        configuration = _configuration(source)
        assert browser.patch(CONFIG_MAP, {"data": None}).code == 200
        assert configuration.refresh() is False
        assert browser.delete(CONFIG_MAP).code == 200
        assert configuration.refresh() is False
    assert [line.partition(":")[2] for line in caplog.messages] == [" the configuration stays as it is"]


def _applied(browser, manifest):
    metadata, version = manifest["metadata"], manifest["apiVersion"]
    resource = browser.api.catalogue.of_kind(version, manifest["kind"])
    group = "/api/v1" if version == "v1" else f"/apis/{version}"
    place = f"/namespaces/{metadata['namespace']}" if resource.namespaced else ""
    url = f"{group}{place}/{resource.plural}/{metadata['name']}?fieldManager=kubectl"
    return browser.patch(url, manifest, APPLY)


def test_the_manifests_of_an_installation_apply_without_a_conflict_and_their_configuration_counts(tmp_path):
    with _started(tmp_path) as (browser, source):
        configuration = _configuration(source)
        for _ in range(2):
            answers = [_applied(browser, manifest) for manifest in manifests(Parts("stromboli:1"))]
            assert {answer.code for answer in answers} <= {200, 201}
        assert _shown(browser) == CONFIGURATION
        assert configuration.refresh()
    with _started(tmp_path) as (browser, _):
        assert _shown(browser) == CONFIGURATION, "it is the user's now"


def test_what_a_user_has_edited_is_not_taken_over_by_an_apply(tmp_path):
    with _started(tmp_path) as (browser, _):
        _edit(browser, EDITED)
        answer = _applied(browser, _config_map(CONFIGURATION))
        assert (answer.code, 'conflict with "kubectl-edit"' in answer.text) == (409, True)
        assert _shown(browser) == EDITED


def test_the_scheduler_of_a_cluster_reads_what_its_config_map_says(tmp_path, monkeypatch):
    sources = []

    async def run(scheduler):
        await asyncio.Event().wait()

    made = LiveScheduler.__init__

    def noted(scheduler, client, options, source, **more):
        sources.append(source)
        made(scheduler, client, options, source, **more)

    monkeypatch.setattr(LiveScheduler, "run", run)
    monkeypatch.setattr(LiveScheduler, "__init__", noted)

    async def story():
        async with up(Setup(data=tmp_path, controllers=False)):
            return sources[-1].path

    assert asyncio.run(story()) == str(tmp_path / "volcano-scheduler.conf")
    assert (tmp_path / "volcano-scheduler.conf").read_text() == DEFAULT_CONFIG
