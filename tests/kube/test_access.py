"""How to reach a server, and with which identity: kubeconfig in its forms, pods, plugins, files that change."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from stromboli.errors import AccessError, Unreachable
from stromboli.kube.access import Access, find_access, from_kubeconfig, in_cluster, proxy_for
from stromboli.kube.client import Client
from stromboli.kube.credentials import Files, Fixed, Login, Plugin, bearer
from stromboli.kube.http_transport import HttpTransport
from stromboli.kube.tls import ClientCertificate, Trust
from stromboli.kube.transport import Request
from tests.support.certificates import Authority

EXEC = "client.authentication.k8s.io/v1"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write(path: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1", **cluster: Any) -> str:
    """A kubeconfig file."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    return str(path)


def login(access: Access) -> Login:
    return asyncio.run(_current(access))


async def _current(access: Access) -> Login:
    return await access.credentials.current()


def plugin(folder: Path, answer: dict[str, Any] | str, code: int = 0) -> dict[str, Any]:
    """The ``exec`` entry of a plugin that counts its calls, keeps what it is told, and prints ``answer``."""
    path = folder / "plugin.py"
    text = answer if isinstance(answer, str) else json.dumps(answer)
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"open({str(folder / 'calls')!r}, 'a').write('x')\n"
        f"open({str(folder / 'info')!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'] + os.environ.get('EXTRA', ''))\n"
        f"print({text!r})\nsys.exit({code})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": EXEC, "command": str(path), "interactiveMode": "IfAvailable"}


def issued(**status: str) -> dict[str, Any]:
    return {"apiVersion": EXEC, "kind": "ExecCredential", "status": status}


# ---------------------------------------------------------------------- users


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "secret"}, "Bearer secret"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"username": "me", "password": "pw"}, "Basic " + b64(b"me:pw")),
        ({"exec": {"command": "false", "apiVersion": EXEC}, "token": "secret"}, "Bearer secret"),
        ({}, None),
    ],
)
def test_users(tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
    (tmp_path / "token").write_text("from-file\n")
    access = from_kubeconfig([write(tmp_path / "config", user)])
    assert login(access).headers.get("Authorization") == header
    assert access.namespace == "team"


def test_impersonation(tmp_path: Path) -> None:
    user = {"token": "t", "as": "bob", "as-uid": "7", "as-groups": ["g"]}
    headers = login(from_kubeconfig([write(tmp_path / "config", user)])).headers
    assert headers == {
        "Authorization": "Bearer t", "Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Group": "g",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"auth-provider": {"name": "gcp"}}, {}, ["auth-provider", "exec"]),
        ({"client-certificate-data": b64(b"x")}, {}, ["client-key"]),
        ({"client-certificate-data": "%%%"}, {}, ["client-certificate-data", "base64"]),
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, {}, ["apiVersion"]),
        ({"token": 7}, {}, ["users[0].user.token", "a text"]),
        ({}, {"server": "nowhere"}, ["nowhere"]),
        ({}, {"proxy-url": "socks5://p:1"}, ["socks5"]),
        ({"client-certificate": "absent", "client-key-data": b64(b"x")}, {}, ["absent", "No such file"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, user: dict, cluster: dict, words: list[str]) -> None:
    with pytest.raises(AccessError) as refused:
        from_kubeconfig([write(tmp_path / "config", user, **cluster)])
    assert all(word in str(refused.value) for word in [*words, str(tmp_path)])


def test_missing_contexts_and_files(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {})
    with pytest.raises(AccessError, match="names no context 'other'"):
        from_kubeconfig([path], "other")
    with pytest.raises(AccessError, match="No such file"):
        from_kubeconfig([str(tmp_path / "none")])
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(AccessError, match="is not YAML"):
        from_kubeconfig([str(tmp_path / "bad")])


def test_of_several_files_the_first_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = write(tmp_path / "one", {"token": "1"}), write(tmp_path / "two", {"token": "2"})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "none"), one, two]))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert login(find_access()).headers["Authorization"] == "Bearer 1"
    assert find_access(master="http://elsewhere:80/").server == "http://elsewhere:80"


def test_a_pod_reads_its_token_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    (tmp_path / "namespace").write_text("mine")
    access = in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "mine")
    assert login(access).headers["Authorization"] == "Bearer first"
    with pytest.raises(AccessError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster(tmp_path, {})


def test_a_token_file_is_looked_at_once_a_second_and_after_a_refusal(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("one")
    files = Files(str(path), clock=lambda: now[0])

    def token() -> str:
        return asyncio.run(files.current()).headers["Authorization"]

    def renew(text: str, stamp: int) -> None:
        path.write_text(text)
        os.utime(path, ns=(stamp, stamp))

    assert token() == "Bearer one"
    renew("two", 1)
    assert token() == "Bearer one"
    now[0] = 1.0
    assert token() == "Bearer two"
    renew("three", 1)
    now[0] = 2.0
    assert token() == "Bearer two"
    files.refused()
    assert token() == "Bearer three"
    path.unlink()
    now[0] = 3.0
    assert token() == "Bearer three"


# ---------------------------------------------------------------------- plugins


def test_a_plugin_is_asked_once_until_its_answer_ends(tmp_path: Path) -> None:
    entry = plugin(tmp_path, issued(token="t", expirationTimestamp="2026-01-01T00:00:00Z"))
    entry |= {"env": [{"name": "EXTRA", "value": "more"}], "provideClusterInfo": True}
    access = from_kubeconfig([write(tmp_path / "config", {"exec": entry}, **{"tls-server-name": "api"})])
    credentials = access.credentials
    assert isinstance(credentials, Plugin)
    credentials._clock = lambda: now[0]
    now = [1767225600.0 - 60]

    async def ask() -> str:
        return (await credentials.current()).headers["Authorization"]

    async def main() -> None:
        assert set(await asyncio.gather(ask(), ask())) == {"Bearer t"}
        assert calls() == 1
        now[0] += 51
        await ask()
        assert calls() == 2
        now[0] -= 51
        credentials.refused()
        await ask()
        assert calls() == 3

    def calls() -> int:
        return len((tmp_path / "calls").read_text())

    asyncio.run(main())
    told = (tmp_path / "info").read_text()
    assert told.endswith("more")
    spec = json.loads(told.removesuffix("more"))["spec"]
    assert spec["cluster"] == {"server": "http://127.0.0.1:1", "tls-server-name": "api"}
    assert spec["interactive"] is False or sys.stdin.isatty()


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (issued(token="secret"), 3, "ended with 3"),
        ("secret", 0, "no ExecCredential"),
        (issued() | {"apiVersion": "client.authentication.k8s.io/v1beta1"}, 0, "speaks"),
        (issued(), 0, "neither a token nor a certificate"),
        (issued(clientCertificateData="secret"), 0, "without its key"),
        (issued(token="secret", expirationTimestamp="soon"), 0, "no time"),
    ],
)
def test_plugins_that_fail_are_named_and_secrets_are_not(tmp_path: Path, answer: Any, code: int, words: str) -> None:
    access = from_kubeconfig([write(tmp_path / "config", {"exec": plugin(tmp_path, answer, code)})])
    with pytest.raises(AccessError, match=words) as refused:
        login(access)
    assert "secret" not in str(refused.value)
    assert "plugin.py" in str(refused.value)


@pytest.mark.parametrize("limit", ["its own", "the caller's"])
def test_a_plugin_whose_time_is_over_is_ended(tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = tmp_path / "pid"
    code = f"import os, time; open({str(ids)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    entry = {"apiVersion": EXEC, "command": sys.executable, "args": ["-c", code]}
    credentials = from_kubeconfig([write(tmp_path / "config", {"exec": entry})]).credentials

    async def begun(seconds: float) -> asyncio.Task[Login]:
        """The asking, once the plugin runs; it takes a busy machine long to start one."""
        if limit == "its own":
            monkeypatch.setattr("stromboli.kube.credentials.PLUGIN_TIME", seconds)
        asking = asyncio.create_task(credentials.current())
        while not (ids.exists() and ids.read_text()):
            await asyncio.sleep(0.01)
            if asking.done():
                return await begun(4 * seconds)
        return asking

    async def main() -> None:
        asking = await begun(0.5)
        if limit != "its own":
            asking.cancel()
        (end,) = await asyncio.gather(asking, return_exceptions=True)
        assert isinstance(end, AccessError if limit == "its own" else asyncio.CancelledError)
        with pytest.raises(ProcessLookupError):
            os.kill(int(ids.read_text()), 0)

    asyncio.run(main())


def test_a_plugin_that_is_not_there_gives_its_hint(tmp_path: Path) -> None:
    entry = {"apiVersion": EXEC, "command": "no-such-plugin", "installHint": "install it"}
    access = from_kubeconfig([write(tmp_path / "config", {"exec": entry})])
    with pytest.raises(AccessError, match="install it"):
        login(access)


def test_logins_do_not_show_secrets() -> None:
    assert "secret" not in repr(Login({"Authorization": "Bearer secret"}))


# ---------------------------------------------------------------------- proxies


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://api.example:443", "http://proxy:1"),
        ("https://inside.corp:443", ""),
        ("https://127.0.0.1:443", ""),
        ("https://localhost:443", ""),
        ("http://api.example", ""),
    ],
)
def test_proxies_of_the_environment(server: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "NO_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    monkeypatch.setenv("no_proxy", ".corp")
    assert proxy_for(server) == expected


# ---------------------------------------------------------------------- over TLS


async def _whoami(request: web.Request) -> web.Response:
    transport = request.transport
    found = transport.get_extra_info("peercert") if transport is not None else None
    names = [value for part in (found or {}).get("subject", ()) for name, value in part if name == "commonName"]
    return web.json_response({"cn": names, "token": request.headers.get("Authorization", "")})


async def _asked(config: str) -> dict[str, Any]:
    access = from_kubeconfig([config])
    async with Client.reaching(access) as client:
        found: dict[str, Any] = json.loads(await client.request("GET", "/whoami"))
        return found


def test_servers_and_clients_recognise_each_other(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority()
    pair = authority.issue("stromboli")
    server_pair = authority.issue("127.0.0.1", server=True)
    (tmp_path / "s.crt").write_bytes(server_pair[0])
    (tmp_path / "s.key").write_bytes(server_pair[1])
    (tmp_path / "ca").write_bytes(authority.certificate)
    (tmp_path / "c.crt").write_bytes(pair[0])
    (tmp_path / "c.key").write_bytes(pair[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca"))
    context.load_cert_chain(tmp_path / "s.crt", tmp_path / "s.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    data = {"clientCertificateData": pair[0].decode(), "clientKeyData": pair[1].decode()}
    users: list[dict[str, Any]] = [
        {"client-certificate-data": b64(pair[0]), "client-key-data": b64(pair[1])},
        {"client-certificate": "c.crt", "client-key": "c.key"},
        {"exec": plugin(tmp_path, issued(token="t", **data))},
    ]

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/whoami", _whoami)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server = f"https://127.0.0.1:{runner.addresses[0][1]}"
        for user in users:
            found = await _asked(write(tmp_path / "config", user, server, **{"certificate-authority": "ca"}))
            assert found["cn"] == ["stromboli"]
        assert found["token"] == "Bearer t"
        insecure = await _asked(write(tmp_path / "config", {}, server, **{"insecure-skip-tls-verify": True}))
        assert insecure["cn"] == []
        strange = {"certificate-authority-data": b64(stranger.certificate)}
        with pytest.raises(Unreachable):
            await _asked(write(tmp_path / "config", {}, server, **strange))
        await runner.cleanup()

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_proxy_is_logged_in_to_and_no_message_holds_its_password(scheme: str) -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def story() -> str:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        proxy = f"http://me:s3%3Acret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = HttpTransport(Access(f"{scheme}://api.example:6443", Fixed(Login()), proxy=proxy))
        try:
            answer = await transport.send(Request("GET", "/api"), Login(bearer("t0ken")))
            return str(answer)
        except Unreachable as error:
            return str(error)
        finally:
            await transport.close()
            server.close()

    told = asyncio.run(story())
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:s3:cret") in asked[0]
    assert (b"t0ken" in asked[0]) == (scheme == "http"), "a tunnel is dug first"
    assert "407" in told
    assert not any(secret in told for secret in ("cret", "t0ken"))


def test_of_certificates_that_rotate_only_the_present_one_is_kept() -> None:
    """A process that runs for months would else keep them all."""
    authority = Authority()

    async def main() -> None:
        transport = HttpTransport(Access("https://127.0.0.1:1", Fixed(Login()), Trust(authority.certificate)))
        for number in range(3):
            certificate = ClientCertificate(*authority.issue(f"client-{number}"))
            with pytest.raises(Unreachable):
                await transport.send(Request("GET", "/version"), Login(certificate=certificate))
            assert list(transport._contexts) == list(transport._direct) == [certificate]
        await transport.close()

    asyncio.run(main())
