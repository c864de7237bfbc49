"""Objects of the journal that cannot be used count as existing: what belongs to them is kept, and the log says so."""

from __future__ import annotations

import logging
import sqlite3

import pytest

from stromboli.cluster.body import encode
from stromboli.server.controllers.node_lifecycle import ORPHANED
from stromboli.server.storage.journal import SqliteJournal
from stromboli.server.storage.store import Row
from tests.server.browser import Browser, config, pod

CONFIG_MAPS = ("", "configmaps")
CLAIMED = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}]
UNUSABLE = {
    "its uid can be read": b'{"metadata":{"name":"owner","namespace":"default","uid":"u","labels":5}}',
    "it is no JSON": b'{"metadata":{"uid":"u"',
    "it has no uid": b'{"metadata":{"name":"owner","namespace":"default","labels":5}}',
}


def _row(collection, body, version=900, **metadata):
    body = body | {"metadata": {**body["metadata"], "namespace": "default", **metadata}}
    return Row(collection, ("default", body["metadata"]["name"]), version, encode(body))


def _start(path, *rows):
    journal = SqliteJournal(path)
    for row in rows:
        journal.write(row)
    return Browser(journal=journal), journal


def _names(browser, collection=CONFIG_MAPS):
    return {name for _, name in browser.api.store.of(collection).entries} - {"kube-root-ca.crt"}


@pytest.mark.parametrize("spoilt", UNUSABLE.values(), ids=list(UNUSABLE))
def test_dependents_of_an_owner_set_aside_are_kept_at_this_start_and_later_ones(tmp_path, caplog, spoilt):
    owner = Row(CONFIG_MAPS, ("default", "owner"), 900, spoilt)
    owned = [_row(CONFIG_MAPS, config(name), uid=name, ownerReferences=CLAIMED) for name in ("a", "b")]
    lost = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "w"}]
    stray = _row(CONFIG_MAPS, config("stray"), uid="s", ownerReferences=lost)
    for rows in ([owner, *owned, stray], []):
        caplog.clear()
        caplog.set_level(logging.WARNING)
        browser, journal = _start(tmp_path / "base", *rows)
        assert _names(browser) == {"a", "b"}, "the dependent without an owner is collected"
        kept = [line for line in caplog.messages if line.startswith("configmaps default/owner was set aside")]
        assert len(kept) == 1, "once, however many it owns"
        journal.close()


def test_pods_of_a_node_set_aside_are_kept_until_another_node_of_its_name_is_gone(tmp_path):
    node = Row(("", "nodes"), ("", "n"), 900, b"{")
    run = _row(("", "pods"), pod("p", nodeName="n"), uid="p")
    browser, journal = _start(tmp_path / "base", node, run)

    def later():
        for _ in range(2):
            browser.now += ORPHANED
            browser.api.clockwork.tick()
            browser.settle()
        return _names(browser, ("", "pods"))

    with browser.runner:
        assert later() == {"p"}
        browser.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        browser.delete("/api/v1/nodes/n")
        assert later() == set()
    journal.close()


def test_an_object_that_could_not_be_set_aside_stays_and_later_writes_succeed(tmp_path):
    journal = SqliteJournal(tmp_path / "base")
    journal.write(_row(CONFIG_MAPS, config("a")))
    bad = Row(CONFIG_MAPS, ("default", "a"), 900, None)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.Error):
        journal.set_aside(bad, "")
    journal.write(_row(CONFIG_MAPS, config("b"), 901))
    assert [row.key[1] for row in journal.load()[1]] == ["a", "b"]
    assert list(journal.aside()) == []
    journal.close()
