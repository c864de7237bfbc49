"""A reverse proxy on loopback before an API server: it fails on demand, cuts watches or muffles them."""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import web

from e2e.clusters import Login
from tests.support.faulty import Confused

_HOPS: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
"""Headers that are of one connection only."""

_NO_LIMIT: Final = aiohttp.ClientTimeout(total=None)


class Strike(NamedTuple):
    """What becomes of a request: a ``code``, or with 0 a connection that breaks; ``done`` says that it was carried out.

    ``after`` is the Retry-After of the answer in seconds.
    """

    code: int = 0
    done: bool = False
    after: str = ""


class Asked(NamedTuple):
    """One request, and the status that the server gave it; 0 where it never came there."""

    method: str
    path: str
    status: int


Rule = Callable[[str, str, bytes], Strike | None]
"""From method, path and body of a request to what becomes of it; None lets it pass."""


@dataclass(eq=False)
class _Stream:
    """A watch that is passed on, until it is ``muffled``."""

    request: web.Request
    muffled: bool = False


class _Lines:
    """What a server tells, line by line."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.status, self.headers, self._content = answer.status, answer.headers, answer.content

    async def chunks(self) -> AsyncIterator[bytes]:
        """The lines."""
        async for line in self._content:
            yield line


class Once:
    """Strikes every write at its first attempt, and no other: one object by its path, a new one by its body."""

    def __init__(self, strike: Strike) -> None:
        self.strike = strike
        self.seen: set[tuple[str, str, bytes]] = set()

    def __call__(self, method: str, path: str, body: bytes) -> Strike | None:
        if method == "GET":
            return None
        point = (method, path, body if method == "POST" else b"")
        if point in self.seen:
            return None
        self.seen.add(point)
        return self.strike


def let_pass(_method: str, _path: str, _body: bytes) -> None:
    """No request is struck."""


class Proxy:
    """Passes on what ``rule`` lets pass to the server that ``login`` names; ``asked`` is what has been.

    With a ``delay`` in seconds each request waits first; with dice in ``confused`` watches tell everything twice or
    more, and old news again.
    """

    def __init__(self, login: Login) -> None:
        self.rule: Rule = let_pass
        self.delay = 0.0
        self.asked: list[Asked] = []
        self.confused: random.Random | None = None
        self.url = ""
        self._target, self._trust = login.url, ssl.create_default_context(cadata=login.authority)
        self._loop = asyncio.new_event_loop()
        self._streams: set[_Stream] = set()
        self._session: aiohttp.ClientSession | None = None

    # ------------------------------------------------------------------ from the test's thread

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """Serve while the block lasts."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        runner = self._done(self._start())
        try:
            yield self
        finally:
            self._done(self._stop(runner))
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    @property
    def watches(self) -> int:
        """How many watches are passed on: those that were cut, or whose client has gone, are none."""
        return len(self._streams)

    def cut(self) -> None:
        """Break all watches."""
        self._done(self._cut())

    def muffle(self) -> None:
        """Keep all watches of this moment open for ever, and pass no more of what they tell."""
        self._done(self._muffle())

    def _done(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    # ------------------------------------------------------------------ in the loop's thread

    async def _start(self) -> web.AppRunner:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, read_bufsize=1 << 22
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    async def _stop(self, runner: web.AppRunner) -> None:
        await self._cut()
        await runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _cut(self) -> None:
        broken, self._streams = self._streams, set()
        for stream in broken:
            _break_off(stream.request.transport)

    async def _muffle(self) -> None:
        for stream in self._streams:
            stream.muffled = True

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """A watch ends with its client; any other request is carried out and noted, whether its client stays or not."""
        if "watch" in request.query:
            return await self._answered(request)
        return await asyncio.shield(self._answered(request))

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await asyncio.sleep(self.delay)
        strike = self.rule(request.method, request.path, body)
        if strike is not None and not strike.done:
            self.asked.append(Asked(request.method, request.path, 0))
            return self._struck(request, strike)
        if self._session is None:
            raise web.HTTPBadGateway
        url, headers = self._target + request.path_qs, _passed(request.headers)
        async with self._session.request(
            request.method, url, data=body, headers=headers, ssl=self._trust, timeout=_NO_LIMIT
        ) as answer:
            self.asked.append(Asked(request.method, request.path, answer.status))
            if "watch" in request.query:
                return await self._followed(request, answer)
            content = await answer.read()
        if strike is not None:
            return self._struck(request, strike)
        return web.Response(status=answer.status, headers=_passed(answer.headers), body=content)

    async def _followed(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """A watch until it ends.  Its connection is broken off: TLS's close_notify may come when the loop is over."""
        try:
            return await self._follow(request, answer)
        finally:
            if answer.connection is not None:
                _break_off(answer.connection.transport)

    async def _follow(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        found = web.StreamResponse(status=answer.status, headers=_passed(answer.headers))
        await found.prepare(request)
        stream = _Stream(request)
        self._streams.add(stream)
        try:
            with suppress(ConnectionResetError):  # the client has just gone
                await self._pass_on(stream, answer, found)
        finally:
            self._streams.discard(stream)
        return found

    async def _pass_on(self, stream: _Stream, answer: aiohttp.ClientResponse, found: web.StreamResponse) -> None:
        async for line in self._told(answer):
            if stream.muffled:
                break
            await found.write(line)
        if stream.muffled:
            await asyncio.Event().wait()  # until the client goes

    def _told(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        told = _Lines(answer)
        return told.chunks() if self.confused is None else Confused(told, self.confused).chunks()

    def _struck(self, request: web.Request, strike: Strike) -> web.Response:
        if not strike.code:
            _break_off(request.transport)
            return web.Response()
        reasons = {409: "Conflict", 429: "TooManyRequests"}
        body = {"kind": "Status", "apiVersion": "v1", "code": strike.code, "reason": reasons.get(strike.code, "")}
        headers = {"Retry-After": strike.after} if strike.after else {}
        return web.json_response({**body, "message": "struck"}, status=strike.code, headers=headers)


def _break_off(transport: asyncio.Transport | None) -> None:
    if transport is not None:
        transport.abort()


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in headers.items() if name.lower() not in _HOPS}
