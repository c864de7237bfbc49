"""Connections with bounds, as Go's HTTP server sets them for a kube-apiserver: sizes and times of heads and bodies.

uvicorn's protocol, on which this stands, bounds neither: a head of any size is collected, and may take for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

LARGEST_HEAD: Final = (1 << 20) + 4096
"""Bytes of a request line with its headers: Go's DefaultMaxHeaderBytes, and the slop that Go adds."""
HEAD_WITHIN: Final = 32.0
"""Seconds in which a head must arrive, and a TLS handshake be done: kube-apiserver's ReadHeaderTimeout."""
IDLE: Final = 90
"""Seconds for which a connection is kept without a request: kube-apiserver's IdleTimeout."""
_LARGEST_REST: Final = 256 * 1024
"""Bytes of a body that are read after the request was answered, so that the connection may be used again."""
_REST_WITHIN: Final = 5.0
"""Seconds in which that rest must arrive."""
_LINGER: Final = 0.5
"""Seconds between an answer and the end of a connection that the client still sends on: it may read the answer."""
_TOO_LARGE: Final = "431 Request Header Fields Too Large"


class BoundedProtocol(HttpToolsProtocol):
    """One connection whose client may keep the server neither busy nor waiting."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_bytes = 0
        """Bytes of a head, or after the last piece of a body."""
        self._rest_bytes = 0
        self._in_head = True
        self._closing = False
        self._deadline: asyncio.TimerHandle | None = None
        self._unanswered: deque[RequestResponseCycle] = deque()
        """Requests in the order in which they came, which is that of their answers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The TLS handshake is done."""
        super().connection_made(transport)
        self._due(HEAD_WITHIN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._due(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head or to trailers, and read on."""
        if self._closing:
            return
        self._head_bytes += len(data)
        if self._in_head and self._deadline is None:
            self._due(HEAD_WITHIN)
        super().data_received(data)
        if self._head_bytes > LARGEST_HEAD:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers, which follow a body in pieces, are no headers: nothing reads them."""
        if self._in_head:
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """The head is there, the body follows."""
        self._in_head = False
        self._due(None)
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > LARGEST_HEAD:
            self._refuse_head()
            return
        earlier = self.cycle
        super().on_headers_complete()
        if self.cycle is not earlier:
            self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """What comes after the answer is thrown away, and there is little patience with it."""
        if self._closing:
            return
        self._head_bytes = 0
        super().on_body(body)
        if self.cycle.response_complete:
            self._rest_bytes += len(body)
            if self._rest_bytes > _LARGEST_REST:
                self._end()

    def on_message_complete(self) -> None:
        """The next head may come."""
        self._head_bytes = self._rest_bytes = 0
        self._in_head = True
        if self._closing:
            return
        if self.cycle.response_complete:
            self._due(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The oldest request is answered; the rest of its body may still be on its way."""
        if self._unanswered.popleft().more_body and not self._in_head and self._deadline is None:
            self._due(_REST_WITHIN)
        super().on_response_complete()

    def _refuse_head(self) -> None:
        if self.transport.is_closing() or self._closing:
            return
        if not self._in_answer():
            told = _TOO_LARGE.encode()
            head = b"\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 " + told + head + told)
        self._end()

    def _in_answer(self) -> bool:
        """Whether an answer is begun: another one in its midst would be none."""
        return bool(self._unanswered) and self._unanswered[0].response_started

    def _end(self) -> None:
        """Read no more, and close as soon as the client had the time to read the answer."""
        self._closing = True
        self.flow.pause_reading()
        self._due(_LINGER)

    def _due(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
