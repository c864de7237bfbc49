"""Loads of nodes, fetched from real servers on this machine that answer as the monitoring systems do."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stromboli.errors import ApiError, MeasurementError
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler import usage_poller, usage_sources
from stromboli.live.scheduler.usage_poller import UsagePoller, interval_of
from stromboli.live.scheduler.usage_sources import SUPPORTED, CustomMetrics, source_of
from stromboli.model.usage import NodeUsage
from tests.support.certificates import Authority

NOW = 1_800_000_000.0
NODES = ("n1", "n2", "n3")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def asked(
    handler: Handler, settings: dict[str, str], *, nodes: Any = NODES, fills: bool = False,
    tls: ssl.SSLContext | None = None,
) -> dict[str, NodeUsage]:  # fmt: skip
    """What a source finds out from a server that answers with ``handler``."""

    async def story() -> dict[str, NodeUsage]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        address = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            source = source_of({"address": address, **settings}, lambda: NOW, fills=fills)
            assert source is not None
            try:
                return await source.sample(nodes)
            finally:
                await source.close()
        finally:
            await runner.cleanup()

    return asyncio.run(story())


# ---------------------------------------------------------------------- Prometheus


def vector(*rows: tuple[str, object]) -> dict[str, Any]:
    result = [{"metric": {"instance": name}, "value": [NOW, str(value)]} for name, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def prometheus(cpu: Any, memory: Any, seen: list[web.Request] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        if seen is not None:
            seen.append(request)
        assert (request.method, request.path) == ("GET", "/api/v1/query")
        answer = cpu if "node_cpu_seconds_total" in request.query["query"] else memory
        return web.json_response(answer, status=200 if answer["status"] == "success" else 422)

    return handler


def test_two_questions_to_prometheus_tell_all_nodes() -> None:
    seen: list[web.Request] = []
    cpu = vector(("n1", 81.25), ("n2", 3), ("n1", 99), ("elsewhere", 1))
    found = asked(prometheus(cpu, vector(("n2", 40), ("n1", 55.5)), seen), {"type": "prometheus"})
    assert found == {
        "n1": NodeUsage(NOW, {"10m": 81.25}, {"10m": 55.5}),
        "n2": NodeUsage(NOW, {"10m": 3.0}, {"10m": 40.0}),
    }
    idle = 'avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))'
    assert sorted(request.query["query"] for request in seen) == [
        "100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[10m:30s])",
        f"avg_over_time(clamp_min(100 - ({idle} * 100), 0)[10m:30s])",
    ]


def test_what_prometheus_does_not_know_is_left_out_or_in_the_references_way_0() -> None:
    handler = prometheus(vector(("n1", 5), ("n2", "NaN")), vector(("n2", 7)))
    assert asked(handler, {"type": "prometheus"}) == {}
    filled = asked(handler, {"type": "prometheus"}, fills=True)
    figures = {name: (sample.cpu["10m"], sample.memory["10m"]) for name, sample in filled.items()}
    assert figures == {"n1": (5.0, 0.0), "n2": (0.0, 7.0), "n3": (0.0, 0.0)}


FAILED = {"status": "error", "errorType": "bad_data", "error": "parse error"}


def test_a_failed_query_is_an_error_or_in_the_references_way_0() -> None:
    handler = prometheus(FAILED, vector(("n1", 7)))
    with pytest.raises(MeasurementError, match=r"Prometheus: answered 422: .*parse error"):
        asked(handler, {"type": "prometheus"})
    assert asked(handler, {"type": "prometheus"}, fills=True)["n1"] == NodeUsage(NOW, {"10m": 0.0}, {"10m": 7.0})


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"status": "success"}', b'{"status": "error", "error": "x"}'])
def test_an_answer_of_another_form_is_an_error(body: bytes) -> None:
    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    with pytest.raises(MeasurementError, match="Prometheus: "):
        asked(handler, {"type": "prometheus"})


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sources, "LARGEST", 1000)
    handler = prometheus(vector(*((f"n{i}", i) for i in range(100))), vector())
    with pytest.raises(MeasurementError, match="larger than 1000 bytes"):
        asked(handler, {"type": "prometheus"})


def test_a_server_that_is_not_there_is_an_error() -> None:
    source = source_of({"type": "prometheus", "address": "http://127.0.0.1:1"}, lambda: NOW)
    assert source is not None

    async def story() -> None:
        try:
            await source.sample(NODES)
        finally:
            await source.close()

    with pytest.raises(MeasurementError, match="Prometheus: ClientConnectorError"):
        asyncio.run(story())


def test_a_certificate_is_believed_unchecked_only_where_the_settings_say_so(tmp_path: Path) -> None:
    made = tmp_path / "server.pem"
    made.write_bytes(b"".join(Authority().issue("127.0.0.1", server=True)))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made)
    handler = prometheus(vector(("n1", 5)), vector(("n1", 7)))
    unchecked = {"type": "prometheus", "tls.insecureSkipVerify": "true"}
    assert list(asked(handler, unchecked, tls=tls)) == ["n1"]
    with pytest.raises(MeasurementError, match="certificate verify failed"):
        asked(handler, {"type": "prometheus"}, tls=tls)


# ---------------------------------------------------------------------- Elasticsearch


def elasticsearch(averages: dict[str, tuple[float | None, float | None]], seen: list[Any]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        question = await request.json()
        seen.append((request.path, request.headers.get("Authorization", ""), question))
        wanted = question["query"]["bool"]["must"][1]["terms"]
        (names,) = wanted.values()
        buckets = [
            {"key": name, "doc_count": 9, "cpu": {"value": averages[name][0]}, "mem": {"value": averages[name][1]}}
            for name in names
            if name in averages
        ]
        return web.json_response({"aggregations": {"hosts": {"buckets": buckets}}})

    return handler


def test_elasticsearch_averages_what_hosts_have_written() -> None:
    seen: list[Any] = []
    handler = elasticsearch({"n1": (0.5, 0.25), "n2": (None, 0.1)}, seen)
    assert asked(handler, {"type": "elasticsearch"}) == {"n1": NodeUsage(NOW, {"10m": 50.0}, {"10m": 25.0})}
    ((path, login, question),) = seen
    assert (path, login) == ("/metricbeat-*/_search", "")
    assert question["query"]["bool"]["must"] == [
        {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}},
        {"terms": {"host.hostname": list(NODES)}},
    ]
    assert question["aggs"]["hosts"]["aggs"] == {
        "cpu": {"avg": {"field": "host.cpu.usage"}},
        "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
    }


def test_elasticsearchs_settings_count_and_many_nodes_are_asked_about_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sources, "AT_ONCE", 2)
    seen: list[Any] = []
    settings = {
        "type": "elasticsearch",
        "elasticsearch.index": "beats",
        "elasticsearch.username": "me",
        "elasticsearch.password": "pw",
        "elasticsearch.hostnameFieldName": "host.name",
    }
    found = asked(elasticsearch(dict.fromkeys(NODES, (0.1, 0.2)), seen), settings)
    assert sorted(found) == list(NODES)
    assert [path for path, _, _ in seen] == ["/beats/_search"] * 2
    assert {login for _, login, _ in seen} == {"Basic bWU6cHc="}
    asked_for = [question["query"]["bool"]["must"][1]["terms"]["host.name"] for _, _, question in seen]
    assert asked_for == [["n1", "n2"], ["n3"]]


@pytest.mark.parametrize("answer", [{}, {"aggregations": {"hosts": {"buckets": [{"key": "n1"}]}}}])
def test_an_answer_that_is_not_elasticsearchs_is_an_error(answer: Any) -> None:
    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.json_response(answer)

    with pytest.raises(MeasurementError, match="Elasticsearch: the answer is not of its form"):
        asked(handler, {"type": "elasticsearch"})


# ---------------------------------------------------------------------- custom metrics


class Api:
    """An API server that serves custom metrics in one version."""

    def __init__(self, version: str, values: dict[str, dict[str, tuple[str, str]]]) -> None:
        self.version, self.values = version, values

    async def send(self, request: Request, _login: object) -> Response:
        head, _, metric = request.path.rpartition("/nodes/*/")
        if not head.endswith(self.version):
            return Response(404, {}, b"{}")
        items = [
            {"describedObject": {"kind": "Node", "name": name}, "value": value, "timestamp": time}
            for name, (value, time) in self.values[metric].items()
        ]
        return Response(200, {}, json.dumps({"items": items}).encode())

    async def close(self) -> None:
        """Nothing is held."""


EARLY, LATE = "2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z"


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_custom_metrics_are_parts_of_1_with_their_own_time(version: str) -> None:
    values = {
        "node_cpu_usage_avg": {"n1": ("250m", LATE), "n2": ("1", EARLY)},
        "node_memory_usage_avg": {"n1": ("0.5", EARLY)},
    }
    source = CustomMetrics(Client(Api(version, values)))  # type: ignore[arg-type]  # streams are not asked for
    assert asyncio.run(source.sample(NODES)) == {"n1": NodeUsage(NOW + 60, {"10m": 25.0}, {"10m": 50.0})}


def test_settings_ask_the_api_server_for_custom_metrics() -> None:
    """They have no address: the client is the scheduler's own, and without one there is nothing to ask."""
    values = {name: {"n1": ("500m", EARLY)} for name in ("node_cpu_usage_avg", "node_memory_usage_avg")}
    client = Client(Api("v1beta1", values))  # type: ignore[arg-type]
    taken: list[Any] = []
    told: list[str] = []

    async def story(client: Client | None) -> None:
        poller = UsagePoller(
            lambda: {"type": "prometheus_adaptor"}, lambda: NODES, taken.append,
            lambda key, **fields: told.append(f"{key}: {fields.get('error')}"), client=client,
        )  # fmt: skip
        await poller.once()

    asyncio.run(story(client))
    assert (taken, told) == ([{"n1": NodeUsage(NOW, {"10m": 50.0}, {"10m": 50.0})}], [])
    asyncio.run(story(None))
    [line] = told
    assert line.startswith(
        "node_metrics_failed: data cannot be collected from the prometheus_adaptor monitoring system"
    )


def test_an_api_server_without_custom_metrics_is_an_error() -> None:
    source = CustomMetrics(Client(Api("v9", {})))  # type: ignore[arg-type]
    with pytest.raises(ApiError):
        asyncio.run(source.sample(NODES))


# ---------------------------------------------------------------------- files, settings


def test_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "usage.yaml"
    source = source_of({"type": "file", "address": str(file)}, lambda: NOW)
    assert source is not None
    file.write_text("n1: {cpu: 81, memory: 40}\nn9: {cpu: 1, memory: 1}\n")
    assert asyncio.run(source.sample(NODES)) == {"n1": NodeUsage(NOW, {"10m": 81.0}, {"10m": 40.0})}
    file.write_text('{"n2": {"cpu": 1, "memory": 2, "ageSeconds": 600}}')
    assert asyncio.run(source.sample(NODES)) == {"n2": NodeUsage(NOW - 600, {"10m": 1.0}, {"10m": 2.0})}
    file.unlink()
    with pytest.raises(MeasurementError, match=r"usage\.yaml"):
        asyncio.run(source.sample(NODES))


def test_settings_that_name_no_source_or_an_unknown_one() -> None:
    assert source_of({}, lambda: NOW) is None
    for kind in ("prometheus", "elasticsearch", "file"):
        with pytest.raises(MeasurementError, match=r"^metrics address is empty$"):
            source_of({"type": kind}, lambda: NOW)
    text = (
        "data cannot be collected from the graphite monitoring system. "
        f"The supported monitoring systems are {SUPPORTED[0]}, {SUPPORTED[1]}, and {SUPPORTED[2]}"
    )
    with pytest.raises(MeasurementError, match=f"^{text}$"):
        source_of({"type": "graphite"}, lambda: NOW)


# ---------------------------------------------------------------------- beside the cycles


def test_the_poller_takes_what_it_gets_and_lives_through_failures(tmp_path: Path) -> None:
    file = tmp_path / "usage.json"
    settings: dict[str, str] = {}
    taken: list[Any] = []
    told: list[tuple[str, str]] = []
    poller = UsagePoller(
        lambda: settings,
        lambda: NODES,
        taken.append,
        lambda key, **fields: told.append((key, str(fields.get("error", "")))),
        clock=lambda: NOW,
    )

    async def story() -> None:
        await poller.once()
        settings.update(type="nonsense")
        await poller.once()
        settings.update(type="file", address=str(file))
        await poller.once()
        file.write_text('{"n1": {"cpu": 1, "memory": 2}}')
        await poller.once()

    asyncio.run(story())
    assert [key for key, _ in told] == ["metrics_type_missing", "node_metrics_failed", "node_metrics_failed"]
    assert "nonsense" in told[1][1]
    assert taken == [{"n1": NodeUsage(NOW, {"10m": 1.0}, {"10m": 2.0})}]


def test_a_source_is_closed_when_another_is_configured_and_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, told = {"type": "a"}, []

    class Source:
        def __init__(self, given: Mapping[str, str]) -> None:
            self.type = given["type"]
            told.append(f"{self.type} made")

        async def sample(self, nodes: Sequence[str]) -> Mapping[str, NodeUsage]:
            return {}

        async def close(self) -> None:
            told.append(f"{self.type} closed")

    monkeypatch.setattr(usage_poller, "source_of", lambda given, *_, **_more: Source(given))
    poller = UsagePoller(lambda: settings, lambda: NODES, lambda _: None, lambda key, **_: told.append(key))

    async def story() -> None:
        await poller.once()
        await poller.once()
        settings["type"] = "b"
        running = asyncio.create_task(poller.run())
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(story())
    assert told == ["a made", "a closed", "b made", "b closed"]


def test_loads_that_cannot_be_taken_in_are_told_and_asked_for_again(tmp_path: Path) -> None:
    file, told = tmp_path / "usage.json", []
    file.write_text('{"n1": {"cpu": 1, "memory": 2}}')

    def breaks(_: object) -> None:
        raise ZeroDivisionError("an unforeseen error")

    settings = {"type": "file", "address": str(file)}
    poller = UsagePoller(lambda: settings, lambda: NODES, breaks, lambda key, **fields: told.append((key, fields)))
    asyncio.run(poller.once())
    assert told == [("node_metrics_failed", {"error": "ZeroDivisionError: an unforeseen error"})]


def test_the_poller_asks_until_it_is_cancelled() -> None:
    passes: list[Any] = []

    async def story() -> None:
        done = asyncio.Event()

        def tell(key: str, **_fields: object) -> None:
            passes.append(key)
            if len(passes) == 3:
                done.set()

        running = asyncio.create_task(
            UsagePoller(lambda: {"interval": "1ms"}, lambda: NODES, passes.append, tell).run()
        )
        await done.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert passes[:3] == ["metrics_type_missing"] * 3


@pytest.mark.parametrize(("written", "found"), [("", 30.0), ("1m", 60.0), ("0s", 30.0), ("-1s", 30.0), ("soon", 30.0)])
def test_the_interval_is_30_seconds_unless_a_good_one_is_written(written: str, found: float) -> None:
    assert interval_of(written) == found
