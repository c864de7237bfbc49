"""Asking addresses: what counts as a good answer, and that none can keep the asker waiting or send it elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from stromboli.controllers.changes import Target
from stromboli.live.controllers import prober
from stromboli.live.controllers.prober import Prober

HERE = "127.0.0.1"


@asynccontextmanager
async def answering(reply: bytes, *, silent: bool = False):
    """A server that answers each request so; its port, and the requests that it has read."""
    heard: list[bytes] = []
    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            if silent:
                await reader.read()
            writer.write(reply)
        writer.close()

    async with await asyncio.start_server(talk, HERE, 0) as server:
        yield server.sockets[0].getsockname()[1], heard
        await asyncio.gather(*filter(None, talks))


def said(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("reply", "well"),
    [
        (said("200 OK"), True),
        (said("302 Found", "Location: http://127.0.0.1:1/"), True),
        (said("404 Not Found"), False),
        (said("503 Unavailable"), False),
        (b"nonsense\r\n\r\n", False),
        (b"", False),
    ],
)
def test_answers(reply: bytes, well: bool) -> None:
    async def main() -> None:
        async with answering(reply) as (port, heard):
            assert await Prober().ask(Target(HERE, port, "//other.example/a?b=c d", ("X-Mark", "yes"))) is well
            request = heard[0]
            assert request.startswith(b"GET //other.example/a?b=c+d HTTP/1.1\r\n")
            assert b"\r\nX-Mark: yes\r\n" in request
            assert await Prober().ask(Target(HERE, port)) is True

    asyncio.run(main())


def test_what_does_not_answer_or_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "PATIENCE", 0.05)

    async def main() -> None:
        async with answering(b"", silent=True) as (port, heard):
            asked = Prober()
            answers = await asyncio.gather(*(asked.ask(Target(HERE, port, "/")) for _ in range(20)))
            assert answers == [False] * 20
            before = len(heard)
            assert await asked.ask(Target(HERE, port, "/", ("X", "a\r\nHost: evil"))) is False
            assert len(heard) == before, "a header with a line break is not sent"
        for target in (Target(HERE, 1), Target(HERE, port), Target(HERE, 0, "/"), Target("no address", 80, "/")):
            assert await asked.ask(target) is False

    asyncio.run(main())
