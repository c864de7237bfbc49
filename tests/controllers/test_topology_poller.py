"""UFM and trees in files, asked by the controllers: servers that answer, refuse, break off, or keep silent."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stromboli.kube.client import Client
from stromboli.live.controllers import topology_poller
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import CONFIG_MAP
from stromboli.model.names import NAMESPACE
from tests.support import virtual
from tests.support.memory_server import MemoryServer

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = {"username": "admin", "password": "s3cret"}
PORTS = [
    {"description": "Computer IB Port", "system_name": node, "peer_node_name": leaf}
    for node, leaf in (("n1", "L1"), ("n2", "L1"), ("n3", "L2"))
]


def encoded(texts: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def api_server(source: Json, secret: dict[str, str] | None = None, **more: Json) -> MemoryServer:
    """An API server with the controllers' ConfigMap, the Secret, and further ConfigMaps."""
    server = MemoryServer()
    text = json.dumps({"networkTopologyDiscovery": [{"enabled": True, **source}]})
    maps = {CONFIG_MAP: {"volcano-controller.conf": text}, **more}
    for name, data in maps.items():
        server.put("configmaps", {"metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
    if secret is not None:
        server.put("secrets", {"metadata": {"name": "ufm-credentials", "namespace": NAMESPACE}, "data": secret})
    return server


async def outcome(server: MemoryServer) -> tuple[dict[str, list[str]], list[str]]:
    """Let the controllers run until HyperNodes or events are there: members by HyperNode, and the events' texts."""
    controllers = Controllers(Client(server))
    running = asyncio.create_task(controllers.run())
    try:
        async with asyncio.timeout(20):
            while not server.all("hypernodes") and not server.all("events"):
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
    finally:
        controllers.stop()
        await running
    members = {
        node["metadata"]["name"]: [row["selector"]["exactMatch"]["name"] for row in node["spec"]["members"]]
        for node in server.all("hypernodes")
    }
    return members, [str(event["message"]) for event in server.all("events")]


async def with_ufm(handler: Handler, server: Callable[[str], MemoryServer]) -> tuple[dict[str, list[str]], list[str]]:
    """The outcome where UFM answers with ``handler``."""
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await outcome(server(f"http://127.0.0.1:{runner.addresses[0][1]}/"))
    finally:
        await runner.cleanup()


def ufm_source(endpoint: str) -> Json:
    reference = {"secretRef": {"name": "ufm-credentials", "namespace": NAMESPACE}}
    return {"source": "ufm", "credentials": reference, "config": {"endpoint": endpoint}}


def asked(handler: Handler, secret: dict[str, str] | None = None) -> tuple[dict[str, list[str]], list[str]]:
    found = encoded(SECRET) if secret is None else secret
    return asyncio.run(with_ufm(handler, lambda endpoint: api_server(ufm_source(endpoint), found)))


def test_ufm_is_asked_with_the_login_of_the_secret() -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.path, request.headers["Authorization"]))
        return web.json_response(PORTS)

    members, events = asked(handler)
    assert members == {"leaf-hn-0": ["n1", "n2"], "leaf-hn-1": ["n3"], "spine-hn": ["leaf-hn-0", "leaf-hn-1"]}
    assert events == []
    assert seen == [("/ufmRest/resources/ports", "Basic " + base64.b64encode(b"admin:s3cret").decode())]


async def refused(_: web.Request) -> web.StreamResponse:
    return web.Response(status=401)


async def missing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404)


async def half(_: web.Request) -> web.StreamResponse:
    return web.Response(text=json.dumps(PORTS)[:-9])


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 4096)


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (refused, "UFM: unexpected status code: 401 Unauthorized"),
        (missing, "UFM: unexpected status code: 404 Not Found"),
        (half, "the answer cannot be used"),
        (endless, "UFM: the answer is larger than 8192 bytes"),
        (silent, "TimeoutError"),
    ],
)
def test_trouble_with_ufm_is_told_on_the_config_map(
    handler: Handler, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology_poller, "LARGEST", 8192)
    monkeypatch.setattr(topology_poller, "TIMEOUT", 0.2)
    members, events = asked(handler)
    assert members == {}
    assert len(events) == 1
    assert problem in events[0]
    assert "s3cret" not in events[0]


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        ({}, "username not found in secret volcano-system/ufm-credentials"),
        (encoded({"username": "admin"}), "password not found in secret volcano-system/ufm-credentials"),
        ({"username": "%", "password": "%"}, "username in secret volcano-system/ufm-credentials is no text"),
    ],
)
def test_logins_that_cannot_be_used(secret: dict[str, str], problem: str) -> None:
    members, events = asked(missing, secret)
    assert (members, len(events)) == ({}, 1)
    assert problem in events[0]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"source": "ufm", "config": {}}, "UFM endpoint is not configured"),
        ({"source": "ufm", "config": {"endpoint": "u"}}, "UFM authentication credentials are not configured"),
        (ufm_source("u"), "failed to get secret volcano-system/ufm-credentials: "),
        (
            {**ufm_source("u"), "credentials": {"secretRef": {"name": "any", "namespace": "kube-system"}}},
            "secret kube-system/any is not in namespace volcano-system; put the login there",
        ),
        ({"source": "file"}, "config.path or config.configMap must say where the tree is"),
        ({"source": "file", "config": {"path": f"{topology_poller.TREES}/none"}}, "No such file or directory"),
        ({"source": "file", "config": {"path": "/etc/passwd"}}, "'/etc/passwd' is no file in /etc/stromboli/topology"),
        ({"source": "file", "config": {"configMap": {"name": "t", "key": "y"}}}, "t has no key 'y'"),
    ],
)
def test_what_is_missing_is_told(source: Json, problem: str) -> None:
    members, events = asyncio.run(outcome(api_server(source, t={"x": ""})))
    assert (members, len(events)) == ({}, 1)
    assert problem in events[0]


def test_a_link_leads_out_of_the_directory_of_trees_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_poller, "TREES", tmp_path / "trees")
    (tmp_path / "trees").mkdir()
    (tmp_path / "secret").write_text("SwitchName=s0 Nodes=n0")
    (tmp_path / "trees" / "link").symlink_to(tmp_path / "secret")
    for path in ("trees/link", "trees/../secret", "trees"):
        source = {"source": "file", "config": {"path": f"{tmp_path}/{path}"}}
        members, (event,) = asyncio.run(outcome(api_server(source)))
        assert members == {}
        assert "is no file in" in event


def test_trees_in_files_and_config_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_poller, "TREES", tmp_path)
    tree = "SwitchName=s0 Nodes=n[0-1]"
    (tmp_path / "topology.conf").write_text(tree)
    in_file = api_server({"source": "file", "config": {"path": str(tmp_path / "topology.conf")}})
    in_map = api_server({"source": "file", "config": {"configMap": {"name": "tree"}}}, tree={"topology.conf": tree})
    for server in (in_file, in_map):
        assert asyncio.run(outcome(server)) == ({"s0": ["n0", "n1"]}, [])


def test_a_polled_source_that_changes_or_goes_is_no_longer_asked_as_it_was() -> None:
    """Sources by labels are not polled, and one that stays as it is keeps its pace."""

    async def story() -> list[list[int]]:
        server = MemoryServer()
        for name in ("old", "new"):
            meta = {"name": name, "namespace": NAMESPACE}
            server.put("configmaps", {"metadata": meta, "data": {"t": f"SwitchName={name} Nodes=n0"}})
        labels = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"r": [{"nodeLabel": "x"}]}}}
        controllers = Controllers(Client(server))
        running = asyncio.create_task(controllers.run())
        counts = []
        for tree in ("old", "old", "new", ""):
            trees = [
                {"source": "file", "enabled": bool(tree), "interval": "10s", "config": {"configMap": {"name": tree}}}
            ]
            text = json.dumps({"networkTopologyDiscovery": [labels, *trees]})
            meta = {"name": CONFIG_MAP, "namespace": NAMESPACE}
            server.put("configmaps", {"metadata": meta, "data": {"volcano-controller.conf": text}})
            server.requests.clear()
            await asyncio.sleep(54)
            paths = [request.path.rpartition("/")[2] for request in server.requests if request.method == "GET"]
            counts.append([paths.count(name) for name in ("old", "new")])
        controllers.stop()
        await running
        assert server.all("events") == []
        return counts

    assert virtual.run(story()) == [[6, 0], [5, 0], [0, 6], [0, 0]]
