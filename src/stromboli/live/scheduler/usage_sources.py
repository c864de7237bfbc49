"""Where loads of nodes come from: Prometheus, Elasticsearch, the custom metrics API, or a file.

Every source answers for many nodes with few questions.  What it does not know of a node it leaves out, so that the
node keeps its last sample; ``fills`` (the reference's way with Prometheus) makes it 0 %, measured just now.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import aiohttp
import msgspec

from stromboli.cluster.files.usage_file import usage_of
from stromboli.errors import ApiError, MeasurementError, QuantityError
from stromboli.kube.client import Client
from stromboli.model.resources import quantity
from stromboli.model.usage import PERIOD, NodeUsage
from stromboli.model.values.redaction import without_logins
from stromboli.model.values.times import seconds

Clock = Callable[[], float]
Samples = dict[str, NodeUsage]
Settings = Mapping[str, str]

SUPPORTED: Final = ("prometheus", "prometheus_adaptor", "elasticsearch")
LARGEST: Final = 1 << 26
"""Bytes of the largest answer that is read."""
AT_ONCE: Final = 500
"""Nodes that Elasticsearch is asked about at a time."""

CPU_QUERY: Final = (
    'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
    f"[{PERIOD}:30s])"
)
MEMORY_QUERY: Final = (
    f"100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[{PERIOD}:30s])"
)
"""The reference's queries for all instances at once; an instance is a node by its name."""

CUSTOM_METRICS: Final = ("node_cpu_usage_avg", "node_memory_usage_avg")
CUSTOM_VERSIONS: Final = ("v1beta2", "v1beta1")


class UsageSource(Protocol):
    """Something that knows how loaded nodes are."""

    async def sample(self, nodes: Sequence[str]) -> Samples:
        """Samples of those of ``nodes`` that it knows.  Raises a StromboliError when it could not be asked."""

    async def close(self) -> None:
        """Let connections go."""


class _Http:
    """Questions over HTTP to one address; certificates are believed unchecked where the settings say so."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.address = name, settings.get("address", "").rstrip("/")
        if not self.address:
            raise MeasurementError("", "metrics address is empty")
        user = settings.get("elasticsearch.username", "")
        login = aiohttp.encode_basic_auth(user, settings.get("elasticsearch.password", "")) if user else ""
        self._headers = {"Authorization": login} if login else {}
        self._checked = settings.get("tls.insecureSkipVerify") != "true"
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, path: str, **content: Any) -> Any:
        """The JSON answer to a request.  Raises MeasurementError."""
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        try:
            async with self._session.request(method, self.address + path, ssl=self._checked, **content) as response:
                body = await self._body(response)
                if response.status != 200:
                    raise MeasurementError(
                        self.name, f"answered {response.status}: {body[:200].decode('utf-8', 'replace')}"
                    )
                return msgspec.json.decode(body)
        except (aiohttp.ClientError, msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            raise MeasurementError(self.name, without_logins(f"{type(error).__name__}: {error}")) from error

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        found = bytearray()
        async for chunk in response.content.iter_any():
            found += chunk
            if len(found) > LARGEST:
                raise MeasurementError(self.name, f"the answer is larger than {LARGEST} bytes")
        return bytes(found)

    async def close(self) -> None:
        """Let connections go."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class Prometheus:
    """Averages that Prometheus works out of what node exporters tell it: two questions for all nodes."""

    def __init__(self, settings: Settings, clock: Clock, *, fills: bool) -> None:
        self._http, self._clock, self._fills = _Http("Prometheus", settings), clock, fills

    async def sample(self, nodes: Sequence[str]) -> Samples:
        """See :class:`UsageSource`."""
        cpu, memory = await asyncio.gather(self._percentages(CPU_QUERY), self._percentages(MEMORY_QUERY))
        return _samples(nodes, cpu, memory, self._clock(), fills=self._fills)

    async def close(self) -> None:
        """See :class:`UsageSource`."""
        await self._http.close()

    async def _percentages(self, query: str) -> dict[str, float]:
        try:
            answer = await self._http.ask("GET", "/api/v1/query", params={"query": query})
            return dict(_of_vector(answer))
        except MeasurementError:
            if self._fills:
                return {}
            raise


def _of_vector(answer: Any) -> Iterator[tuple[str, float]]:
    """By instance, the first value of an answer of Prometheus.  Raises MeasurementError for what is none."""
    try:
        if answer["status"] != "success":
            raise MeasurementError("Prometheus", answer.get("error", "the query failed"))
        rows = answer["data"]["result"] if answer["data"]["resultType"] == "vector" else []
        found = [(row["metric"].get("instance", ""), float(row["value"][1])) for row in rows]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise MeasurementError("Prometheus", f"the answer is not of its form: {error!r}") from error
    yield from ((name, value) for name, value in reversed(found) if math.isfinite(value))


class Elasticsearch:
    """Averages over what metricbeat has written of hosts; a host is a node by its name."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._http, self._clock = _Http("Elasticsearch", settings), clock
        self._index = settings.get("elasticsearch.index") or "metricbeat-*"
        self._field = settings.get("elasticsearch.hostnameFieldName") or "host.hostname"

    async def sample(self, nodes: Sequence[str]) -> Samples:
        """See :class:`UsageSource`."""
        cpu: dict[str, float] = {}
        memory: dict[str, float] = {}
        for first in range(0, len(nodes), AT_ONCE):
            names = list(nodes[first : first + AT_ONCE])
            answer = await self._http.ask("POST", f"/{self._index}/_search", json=self._question(names))
            _take_buckets(answer, cpu, memory)
        return _samples(nodes, cpu, memory, self._clock())

    async def close(self) -> None:
        """See :class:`UsageSource`."""
        await self._http.close()

    def _question(self, names: list[str]) -> dict[str, Any]:
        recent = {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}}
        averages = {"cpu": _average("host.cpu.usage"), "mem": _average("system.memory.actual.used.pct")}
        hosts = {"terms": {"field": self._field, "size": len(names)}, "aggs": averages}
        wanted = {"bool": {"must": [recent, {"terms": {self._field: names}}]}}
        return {"size": 0, "query": wanted, "aggs": {"hosts": hosts}}


def _average(field: str) -> dict[str, Any]:
    return {"avg": {"field": field}}


def _take_buckets(answer: Any, cpu: dict[str, float], memory: dict[str, float]) -> None:
    """Put the averages of an answer of Elasticsearch, which are parts of 1, among the percentages by host."""
    try:
        for bucket in answer["aggregations"]["hosts"]["buckets"]:
            for found, name in ((cpu, "cpu"), (memory, "mem")):
                if (value := bucket[name]["value"]) is not None:
                    found[bucket["key"]] = float(value) * 100
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementError("Elasticsearch", f"the answer is not of its form: {error!r}") from error


class CustomMetrics:
    """What a Prometheus adapter serves as custom metrics of Node objects, under the API server's own address."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def sample(self, nodes: Sequence[str]) -> Samples:
        """See :class:`UsageSource`; a sample is as old as the later of its two metrics."""
        cpu, memory = [await self._values(metric) for metric in CUSTOM_METRICS]
        times = {name: max(time, cpu.get(name, (0.0, time))[1]) for name, (_, time) in memory.items()}
        return {
            name: NodeUsage(times[name], {PERIOD: cpu[name][0]}, {PERIOD: memory[name][0]})
            for name in nodes
            if name in cpu and name in memory
        }

    async def close(self) -> None:
        """The client is closed by its owner."""

    async def _values(self, metric: str) -> dict[str, tuple[float, float]]:
        """Percent and time by node."""
        answer = msgspec.json.decode(await self._get(metric))
        try:
            items = answer["items"]
            return {
                item["describedObject"]["name"]: (
                    quantity.milli(item["value"]) / 10,
                    float(seconds(item["timestamp"], "timestamp")),
                )
                for item in items
            }
        except (KeyError, TypeError, QuantityError) as error:
            raise MeasurementError("custom metrics", f"the answer is not of its form: {error!r}") from error

    async def _get(self, metric: str) -> bytes:
        for version in CUSTOM_VERSIONS[:-1]:
            try:
                return await self._ask(version, metric)
            except ApiError as error:
                if not error.not_found:
                    raise
        return await self._ask(CUSTOM_VERSIONS[-1], metric)

    async def _ask(self, version: str, metric: str) -> bytes:
        return await self._client.request("GET", f"/apis/custom.metrics.k8s.io/{version}/nodes/*/{metric}")


class UsageFile:
    """A file (see :mod:`stromboli.cluster.files.usage_file`), read again each time."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._path, self._clock = settings.get("address", ""), clock
        if not self._path:
            raise MeasurementError("", "metrics address is empty")

    async def sample(self, nodes: Sequence[str]) -> Samples:
        """See :class:`UsageSource`."""
        try:
            text = Path(self._path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MeasurementError(self._path, str(error)) from error
        found = usage_of(text, self._clock(), self._path)
        return {name: found[name] for name in nodes if name in found}

    async def close(self) -> None:
        """Nothing is held."""


def _samples(
    nodes: Iterable[str], cpu: Mapping[str, float], memory: Mapping[str, float], now: float, *, fills: bool = False
) -> Samples:
    return {
        name: NodeUsage(now, {PERIOD: cpu.get(name, 0.0)}, {PERIOD: memory.get(name, 0.0)})
        for name in nodes
        if fills or (name in cpu and name in memory)
    }


def source_of(
    settings: Settings, clock: Clock, client: Client | None = None, *, fills: bool = False
) -> UsageSource | None:
    """The source that the configuration's ``metrics`` name; None where they name no type.

    ``client`` is for custom metrics.  Raises MeasurementError for a type that is not supported, or without an address.
    """
    match settings.get("type", ""):
        case "":
            return None
        case "prometheus":
            return Prometheus(settings, clock, fills=fills)
        case "elasticsearch":
            return Elasticsearch(settings, clock)
        case "prometheus_adaptor" if client is not None:
            return CustomMetrics(client)
        case "file":
            return UsageFile(settings, clock)
        case other:
            problem = (
                f"data cannot be collected from the {other} monitoring system. "
                "The supported monitoring systems are {}, {}, and {}".format(*SUPPORTED)
            )
            raise MeasurementError("", problem)
