"""HTTP/1.1 connections to one server: each carries one request at a time, and is kept for the next one.

What an API server is asked is short and comes often, so what counts is the CPU for each request: a quarter of what a
client of all servers of the world takes.  The parsing is httptools'.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Final, NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from stromboli.kube.transport import CONNECT, Response

IDLE: Final = 50.0
"""Seconds that a connection is kept without a request: less than what most servers, and what is before them, wait."""


class Address(NamedTuple):
    """Where a server is; ``tls`` None for plain HTTP, ``name`` what its certificate says where that is not the host."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    name: str = ""


class Connection(asyncio.Protocol):
    """One connection.  ``open`` until one side closes it; ``since`` is when it was last put aside."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Response] | None = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._headed = False
        self.open = True
        self.since = 0.0
        self.closed = asyncio.get_running_loop().create_future()

    async def ask(self, request: bytes) -> Response:
        """Send a request and wait for the whole answer.  Raises ConnectionError when there will be none."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Let go of it, whatever is under way."""
        self.open = False
        self._transport.abort()

    # ------------------------------------------------------------------ what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be used."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Part of an answer."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"what came is no answer: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The other side is gone, or has said all: an answer may have no other end."""
        self.open = False
        if error is None and self._headed and not {"content-length", "transfer-encoding"} & self._headers.keys():
            self.on_message_complete()
        self._fail(error or ConnectionResetError("the server has closed the connection"))
        del self._parser  # which knows us: neither would go by its own count of references
        self.closed.set_result(None)

    # ------------------------------------------------------------------ what the parser calls

    def on_message_begin(self) -> None:
        """An answer begins, perhaps one to nothing."""
        if self._answer is None:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The body follows."""
        self._headed = True

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """An answer is whole; one of 1xx only comes before another one."""
        found = Response(self._parser.get_status_code(), self._headers, b"".join(self._body))
        self._headers, self._body, self._headed = {}, [], False
        if found.status < 200:
            return
        self.open = self.open and self._parser.should_keep_alive()
        if answer := self._awaited():
            answer.set_result(found)

    def _fail(self, error: Exception) -> None:
        if answer := self._awaited():
            answer.set_exception(error)

    def _awaited(self) -> asyncio.Future[Response] | None:
        """A result with one waiter, which is woken only once."""
        answer, self._answer = self._answer, None
        return None if answer is None or answer.done() else answer


class Connections:
    """Up to ``most`` connections to ``address``, the last one used first, so that those too many fall idle."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._free = asyncio.Semaphore(most)
        self._all: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._retired = False

    async def send(self, request: bytes, seconds: float) -> Response:
        """Send a request, and wait so long for the whole answer.  Raises OSError, TimeoutError among them."""
        async with asyncio.timeout(seconds), self._free:
            connection = self._idle_one() or await self._opened()
            try:
                found = await connection.ask(request)
            except BaseException:
                connection.close()
                raise
            self._put_aside(connection)
            return found

    def retire(self) -> None:
        """Keep no connection any more; requests under way may end."""
        self._retired = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in self._idle:
            connection.close()

    async def close(self) -> None:
        """Close all of them, and return when they are."""
        self.retire()
        left = list(self._all)
        for connection in left:
            connection.close()
        await asyncio.gather(*(connection.closed for connection in left))

    # ------------------------------------------------------------------ opening and keeping

    def _idle_one(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        return None

    async def _opened(self) -> Connection:
        host, port, tls, name = self._address
        loop = asyncio.get_running_loop()
        server_name = (name or host) if tls else None
        try:
            async with asyncio.timeout(CONNECT):
                _, found = await loop.create_connection(Connection, host, port, ssl=tls, server_hostname=server_name)
        except TimeoutError as error:
            raise ConnectionError(f"no connection within {CONNECT:g} s") from error
        self._all.add(found)
        found.closed.add_done_callback(lambda _: self._all.discard(found))
        return found

    def _put_aside(self, connection: Connection) -> None:
        if self._retired or not connection.open:
            connection.close()
            return
        connection.since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweep()

    def _sweep(self) -> None:
        """Close what has been idle for too long; look again when the next one will have been."""
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[0].since <= loop.time() - IDLE:
            self._idle.popleft().close()
        self._sweeping = loop.call_at(self._idle[0].since + IDLE, self._sweep) if self._idle else None
