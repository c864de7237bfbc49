"""The transport over HTTP/1.1: requests over connections of our own; streams, and what a proxy carries, by aiohttp."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

import aiohttp

from stromboli.errors import AccessError, Unreachable
from stromboli.kube.access import Access
from stromboli.kube.connections import Address, Connections
from stromboli.kube.credentials import Login, basic
from stromboli.kube.tls import ClientCertificate
from stromboli.kube.transport import CONNECT, Request, Response, Stream

READ_BUFFER: Final = 1 << 18
"""Bytes of a stream that are read ahead."""

GATHERED: Final = 0.03
"""Seconds for which a stream is not read after a small part of it: events come in numbers, and are read together."""
MUCH: Final = 1 << 16
"""Bytes of a part from which on a stream is read on at once: as much as this has gathered already."""

_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError, zlib.error)

_IN_PATHS: Final = "/:@!$&'()*+,;=~%"
"""What stands in paths as it is, besides letters, digits and ``_.-``."""

_GZIP: Final = 31
"""How zlib is told that what it unpacks begins as gzip's files do."""


class _HttpStream:
    def __init__(self, response: aiohttp.ClientResponse, request: Request) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response, self._request = response, request

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
                if len(chunk) < MUCH:
                    await self._let_gather()
        except TimeoutError:  # nothing may have happened, or the server may be away: the next request will show
            return
        except _BROKEN as error:
            raise _unreachable(error, self._request) from error
        except RuntimeError as error:  # aiohttp's, of a stream that was closed while it was not read
            if self._transport is not None:
                raise
            raise Unreachable("the connection was closed", request=str(self._request)) from error

    @property
    def _transport(self) -> asyncio.Transport | None:
        """What the stream comes by; None once it has ended."""
        connection = self._response.connection
        return None if connection is None else connection.transport

    async def _let_gather(self) -> None:
        """Leave what comes unread for a moment; decrypting, parsing and waking the reader for each event costs more.

        What comes in that moment before a connection breaks may be lost; the next watch goes on from the last event.
        """
        if (transport := self._transport) is None:
            return
        transport.pause_reading()
        try:
            await asyncio.sleep(GATHERED)
        finally:
            transport.resume_reading()


class HttpTransport:
    """Over HTTP/1.1 with up to ``connections`` of them, kept open, besides the streams."""

    def __init__(self, access: Access, connections: int = 64) -> None:
        self._access, self._most = access, connections
        self._server = urlsplit(access.server)
        self._proxy, self._proxy_login = _proxy(access.proxy)
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._direct: dict[ClientCertificate | None, Connections] = {}
        self._proxied: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def send(self, request: Request, login: Login) -> Response:
        """Send a request and wait for the whole answer."""
        try:
            if self._proxy:
                return await self._send_by_proxy(request, login)
            connections = self._connections(login.certificate)
            return _unpacked(await connections.send(self._encoded(request, login), request.timeout))
        except _BROKEN as error:
            raise _unreachable(error, request) from error

    async def _send_by_proxy(self, request: Request, login: Login) -> Response:
        self._proxied = self._proxied or self._opened(self._most)
        timeout = aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT)
        async with self._proxied.request(**self._arguments(request, login), timeout=timeout) as response:
            return Response(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def stream(self, request: Request, login: Login) -> AsyncIterator[Stream]:
        """Send a request and follow its answer."""
        self._streams = self._streams or self._opened(0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=request.timeout)
        try:
            response = await self._streams.request(**self._arguments(request, login), timeout=timeout)
        except _BROKEN as error:
            raise _unreachable(error, request) from error
        try:
            yield _HttpStream(response, request)
        finally:
            response.close()

    async def close(self) -> None:
        """Close the connections."""
        for pool in (*self._direct.values(), self._proxied, self._streams):
            if pool is not None:
                await pool.close()
        self._direct.clear()
        self._proxied = self._streams = None

    # ------------------------------------------------------------------ of our own

    def _connections(self, certificate: ClientCertificate | None) -> Connections:
        """Connections that appear with ``certificate``; those that appear with another one have had their time."""
        found = self._direct.get(certificate)
        if found is None:
            for old in self._direct.values():
                old.retire()
            host, tls = self._server.hostname or "", self._context(certificate)
            port = self._server.port or (443 if tls else 80)
            found = Connections(Address(host, port, tls, self._access.trust.server_name), self._most)
            self._direct = {certificate: found}
        return found

    def _encoded(self, request: Request, login: Login) -> bytes:
        """The request as it is sent.  Raises AccessError for a login that is no header."""
        path = quote(self._server.path.rstrip("/") + request.path, safe=_IN_PATHS)
        query = f"?{urlencode(request.params)}" if request.params else ""
        host = self._server.netloc.rpartition("@")[2]
        lines = [f"{request.method} {path}{query} HTTP/1.1", f"Host: {host}"]
        lines += [_header(*header) for headers in (request.headers, login.headers) for header in headers.items()]
        if request.method == "GET":
            lines.append("Accept-Encoding: gzip")
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + (request.body or b"")

    # ------------------------------------------------------------------ aiohttp's

    def _opened(self, connections: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, ttl_dns_cache=30, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector, read_bufsize=READ_BUFFER, auto_decompress=True, cookie_jar=aiohttp.DummyCookieJar()
        )

    @property
    def _tunnels(self) -> bool:
        """Whether a proxy only passes on what it cannot read, and is logged in to apart."""
        return self._server.scheme == "https"

    def _arguments(self, request: Request, login: Login) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": self._access.server + request.path,
            "params": request.params,
            "data": request.body,
            "headers": {**request.headers, **login.headers, **({} if self._tunnels else self._proxy_login)},
            "ssl": self._context(login.certificate) or True,
            "server_hostname": self._access.trust.server_name or None,
            "proxy": self._proxy,
            "proxy_headers": self._proxy_login if self._tunnels else None,
            "allow_redirects": False,
        }

    def _context(self, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
        if not self._tunnels:
            return None
        if certificate not in self._contexts:
            self._contexts = {certificate: self._access.trust.context(certificate)}  # the old one is no longer shown
        return self._contexts[certificate]


def _header(name: str, value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise AccessError(f"the header {name} would hold what no header can")
    return f"{name}: {value}"


def _unpacked(found: Response) -> Response:
    """Lists come packed, if they are long."""
    if found.headers.get("content-encoding") == "gzip":
        return found._replace(body=zlib.decompress(found.body, _GZIP))
    return found


def _proxy(address: str) -> tuple[str | None, dict[str, str]]:
    """A proxy's address, which errors tell, and the header with its name and password, which they don't."""
    parts = urlsplit(address)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if not parts.username:
        return bare or None, {}
    login = basic(unquote(parts.username), unquote(parts.password or ""))
    return bare, {"Proxy-Authorization": login["Authorization"]}


def _unreachable(error: Exception, request: Request) -> Unreachable:
    if isinstance(error, asyncio.TimeoutError):
        return Unreachable(f"no answer within {request.timeout:g} s", request=str(request))
    return Unreachable(f"{type(error).__name__}: {error}".rstrip(": "), request=str(request))
