"""Every field of our kinds is accepted, stored, given back and explained by the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.kinds import KINDS, Kind
from tests.crds.whole_objects import SPECS, STATUSES, given
from tests.server.browser import MERGE, Browser
from tools.fields import fields_of

CASES = [pytest.param(kind, value, id=f"{kind}-{value['metadata']['name']}")
         for kind, values in SPECS.items() for value in values]  # fmt: skip


def collection(row: Kind) -> str:
    scope = "/namespaces/default" if row.namespaced else ""
    return f"/apis/{row.api_version}{scope}/{row.plural}"


@pytest.fixture
def server() -> Iterator[Browser]:
    found = Browser()
    with found.runner:
        yield found


@pytest.mark.parametrize("kind", SPECS)
def test_the_objects_give_every_field(kind: str) -> None:
    assert [field.path for field in fields_of(KINDS[kind]) if field.path not in given(kind)] == []


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_what_is_written_is_stored(server: Browser, kind: str, value: Any) -> None:
    row = KINDS[kind]
    for name in ("root", "default"):
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
        queues = collection(KINDS["Queue"])
        server("POST", queues, queue)
        server("PATCH", f"{queues}/{name}/status", {"status": {"state": "Open"}}, MERGE)
    written = {"apiVersion": row.api_version, "kind": kind, **value}
    answer = server("POST", f"{collection(row)}?fieldValidation=Strict", written)
    assert answer.code == 201, answer.body
    below = "/status" if row.status else ""
    url = f"{collection(row)}/{value['metadata']['name']}"
    status = {"status": STATUSES[kind]} if kind in STATUSES else {}
    if status:
        assert server("PATCH", url + below, status, MERGE).code == 200
    found = server("GET", url).body
    expected = {**value, **status}
    assert {key: found[key] for key in expected if key != "metadata"} == {
        key: expected[key] for key in expected if key != "metadata"
    }


def test_every_field_is_explained(server: Browser) -> None:
    """OpenAPI v3, which `kubectl explain` reads, has every field with its sentence."""
    for kind in SPECS:
        row = KINDS[kind]
        text = server("GET", f"/openapi/v3/apis/{row.api_version}").content.decode()
        missing = [field.path for field in fields_of(row) if field.meaning not in text.replace('\\"', '"')]
        assert missing == [], kind
