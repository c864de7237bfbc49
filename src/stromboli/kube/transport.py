"""Carrying requests to an API server and answers back: over HTTP, or in tests over nothing at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from stromboli.kube.credentials import Login

CONNECT: Final = 10.0
"""Seconds to wait for a connection."""


class Request(NamedTuple):
    """One request: ``path`` with a leading slash, ``params`` of the query, ``timeout`` in seconds for all of it.

    A stream has no end to wait for: there ``timeout`` is the longest silence, which ends it.
    """

    method: str
    path: str
    params: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    timeout: float = 60.0

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Response(NamedTuple):
    """The answer: the status, headers (asked for by lower-case names), and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An answer that comes bit by bit."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, asked for by lower-case names."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Pieces of the body as they arrive, until the server ends it or has been silent for the request's timeout.

        Raises Unreachable when the connection breaks.
        """


class Transport(Protocol):
    """Carries requests.  Every method raises Unreachable when no answer comes."""

    async def send(self, request: Request, login: Login) -> Response:
        """Send a request and wait for the whole answer."""

    def stream(self, request: Request, login: Login) -> AbstractAsyncContextManager[Stream]:
        """Send a request and follow its answer."""

    async def close(self) -> None:
        """Let go of all connections."""


class Checked:
    """A transport that asks ``check`` right before it carries anything but a read; what that raises is raised."""

    def __init__(self, transport: Transport, check: Callable[[], object]) -> None:
        self._transport, self._check = transport, check
        self.stream, self.close = transport.stream, transport.close

    async def send(self, request: Request, login: Login) -> Response:
        """Send a request and wait for the whole answer."""
        if request.method != "GET":
            self._check()
        return await self._transport.send(request, login)
