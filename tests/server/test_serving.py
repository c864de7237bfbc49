"""The server on a socket: TLS, token, and what a killed process leaves behind."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
import yaml

from stromboli.cluster.body import decode, encode
from stromboli.errors import AccessError, ApiFailure, CannotServe
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.live.up.kubelets import Reached
from stromboli.server.api import Api
from stromboli.server.http import access
from stromboli.server.http.access import access_in
from stromboli.server.http.serving import _listening, serving
from stromboli.server.schema.definitions import COLLECTION
from stromboli.server.storage.journal import SqliteJournal
from stromboli.server.storage.store import Row, Store
from stromboli.server.verbs.writing import Deletion, Options
from tests.server.browser import CONFIGS, PODS, config, pod
from tests.support.memory_server import MemoryServer, status


@asynccontextmanager
async def _remote(folder):
    async with Client.reaching(from_kubeconfig([str(folder / "kubeconfig")])) as client:
        yield Reached(client)


class Locked:
    """Credentials that are not to be had."""

    async def current(self):
        raise AccessError("the credential plugin ended with 1")

    def refused(self):
        """Nor others."""


def test_kubelets_that_get_no_credentials_try_again_as_without_a_server():
    async def story():
        remote = Reached(Client(MemoryServer(), Locked()))
        with pytest.raises(ConnectionError):
            await remote.call("GET", "/api/v1/pods")
        with pytest.raises(ConnectionError):
            await anext(remote.watch("/api/v1/pods", {}))

    asyncio.run(story())


@pytest.mark.parametrize("answer", [(404, "NotFound", 'pods "a" not found'), (410, "Expired", "too old")])
def test_kubelets_are_told_of_a_refusal_as_the_server_words_it(answer):
    async def story():
        server = MemoryServer()
        server.faults.append(lambda request, moment: status(*answer))
        remote = Reached(Client(server))
        for asked in (remote.call("GET", "/api/v1/namespaces/ns/pods/a?b=c"), anext(remote.watch("/api/v1/pods", {}))):
            with pytest.raises(ApiFailure) as raised:
                await asked
            assert (raised.value.code, raised.value.reason, raised.value.message) == answer

    asyncio.run(story())


def test_it_is_reached_over_tls_with_its_token_alone(tmp_path):
    async def story():
        async with serving(tmp_path) as found, _remote(tmp_path) as remote:
            listed = await remote.call("GET", "/api/v1/namespaces")
            assert listed["items"][0]["metadata"]["name"] == "default"
            assert found.url.startswith("https://127.0.0.1:")
            async with aiohttp.ClientSession() as stranger:
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await stranger.get(found.url + "/version")
                trusting = ssl.create_default_context(cadata=found.access.authority)
                async with stranger.get(found.url + "/api/v1/pods", ssl=trusting) as response:
                    assert response.status == 401

    asyncio.run(story())


def test_answers_in_two_parts_go_out_without_delay():
    """Python's own event loop sends the second part at once only where the socket says that it is TCP."""

    async def story():
        found = asyncio.get_running_loop().create_future()

        async def accept(_reader, writer):
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(accept, sock=_listening(0)) as server:
            _reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert await found
            writer.close()
            await writer.wait_closed()

    asyncio.run(story())


def test_secrets_are_their_owners_alone(tmp_path):
    async def story():
        async with serving(tmp_path) as found:
            told = yaml.load(found.access.kubeconfig.read_text(), yaml.CSafeLoader)
            assert told["clusters"][0]["cluster"]["server"] == found.url
        return {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}

    modes = asyncio.run(story())
    assert modes == dict.fromkeys(["ca.crt", "kubeconfig", "server.crt", "server.key", "token"], 0o600)


def test_what_is_kept_is_its_owners_alone_and_one_servers(tmp_path):
    folder = tmp_path / "new"
    (tmp_path / "kubeconfig").write_text("an older file, readable for other users")

    async def story():
        async with serving(folder, durable=True) as found:
            found.access.write_kubeconfig(found.url, tmp_path / "kubeconfig")
            with pytest.raises(CannotServe, match="in use"):
                async with serving(folder, durable=True):
                    pass
            return {path.name: path.stat().st_mode & 0o077 for path in [*folder.iterdir(), folder]}

    modes = asyncio.run(story())
    assert {"objects.sqlite", "objects.sqlite-wal"} <= modes.keys()
    assert not any(modes.values())
    assert not (tmp_path / "kubeconfig").stat().st_mode & 0o077


def test_certificates_are_renewed_before_they_end_and_a_broken_token_is_none(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(access, "_VALID", access._RENEWED - dt.timedelta(days=1))
        old = access_in(tmp_path)
    (tmp_path / "token").write_text("")
    new = access_in(tmp_path)
    assert new.authority != old.authority
    assert len(new.token) == len(old.token) > 0
    assert access_in(tmp_path) == new, "what is good stays"


@pytest.mark.parametrize("name", ["server.crt", "server.key", "token"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_file_that_cannot_be_used_is_named_with_the_remedy_which_helps(tmp_path, name, content):
    access_in(tmp_path)
    (tmp_path / name).write_bytes(content)
    if name == "token" and not content.startswith(b"\xff"):
        access_in(tmp_path)  # any text may be a token, and for an empty one a new one is made
        return
    with pytest.raises(CannotServe) as refused:
        access_in(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / name}: cannot be used (")
    assert "remove it, and a new one is made" in str(refused.value)
    (tmp_path / name).unlink()
    assert access_in(tmp_path).authority


def test_a_key_of_another_certificate_is_named(tmp_path):
    for folder in ("a", "b"):
        access_in(tmp_path / folder)
    (tmp_path / "b" / "server.key").replace(tmp_path / "a" / "server.key")
    with pytest.raises(CannotServe, match=r"a/server\.key: cannot be used \(.*MISMATCH"):
        access_in(tmp_path / "a")


def test_a_watch_over_the_wire_ends_with_the_server(tmp_path):
    async def story():
        seen = []
        async with _remote_of(tmp_path) as (remote, _):
            await remote.call("POST", CONFIGS, config("a"))
            async for event in remote.watch("/api/v1/configmaps", {"fieldSelector": "metadata.name=a"}):
                seen.append(event["type"])
                if len(seen) == 1:
                    await remote.call("DELETE", f"{CONFIGS}/a")
                if event["type"] == "DELETED":
                    break
        assert seen == ["ADDED", "DELETED"]

    asyncio.run(story())


class _remote_of:  # noqa: N801 - reads as a function
    def __init__(self, folder):
        self.folder = folder

    async def __aenter__(self):
        self.serving = serving(self.folder)
        found = await self.serving.__aenter__()
        self.remote = _remote(self.folder)
        return await self.remote.__aenter__(), found

    async def __aexit__(self, *error):
        await self.remote.__aexit__(*error)
        await self.serving.__aexit__(*error)


def test_a_journal_gives_back_what_was_written(tmp_path):
    journal = SqliteJournal(tmp_path / "base")
    store = Store(journal)
    for name in ("a", "b"):
        store.put(("", "pods"), pod(name) | {"metadata": {"name": name, "namespace": "default"}})
    store.drop(("", "pods"), ("default", "a"))
    journal.close()
    again = SqliteJournal(tmp_path / "base")
    found = Store(again)
    assert found.version == store.version
    assert list(found.of(("", "pods")).entries) == [("default", "b")]
    assert found.of(("", "pods")).floor == store.version
    again.close()


def test_a_write_that_fails_breaks_no_later_one(tmp_path):
    journal = SqliteJournal(tmp_path / "base")
    with pytest.raises(sqlite3.Error):
        journal.write(Row(("", "pods"), ("default", "a"), 2, None))  # type: ignore[arg-type]
    journal.write(Row(("", "pods"), ("default", "b"), 3, b"{}"))
    version, rows = journal.load()
    assert (version, [row.key for row in rows]) == (3, [("default", "b")])
    journal.close()


@pytest.mark.parametrize("spoil", [b"no database at all, but long enough to be looked at" * 40, None])
def test_a_base_that_cannot_be_read_is_refused(tmp_path, spoil):
    path = tmp_path / "base"
    if spoil is None:
        with closing(sqlite3.connect(path)) as later:
            later.execute("PRAGMA user_version=99")
    else:
        path.write_bytes(spoil)
    with pytest.raises(CannotServe, match="base"):
        SqliteJournal(path)


def test_what_a_kill_left_undone_is_done_at_the_next_start(tmp_path):
    """Objects with a deleted owner, and a namespace that was being emptied, when the process ended."""
    journal = SqliteJournal(tmp_path / "base")
    undone: list[Callable[[], None]] = []
    api = Api(undone.append, journal=journal)
    api.store.put(("", "namespaces"), {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "old"}})
    owner = api.store.put(
        ("", "configmaps"), config("owner") | {"metadata": {"name": "owner", "namespace": "default", "uid": "u"}}
    )
    owned = {
        "name": "owned",
        "namespace": "default",
        "uid": "v",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
    }
    api.store.put(("", "configmaps"), config("owned") | {"metadata": owned})
    api.store.put(("", "configmaps"), config("a") | {"metadata": {"name": "a", "namespace": "old", "uid": "w"}})
    api.store.drop(("", "configmaps"), owner.key)
    namespaces = api.catalogue.stored()["", "namespaces"]
    api.writer.delete(namespaces, ("", "old"), Deletion(), Options())
    journal.close()
    again = SqliteJournal(tmp_path / "base")
    found = Api(undone.append, journal=again)
    names = {key[1] for key in found.store.of(("", "configmaps")).entries}
    assert names == {"kube-root-ca.crt"}
    assert ("", "old") not in found.store.of(("", "namespaces")).entries
    again.close()


def test_our_own_kinds_are_served_as_this_version_knows_them(tmp_path):
    """A directory that an earlier version wrote has an earlier version's definitions."""
    undone: list[Callable[[], None]] = []
    journal = SqliteJournal(tmp_path / "base")
    api = Api(undone.append, journal=journal)
    key = ("", "queues.scheduling.volcano.sh")
    now = api.store.get(COLLECTION, key)
    assert now is not None
    earlier = decode(encode(now.body))
    properties = earlier["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del properties["spec"]["properties"]["priority"]
    api.store.put(COLLECTION, earlier)
    journal.close()
    again = SqliteJournal(tmp_path / "base")
    later = Api(undone.append, journal=again)
    found = later.store.get(COLLECTION, key)
    assert found is not None
    assert found.body["spec"] == now.body["spec"]
    assert (found.body["metadata"]["uid"], found.body["metadata"]["generation"]) == (now.body["metadata"]["uid"], 2)
    again.close()
    third = SqliteJournal(tmp_path / "base")
    assert Api(undone.append, journal=third).store.version == later.store.version, "what is right is left alone"
    third.close()


SERVER = """
import asyncio, sys
from pathlib import Path
from stromboli.server.http.serving import _listening, serving

async def main():
    async with serving(Path(sys.argv[1]), durable=True) as found:
        print(found.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def _start(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(folder)], stdout=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise AssertionError("the server has no output")
    process.stdout.readline()
    return process


def _kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_what_was_answered_survives_a_kill(tmp_path):
    async def write(names):
        async with _remote(tmp_path) as remote:
            for name in names:
                await remote.call("POST", PODS, pod(name))
            listed = await remote.call("GET", PODS)
            return [item["metadata"]["name"] for item in listed["items"]], listed["metadata"]["resourceVersion"]

    process = _start(tmp_path)
    _, version = asyncio.run(write(["a", "b", "c"]))
    _kill(process)
    process = _start(tmp_path)
    found, later = asyncio.run(write([]))
    _kill(process)
    assert found == ["a", "b", "c"]
    assert int(later) >= int(version)
