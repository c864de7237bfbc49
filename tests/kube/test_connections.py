"""Requests over connections that are kept: answers in all their forms, and ends of every kind."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

import pytest

from stromboli.errors import AccessError, Unreachable
from stromboli.kube import connections, http_transport
from stromboli.kube.access import Access
from stromboli.kube.credentials import Fixed, Login, bearer
from stromboli.kube.http_transport import HttpTransport
from stromboli.kube.transport import Request, Response

PATIENCE = 60.0
"""Seconds until a story gives up, which it never does unless something is broken."""

PACKED = gzip.compress(b'{"items":[]}')


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@dataclass
class Server:
    """Answers each request with what ``answers`` says by its path; ``None`` ends the connection, silence is silence."""

    answers: dict[str, list[bytes | None]]
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    opened: int = 0
    ended: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = next((int(line[15:]) for line in head.splitlines() if line.startswith("Content-Length:")), 0)
                self.bodies.append(await reader.readexactly(length))
                for part in self.answers[head.split()[1]]:
                    if part is None:
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.ended += 1


def told(answers: dict[str, list[bytes | None]], story: Callable[[Server, HttpTransport], Coroutine[None, None, None]]):
    """Run a story with a server and a transport to it, which leaves no connection behind."""

    async def main() -> None:
        server = Server(answers)
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        transport = HttpTransport(Access(f"http://127.0.0.1:{port}/base", Fixed(Login())), 2)
        await story(server, transport)
        await transport.close()
        async with asyncio.timeout(PATIENCE):
            while server.ended < server.opened:
                await asyncio.sleep(0.001)
        listening.close()

    asyncio.run(main())


async def get(transport: HttpTransport, path: str, timeout: float = 5.0) -> Response:
    return await transport.send(Request("GET", path, timeout=timeout), Login())


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ([answer(b"{}")], b"{}"),
        ([answer(b"", status="204 No Content")[:-21] + b"\r\n\r\n"], b""),
        ([answer(b"whole")[:30], answer(b"whole")[30:]], b"whole"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n"], b"abcde"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", answer(b"after")], b"after"),
        ([answer(PACKED, "Content-Encoding: gzip")], b'{"items":[]}'),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil the", b" end", None], b"until the end"),
    ],
    ids=["at once", "empty", "in pieces", "chunked", "hints first", "packed", "until the end"],
)  # fmt: skip
def test_answers_come_in_many_forms(parts: list[bytes | None], body: bytes) -> None:
    async def story(_server: Server, transport: HttpTransport) -> None:
        for _ in range(2):
            found = await get(transport, "/a")
            assert (found.status // 100, found.body) == (2, body)

    told({"/base/a": parts}, story)


def test_a_request_says_what_it_is() -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        params = {"fieldSelector": "spec.nodeName!=a b", "limit": "5"}
        request = Request("PATCH", "/a/system:ä", params, {"Content-Type": "application/json"}, b'{"a":1}')
        found = await transport.send(request, Login(bearer("t0ken")))
        assert (found.status, found.headers["retry-after"]) == (429, "7")
        first, *headers = server.heads[0].splitlines()
        assert first == "PATCH /base/a/system:%C3%A4?fieldSelector=spec.nodeName%21%3Da+b&limit=5 HTTP/1.1"
        assert {"Content-Type: application/json", "Authorization: Bearer t0ken"} < set(headers)
        assert json.loads(server.bodies[0]) == {"a": 1}

    path = "/base/a/system:%C3%A4?fieldSelector=spec.nodeName%21%3Da+b&limit=5"
    told({path: [answer(b"", "Retry-After: 7", status="429 Too Many Requests")]}, story)


def test_a_login_cannot_smuggle_headers_in() -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        with pytest.raises(AccessError) as refused:
            await transport.send(Request("GET", "/a"), Login(bearer("t0ken\r\nImpersonate-User: root")))
        assert "t0ken" not in str(refused.value)
        assert not server.heads

    told({}, story)


def test_connections_are_kept_and_no_more_than_allowed() -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        for _ in range(3):
            await get(transport, "/a")
        assert server.opened == 1
        await asyncio.gather(*(get(transport, "/a") for _ in range(8)))
        assert server.opened == 2

    told({"/base/a": [answer(b"{}")]}, story)


def test_a_connection_that_either_side_ends_is_not_used_again() -> None:
    last: dict[str, list[bytes | None]] = {
        "says": [answer(b"{}", "Connection: close")],
        "does": [answer(b"{}"), None],
        "talks": [answer(b"{}"), answer(b"{}", status="408 Request Timeout")],
        "mumbles": [answer(b"{}"), answer(b"{}", status="408 Request Timeout")[:10]],
    }

    async def story(server: Server, transport: HttpTransport) -> None:
        for path in last:
            await get(transport, f"/{path}")
            async with asyncio.timeout(PATIENCE):
                while server.ended < server.opened:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)  # both sides know
        assert server.opened == len(last)

    told({f"/base/{path}": parts for path, parts in last.items()}, story)


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([None], "closed the connection"),
        ([answer(b"abcdef")[:-3], None], "closed the connection"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "no answer:"),
        ([], "no answer within 0.2 s"),
        ([answer(b"abcdef")[:-3]], "no answer within 0.2 s"),
        ([answer(b"not packed", "Content-Encoding: gzip")], "incorrect header"),
    ],
    ids=["nothing", "half of it", "another language", "silence", "silence in the middle", "garbled"],
)
def test_no_whole_answer_leaves_everything_open(parts: list[bytes | None], word: str) -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        for opened in (1, 2) if "header" not in word else (1, 1):
            with pytest.raises(Unreachable, match=word) as unknown:
                await get(transport, "/a", timeout=0.2 if "within" in word else PATIENCE)
            assert unknown.value.request == "GET /a"
            async with asyncio.timeout(PATIENCE):
                while server.opened < opened:  # it may not have had its turn yet
                    await asyncio.sleep(0.001)
            assert server.opened == opened

    told({"/base/a": parts}, story)


def test_a_port_without_a_listener_is_unreachable() -> None:
    async def story(_server: Server, _transport: HttpTransport) -> None:
        closed = HttpTransport(Access("http://127.0.0.1:1", Fixed(Login())))
        with pytest.raises(Unreachable, match="Connect"):
            await get(closed, "/a")
        await closed.close()

    told({}, story)


def test_a_request_that_is_given_up_takes_its_connection_along() -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        for _ in range(3):  # more than there are connections
            asking = asyncio.create_task(get(transport, "/silent"))
            async with asyncio.timeout(PATIENCE):
                while len(server.heads) == server.ended:
                    await asyncio.sleep(0.001)
                asking.cancel()
                while server.ended < server.opened:
                    await asyncio.sleep(0.001)
        assert (await get(transport, "/a")).body == b"{}"

    told({"/base/silent": [], "/base/a": [answer(b"{}")]}, story)


def test_closing_ends_what_is_under_way() -> None:
    async def story(server: Server, transport: HttpTransport) -> None:
        asking = asyncio.create_task(get(transport, "/silent"))
        async with asyncio.timeout(PATIENCE):
            while not server.heads:
                await asyncio.sleep(0.001)
            await transport.close()
            with pytest.raises(Unreachable):
                await asking

    told({"/base/silent": []}, story)


def test_a_request_under_way_ends_well_on_a_connection_that_is_kept_no_longer() -> None:
    """As when the certificate is renewed that connections appear with."""

    async def story(server: Server, transport: HttpTransport) -> None:
        await get(transport, "/a")
        old = transport._connections(None)
        asking = asyncio.create_task(old.send(b"GET /base/a HTTP/1.1\r\n\r\n", 5.0))
        await asyncio.sleep(0)
        old.retire()
        assert (await asking).body == b"{}"
        async with asyncio.timeout(PATIENCE):
            while server.ended < server.opened:
                await asyncio.sleep(0.001)

    told({"/base/a": [answer(b"{}")]}, story)


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE", 0.02)

    async def story(server: Server, transport: HttpTransport) -> None:
        await asyncio.gather(get(transport, "/a"), get(transport, "/a"))
        async with asyncio.timeout(PATIENCE):
            while server.ended < 2:
                await asyncio.sleep(0.005)
        await get(transport, "/a")
        assert server.opened == 3

    told({"/base/a": [answer(b"{}")]}, story)


def streamed(
    answered: Callable[[asyncio.StreamWriter], Awaitable[None]],
    story: Callable[[HttpTransport, AsyncIterator[bytes]], Awaitable[None]],
) -> None:
    """Run a story with a stream that a server has ``answered`` with, and then ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answered(writer)
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            transport = HttpTransport(Access(f"http://127.0.0.1:{port}", Fixed(Login())), 2)
            async with transport.stream(Request("GET", "/a", timeout=PATIENCE), Login()) as stream:
                await story(transport, stream.chunks())
            await transport.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("much", "parts"), [(1 << 16, [b"first", b"second third "]), (1, [b"first", b"second ", b"third "])]
)
def test_what_follows_a_small_part_of_a_stream_is_read_together(
    much: int, parts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, "GATHERED", 1.0)
    monkeypatch.setattr(http_transport, "MUCH", much)

    is_read = asyncio.Event()

    async def answered(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        await is_read.wait()
        for text in (b"second ", b"third "):
            writer.write(text)
            await writer.drain()
            await asyncio.sleep(0.05)

    async def story(transport: HttpTransport, found: AsyncIterator[bytes]) -> None:
        assert await anext(found) == parts[0]
        is_read.set()
        assert [part async for part in found] == parts[1:]

    streamed(answered, story)


def test_a_stream_that_is_closed_while_it_is_not_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "GATHERED", 0.1)

    is_closed = asyncio.Event()

    async def answered(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await is_closed.wait()

    async def story(transport: HttpTransport, found: AsyncIterator[bytes]) -> None:
        assert await anext(found) == b"first"
        await transport.close()
        is_closed.set()
        with pytest.raises(Unreachable):
            await anext(found)

    streamed(answered, story)
