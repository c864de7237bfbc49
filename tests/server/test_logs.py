"""Logs of simulated pods."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.server.kubelet.logs import followed
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


class Writing:
    """A container that writes a piece, or ends, each time it is looked at."""

    def __init__(self, *pieces: str | None) -> None:
        self.left, self.text = list(pieces), b""
        self.pod = pod("a")
        self.pod["status"] = {"phase": "Running"}

    def look(self):
        piece = self.left.pop(0) if self.left else "end"
        if piece == "end":
            self.pod = {**self.pod, "status": {"phase": "Succeeded"}}
        elif piece == "again":
            self.text = b""
        elif piece is None:
            return None
        else:
            self.text += piece.encode()
        return self.pod

    def written(self, _: object, __: str) -> bytes:
        return self.text

    def pieces(self, **query: str) -> list[str]:
        async def read() -> list[str]:
            return [piece.decode() async for piece in followed(self.look, query, self.written, pause=0)]

        return asyncio.run(read())


@pytest.mark.parametrize(
    ("pieces", "query", "told"),
    [
        (("one\ntw", "", "o\nthree\n", "end"), {}, ["one\ntw", "o\nthree\n"]),
        (("one\ntwo\n", "three\n"), {"tailLines": "1"}, ["two\n", "three\n"]),
        (("one\n", "two\n", "three\n"), {"limitBytes": "6"}, ["one\n", "tw"]),
        (("one\n", "again", "two\n", None, "never"), {}, ["one\n", "two\n"]),
        ((None,), {}, []),
        (("", "first\n", "second\n"), {"tailLines": "0"}, ["first\n", "second\n"]),
    ],
)
def test_a_log_that_is_followed_comes_as_it_is_written(pieces, query, told):
    assert Writing(*pieces).pieces(**query) == told


def test_a_log_that_is_followed_ends_with_its_pod(browser):
    body = pod("a")
    body["metadata"]["annotations"] = LOGGED
    browser.post(PODS, body)
    stored = browser.api.store.get(("", "pods"), ("default", "a")).body
    browser.api.store.put(("", "pods"), {**stored, "status": {"phase": "Succeeded"}})
    answer = browser.get(f"{PODS}/a/log?follow=true")
    assert (answer.code, answer.content) == (200, b"one\ntwo\nthree")
    assert dict(answer.headers)["content-type"].startswith("text/plain")
