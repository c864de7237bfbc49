"""Logs of simulated pods."""

from __future__ import annotations

import pytest

from tests.server.browser import PODS, Browser, pod


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


LOGGED = {"simulation.stromboli.dev/logs": "one\ntwo\nthree"}


@pytest.mark.parametrize(
    ("query", "text"),
    [("", "one\ntwo\nthree\n"), ("?tailLines=2", "two\nthree\n"), ("?limitBytes=4", "one\n")],
)
def test_a_log_is_what_an_annotation_states(browser, query, text):
    body = pod("a")
    body["metadata"]["annotations"] = LOGGED
    browser.post(PODS, body)
    waiting = browser.get(f"{PODS}/a/log{query}")
    assert (waiting.code, waiting.text) == (400, "pod a does not have a host assigned")
    stored = browser.api.store.get(("", "pods"), ("default", "a")).body
    browser.api.store.put(("", "pods"), {**stored, "status": {"phase": "Running"}})
    answer = browser.get(f"{PODS}/a/log{query}")
    assert (answer.code, answer.content.decode()) == (200, text)
    refused = browser.get(f"{PODS}/a/log?container=other")
    assert (refused.code, refused.text) == (400, "container other is not valid for pod a")
    refused = browser.get(f"{PODS}/a/log?previous=true")
    assert (refused.code, refused.text) == (400, 'previous terminated container "main" in pod "a" not found')
