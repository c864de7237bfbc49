"""A transport that fails on demand: what servers without a network have in common.

``faults`` are asked about every request, before and after it is carried out, and may answer in its place, raise, or let
it pass with None.
"""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from stromboli.kube.credentials import Login
from stromboli.kube.transport import Request, Response, Stream

Json = dict[str, Any]
Fault = Callable[[Request, str], Response | None]
"""Asked with ``before`` and ``after``; what it returns is the answer, what it raises is raised."""


def status(code: int, reason: str, message: str = "", **headers: str) -> Response:
    """An answer that is a Status."""
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message or reason}
    return Response(code, {name.replace("_", "-"): text for name, text in headers.items()}, json.dumps(body).encode())


class Refused:
    """A stream that is none: the answer says why."""

    def __init__(self, response: Response) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body


class Confused:
    """A watch that sends everything twice, and old events again; only the newest of an object always comes last."""

    def __init__(self, stream: Stream, dice: random.Random) -> None:
        self.status, self.headers, self._stream, self._dice = stream.status, stream.headers, stream, dice
        self._past: list[tuple[str, bytes]] = []
        self._newest: dict[str, bytes] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream.chunks():
            for line in chunk.splitlines(keepends=True):
                for told in self._told(line):
                    yield told

    def _told(self, line: bytes) -> list[bytes]:
        event = json.loads(line)
        if event["type"] in ("BOOKMARK", "ERROR"):
            return [line]
        meta = event["object"]["metadata"]
        name = f"{meta.get('namespace')}/{meta['name']}"
        self._newest[name] = line
        again = self._dice.sample(self._past, min(3, len(self._past)))
        self._past.append((name, line))
        return [line, line, *(old for _, old in again), *(self._newest[about] for about, _ in again)]


class Faulty(ABC):
    """Notes the requests and their senders, asks the faults, and takes ``latency`` seconds for each.

    With dice in ``confused`` watches tell everything twice or more.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.logins: list[Login] = []
        self.faults: list[Fault] = []
        self.latency = 0.0
        self.confused: random.Random | None = None

    async def send(self, request: Request, login: Login) -> Response:
        self.requests.append(request)
        self.logins.append(login)
        if (found := self._fault(request, "before")) is not None:
            return found
        await asyncio.sleep(self.latency)
        found = await self.carried_out(request)
        return self._fault(request, "after") or found

    @asynccontextmanager
    async def stream(self, request: Request, login: Login) -> AsyncIterator[Stream]:
        self.requests.append(request)
        self.logins.append(login)
        if (refused := self._fault(request, "before")) is not None:
            yield Refused(refused)
            return
        async with self.watched(request) as found:
            yield found if self.confused is None else Confused(found, self.confused)

    def _fault(self, request: Request, when: str) -> Response | None:
        return next((found for fault in self.faults if (found := fault(request, when)) is not None), None)

    async def close(self) -> None:
        self.cut()

    @abstractmethod
    async def carried_out(self, request: Request) -> Response:
        """The answer to a request."""

    @abstractmethod
    def watched(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """The answer to a watch."""

    @abstractmethod
    def cut(self, error: Exception | None = None) -> None:
        """End all watches."""
