"""Large bodies are decoded outside the event loop, few at a time, and other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stromboli.cluster.files import yaml_values
from stromboli.server.http import bodies
from tests.server.browser import CONFIGS, TOKEN, Browser, config

YAML = "application/yaml"
LONGEST_WAIT = 10.0
"""Seconds after which a wait for what should have come fails."""


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def _yaml(name, size):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  text: {'x' * size}\n".encode()


def _post(browser, name, size):
    return browser._ask("POST", CONFIGS, _yaml(name, size), YAML, "", TOKEN)


def _get(browser, path):
    return browser._ask("GET", path, b"", YAML, "", TOKEN)


def test_while_a_large_body_is_decoded_others_are_answered(browser, monkeypatch):
    answered, begun, load = threading.Event(), threading.Event(), yaml_values.load

    def slow(text):
        begun.set()
        assert answered.wait(LONGEST_WAIT), "nothing was answered meanwhile"
        return load(text)

    monkeypatch.setattr(bodies, "load", slow)

    async def story():
        large = asyncio.create_task(_post(browser, "large", bodies.LARGE))
        assert await asyncio.to_thread(begun.wait, LONGEST_WAIT)
        meanwhile = await _get(browser, "/version")
        answered.set()
        return meanwhile.code, (await large).code

    assert browser.runner.run(story()) == (200, 201)


def test_only_few_large_bodies_are_decoded_at_once_and_all_in_the_end(browser, monkeypatch):
    load, begun, go_on, waiting = yaml_values.load, threading.Semaphore(0), threading.Event(), []

    def slow(text):
        waiting.append(text)
        begun.release()
        assert go_on.wait(LONGEST_WAIT)
        return load(text)

    monkeypatch.setattr(bodies, "load", slow)

    async def story():
        posts = [asyncio.create_task(_post(browser, f"c{number}", bodies.LARGE)) for number in range(6)]
        for _ in range(bodies.AT_ONCE):
            assert await asyncio.to_thread(begun.acquire, timeout=LONGEST_WAIT)
        for _ in range(10):  # by now all the others would have begun
            await _get(browser, "/version")
            await asyncio.to_thread(int)
        at_once = len(waiting)
        go_on.set()
        return at_once, [(await post).code for post in posts]

    assert browser.runner.run(story()) == (bodies.AT_ONCE, [201] * 6)


@pytest.mark.parametrize("size", [10, bodies.LARGE])
def test_a_body_that_cannot_be_decoded_is_refused_whatever_its_size(browser, size):
    assert browser("POST", CONFIGS, b"{" + b" " * size, YAML).text.startswith("error decoding YAML")
    assert browser("POST", CONFIGS, b"{" + b" " * size).code == 400
    assert browser.post(CONFIGS, config("c", text="x" * size)).code == 201
