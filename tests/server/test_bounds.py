"""What a client may cost the server: sizes and times of heads, bodies, objects, histories, and the number of events."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from typing import Any

import msgspec
import pytest

from stromboli.cluster.body import encode
from stromboli.server.api import Api
from stromboli.server.controllers import node_lifecycle
from stromboli.server.http import bodies, connections
from stromboli.server.schema.definitions import COLLECTION
from stromboli.server.storage import store
from stromboli.server.storage.journal import SqliteJournal
from stromboli.server.storage.store import Row
from tests.server.browser import APPLY, CONFIGS, JSON, PODS, STRATEGIC, Browser, config, definition, pod
from tests.server.raw_connections import connected, served


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


async def _pour(writer, piece, most):
    """Send until the other end takes no more; answers how many bytes it took."""
    sent = 0
    try:
        while sent < most:
            writer.write(piece)
            await asyncio.wait_for(writer.drain(), 1.0)
            sent += len(piece)
    except (ConnectionError, TimeoutError):
        pass
    return sent


def test_a_head_without_end_is_refused(tmp_path):
    async def story(found):
        async with connected(found) as (reader, writer):
            writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\nX: ")
            answer = asyncio.create_task(reader.readline())
            return await _pour(writer, b"a" * 65536, 64 << 20), await asyncio.wait_for(answer, 5)

    sent, line = served(tmp_path, story)
    assert line == b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    assert sent < 16 << 20


def test_a_head_of_many_short_lines_is_refused_too(tmp_path):
    async def story(found):
        async with connected(found) as (reader, writer):
            lines = b"".join(b"X-%d: y\r\n" % number for number in range(200_000))
            writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
            return await reader.readline()

    assert b" 431 " in served(tmp_path, story)


@pytest.mark.parametrize("token", ["guess", None])
def test_a_body_is_not_read_before_its_user_is_known_nor_beyond_its_limit(tmp_path, token):
    async def story(found):
        async with connected(found) as (reader, writer):
            bearer = (token or found.access.token).encode()
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\nAuthorization: Bearer %s\r\n\r\n"
            writer.write(head % (PODS.encode(), bearer))
            answer = asyncio.create_task(reader.readline())
            return await _pour(writer, b" " * 65536, 100 << 20), await asyncio.wait_for(answer, 5)

    sent, line = served(tmp_path, story)
    assert line.split()[1] == (b"413" if token is None else b"401")
    assert sent < 16 << 20


def test_a_body_in_pieces_may_not_grow_beyond_it_either(tmp_path):
    async def story(found):
        async with connected(found) as (reader, writer):
            bearer = found.access.token.encode()
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer %s\r\n\r\n"
            writer.write(head % (PODS.encode(), bearer))
            answer = asyncio.create_task(reader.readuntil(b'"code":413'))
            await _pour(writer, b"10000\r\n" + b" " * 65536 + b"\r\n", 20 << 20)
            return await asyncio.wait_for(answer, 5)

    answer = served(tmp_path, story)
    assert b" 413 " in answer.splitlines()[0]
    assert b"Request entity too large: limit is 3145728" in answer


@pytest.mark.parametrize("piece", [b"X: " + b"v" * 65536 + b"\r\n", b"v" * 65536], ids=["many", "one"])
def test_trailers_without_end_are_not_read(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(connections, "_REST_WITHIN", 15.0)

    async def story(found):
        async with connected(found) as (_, writer):
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: "
            writer.write(head % PODS.encode())
            return await _pour(writer, piece, 64 << 20)

    assert served(tmp_path, story) < 16 << 20


def test_a_request_refused_with_a_small_body_keeps_its_connection(tmp_path):
    async def story(found):
        async with connected(found) as (reader, writer):
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n" % PODS.encode()
            codes = []
            for _ in range(2):
                writer.write(head)
                await asyncio.sleep(0.1)  # the answer goes out before the body comes in
                writer.write(b"{   }")
                codes.append((await reader.readline()).split()[1])
                rest = await reader.readuntil(b"\r\n\r\n")
                length = int(next(one for one in rest.splitlines() if b"content-length" in one).split()[1])
                await reader.readexactly(length)
            return codes

    assert served(tmp_path, story) == [b"401", b"401"]


@pytest.mark.parametrize("tls", [False, True])
def test_a_connection_that_begins_and_does_not_go_on_is_closed(tmp_path, monkeypatch, tls):
    monkeypatch.setattr(connections, "HEAD_WITHIN", 0.3)
    monkeypatch.setattr("stromboli.server.http.accepting.HEAD_WITHIN", 0.3)

    async def story(found):
        async with connected(found, tls=tls) as (reader, writer):
            writer.write(b"GET /version HTTP/1.1\r\nHost:" if tls else b"\x16\x03\x01")
            return await asyncio.wait_for(reader.read(), 5)

    assert served(tmp_path, story) == b""


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(bodies, "WITHIN", 0.2)
    monkeypatch.setattr(connections, "_REST_WITHIN", 0.2)

    async def story(found):
        async with connected(found) as (reader, writer):
            bearer = found.access.token.encode()
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Bearer %s\r\n\r\n{"
            writer.write(head % (PODS.encode(), bearer))
            return await asyncio.wait_for(reader.read(), 5)

    assert b"request did not complete within the allotted timeout" in served(tmp_path, story)


# ------------------------------------------------------------------------------------------------ objects


def test_an_object_is_as_large_as_a_value_of_etcd_at_most(browser):
    large = config("large", **{f"k{number}": "x" * 100_000 for number in range(16)})
    began = time.perf_counter()
    answer = browser.post(CONFIGS, large)
    assert (answer.code, answer.text) == (413, "etcdserver: request is too large")
    assert time.perf_counter() - began < 5
    assert browser.get(f"{CONFIGS}/large").code == 404
    del large["data"]["k15"], large["data"]["k14"]
    assert browser.post(CONFIGS, large).code == 201


def test_what_is_nested_too_deep_is_refused_in_every_form(browser):
    deep = b'{"metadata":{"name":"d"},"spec":' + b'{"a":' * 300 + b"1" + b"}" * 301
    assert "nested more than" in browser("POST", PODS, deep).text
    assert "nested more than" in browser("PATCH", f"{PODS}/a?fieldManager=x", deep, APPLY).text
    assert browser("POST", PODS, b"[" * 100_000).code == 400


def test_changes_are_remembered_up_to_a_weight_and_the_heaviest_collection_forgets(browser, monkeypatch):
    browser.post(PODS, pod("light"))
    monkeypatch.setattr(store, "HEAVIEST_HISTORY", 1 << 20)
    for number in range(40):
        browser.post(CONFIGS, config(f"c{number}", text="x" * 50_000))
        secret = {"metadata": {"name": f"s{number}"}, "stringData": {"text": "y" * 50_000}}
        browser.post("/api/v1/namespaces/default/secrets", secret)
    kept = {name: browser.api.store.of(name) for name in browser.api.store.names()}
    for one in kept.values():
        assert one.weight == sum(len(change.entry.encoded) for change in one.changes)
    assert (1 << 19) - 200_000 < sum(one.weight for one in kept.values()) <= 1 << 20
    assert browser.events(f"{CONFIGS}?resourceVersion=2")[0]["object"]["code"] == 410
    floor = kept["", "configmaps"].floor
    latest = browser.events(f"{CONFIGS}?resourceVersion={floor}")
    assert len(latest) == len(kept["", "configmaps"].changes) > 1
    since = kept["", "pods"].floor
    assert [event["type"] for event in browser.events(f"{PODS}?resourceVersion={since}")] == ["ADDED"]


def test_a_change_heavier_than_all_that_may_be_remembered_is_forgotten_at_once(browser, monkeypatch):
    monkeypatch.setattr(store, "HEAVIEST_HISTORY", 10_000)
    browser.post(CONFIGS, config("large", text="x" * 20_000))
    assert sum(browser.api.store.of(name).weight for name in browser.api.store.names()) <= 10_000
    assert browser.get(f"{CONFIGS}/large").code == 200


def _events_left_of(browser, messages):
    for number, message in enumerate(messages):
        event = {"metadata": {"name": f"e{number}"}, "involvedObject": {"namespace": "default"}, "message": message}
        assert browser.post("/api/v1/namespaces/default/events", event).code == 201
    browser.api.clockwork.tick()
    return [item["metadata"]["name"] for item in browser.get("/api/v1/events").body["items"]]


def test_events_are_kept_up_to_a_number(browser, monkeypatch):
    monkeypatch.setattr(node_lifecycle, "MOST_EVENTS", 5)
    assert _events_left_of(browser, ["x"] * 9) == ["e4", "e5", "e6", "e7", "e8"]


@pytest.mark.parametrize(
    ("kilobytes", "left"),
    [
        ([30] * 5, ["e2", "e3", "e4"]),
        ([90, 1, 1, 1], ["e0", "e1", "e2", "e3"]),
        ([5, 99, 1], ["e2"]),
        ([1, 1, 120], []),
    ],
)
def test_events_are_kept_up_to_a_weight(browser, monkeypatch, kilobytes, left):
    monkeypatch.setattr(node_lifecycle, "HEAVIEST_EVENTS", 100_000)
    assert _events_left_of(browser, ["x" * 1000 * size for size in kilobytes]) == left


NO_SECONDS = ["²", "١", "-1", "9" * 400, "1e9"]


@pytest.mark.parametrize("number", NO_SECONDS)
def test_numbers_of_a_watch_are_ascii_or_nothing(browser, number):
    from urllib.parse import quote

    assert browser.get(f"{PODS}?watch=true&resourceVersion={quote(number)}").code == 400
    assert browser.get(f"{PODS}?watch=true&timeoutSeconds={quote(number)}").code in (200, 400)


# ------------------------------------------------------------------------------------------------ journals


def _journal_with(path, *rows):
    journal = SqliteJournal(path)
    Api(lambda call: None, journal=journal)
    for row in rows:
        journal.write(row)
    journal.close()


def _row(collection, body, version=900):
    metadata = body["metadata"]
    return Row(collection, (metadata.get("namespace", ""), metadata["name"]), version, encode(body))


NAMELESS = definition()
del NAMELESS["spec"]["names"]["kind"]
BUDGET = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"minAvailable": {}, "selector": {}}}
BAD_ROWS = {
    "a definition without a kind": _row(COLLECTION, NAMELESS),
    "a budget that asks for a map": _row(("policy", "poddisruptionbudgets"), BUDGET),
    "no JSON": Row(("", "configmaps"), ("default", "x"), 900, b"{"),
    "no object": Row(("", "configmaps"), ("default", "x"), 900, b"[]"),
    "another name": Row(("", "configmaps"), ("default", "x"), 900, encode(config("y"))),
    "owners that are none": _row(
        ("", "configmaps"), {"metadata": {"name": "o", "namespace": "default", "ownerReferences": ["me"]}}
    ),
}


@pytest.mark.parametrize("row", BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_a_bad_object_in_a_journal_is_told_and_set_aside(tmp_path, caplog, row):
    path = tmp_path / "base"
    good = _row(("", "configmaps"), {**config("good"), "metadata": {"name": "good", "namespace": "default"}}, 901)
    _journal_with(path, row, good)
    caplog.set_level(logging.ERROR)
    journal = SqliteJournal(path)
    found = Api(lambda call: None, journal=journal)
    assert found.store.get(row.collection, row.key) is None
    assert found.store.get(*good[:2]) is not None
    assert "was set aside" in caplog.text
    assert str(path) in caplog.text
    journal.close()
    with sqlite3.connect(path) as base:
        assert base.execute("SELECT name, body FROM aside").fetchall() == [(row.key[1], row.encoded)]
        assert not base.execute("SELECT 1 FROM objects WHERE version = 900").fetchall()


def test_a_refused_definition_leaves_a_journal_that_starts(tmp_path):
    path = tmp_path / "base"
    journal = SqliteJournal(path)
    browser = Browser(journal=journal)
    with browser.runner:
        assert browser.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", NAMELESS).code == 422
    journal.close()
    journal = SqliteJournal(path)
    Browser(journal=journal)
    journal.close()


# ------------------------------------------------------------------------------------------------ forms of values


WRONG_VALUES = [
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"minAvailable": {}}, "of type int32"),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"minAvailable": 1.5}, "of type int32"),
    ("/apis/batch/v1/namespaces/default/jobs", {"parallelism": 1 << 40}, "number 1099511627776 into Go struct field"),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"renewTime": "noon"}, 'parsing time "noon" as'),
]


@pytest.mark.parametrize(("url", "spec", "text"), WRONG_VALUES)
def test_values_of_the_wrong_form_cannot_be_read(browser, url, spec, text):
    answer = browser.post(url, {"metadata": {"name": "x"}, "spec": spec})
    assert (answer.code, text in answer.text) == (400, True), answer.content


def test_data_that_is_no_base64_cannot_be_read(browser):
    secret = {"metadata": {"name": "s"}, "data": {"key": "ab$="}}
    answer = browser.post("/api/v1/namespaces/default/secrets", secret)
    assert "illegal base64 data at input byte 2" in answer.text


def test_a_host_that_is_no_host_is_answered(browser):
    """The address of a request is its path, whatever stands in its other fields."""
    answer = browser.get("/api")
    assert answer.code == 200
    assert msgspec.json.decode(browser.get("/api/v1/namespaces/default/pods/[").content)["code"] == 404


def test_a_patch_of_anything_is_bounded(browser):
    browser.post(PODS, pod("a"))
    many = [{"op": "test", "path": "/metadata/name", "value": "a"}] * 10_001
    assert browser.patch(f"{PODS}/a", many, JSON).code == 413
    browser.post(CONFIGS, config("c", text="x" * 1000))
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(40)]
    assert browser.patch(f"{CONFIGS}/c", doubling, JSON).code == 422


# ------------------------------------------------------------------------------------------------ what explodes


def _timed(browser, patch, media, url):
    began = time.process_time()
    answer = browser.patch(url, patch, media)
    return answer, time.process_time() - began


def test_a_patch_of_a_long_list_looks_at_each_item_once(browser):
    volumes = [{"name": f"v{number}"} for number in range(9_000)]
    assert browser.post(PODS, pod("a", volumes=volumes)).code == 201
    patch = {"spec": {"volumes": [{"name": f"w{number}"} for number in range(9_000)]}}
    answer, seconds = _timed(browser, patch, STRATEGIC, f"{PODS}/a")
    assert (answer.code, seconds < 4) == (422, True), "pods' volumes are fixed, but not because it took so long"
    finalizers = [f"example.com/f{number}" for number in range(9_000)]
    browser.post(CONFIGS, config("c"))
    assert browser.patch(f"{CONFIGS}/c", {"metadata": {"finalizers": finalizers}}).code == 200
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[:-1]}}
    answer, seconds = _timed(browser, less, STRATEGIC, f"{CONFIGS}/c")
    assert (answer.body["metadata"]["finalizers"], seconds < 4) == (finalizers[-1:], True)


def test_other_items_of_one_key_stay_when_one_is_patched(browser):
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    services = "/api/v1/namespaces/default/services"
    browser.post(services, {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    patch = {"spec": {"ports": [{"port": 53, "name": "tcp"}, {"port": 54, "name": "new"}]}}
    answer = browser.patch(f"{services}/s", patch, STRATEGIC)
    assert [port["name"] for port in answer.body["spec"]["ports"]] == ["tcp", "u", "new"]


def test_a_selector_has_so_many_terms(browser):
    terms = ",".join(f"!k{number}" for number in range(1_001))
    assert browser.get(f"{PODS}?labelSelector={terms}").code == 400
    assert browser.get(f"{PODS}?labelSelector={terms.rpartition(',')[0]}").code == 200
    assert browser.get(f"{PODS}?fieldSelector={','.join(['metadata.name!=a'] * 1_001)}").code == 400


def test_deep_objects_of_many_fields_are_not_followed_beyond_bounds(browser):
    version = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = definition(schema={"openAPIV3Schema": version})
    browser.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    deep: dict[str, Any] = {f"k{number}": 1 for number in range(40_000)}
    for _ in range(150):
        deep = {"a": deep}
    wish = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": deep}
    url = "/apis/example.com/v1/namespaces/default/widgets/w?fieldManager=me"
    answer, seconds = _timed(browser, wish, APPLY, url)
    assert (answer.code, seconds < 5) == (413, True), answer.content[:300]


_HEAD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
OWNERS = [5, "f:data", {"f:data": 5}, {"f:data": {"k:{": {}}}, {"data": {}}, {"k:[]": {}}]


@pytest.mark.parametrize("fields", OWNERS)
def test_owners_that_cannot_be_followed_are_not_taken(browser, fields):
    browser.patch(f"{CONFIGS}/c?fieldManager=me", {"data": {"a": "1"}, **_HEAD}, APPLY)
    known = browser.get(f"{CONFIGS}/c").body["metadata"]["managedFields"]
    forged = [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]
    assert browser.patch(f"{CONFIGS}/c", {"metadata": {"managedFields": forged}}).code in (200, 400)
    assert browser.get(f"{CONFIGS}/c").body["metadata"]["managedFields"] == known
    again = browser.patch(f"{CONFIGS}/c?fieldManager=you", {"data": {"a": "2"}, **_HEAD}, APPLY)
    assert again.code == 409
