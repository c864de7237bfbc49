"""Each rule of admission through the embedded API server, which follows the rules by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.browser import Browser
from tests.support.admission_cases import CASES, Case
from tests.support.admission_writes import ONE_WRITE, furnishing, is_refused_by_its_schema, said_to, wanted

BY_SCHEMA: set[str] = set()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = Browser()
    with found.runner:
        for method, path, body, media in furnishing():
            answer = found(method, path, body, media)
            assert answer.code in (200, 201, 409), answer.content
        yield found


@pytest.mark.parametrize("case", ONE_WRITE, ids=lambda case: case.name)
def test_every_rule_through_the_api_server(browser: Browser, case: Case) -> None:
    def call(method: str, path: str, body: Any, media: str) -> tuple[int, Any]:
        answer = browser(method, path, body, media)
        return answer.code, answer.body

    said = said_to(case, call)
    if is_refused_by_its_schema(case, said):
        BY_SCHEMA.add(case.name)
        return
    assert said[: len(wanted(case)) or None] == wanted(case)


def test_most_rules_are_the_webhooks_and_not_the_schemas() -> None:
    assert len(BY_SCHEMA) < len(CASES) / 4, sorted(BY_SCHEMA)
