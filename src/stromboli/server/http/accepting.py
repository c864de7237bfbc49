"""Accepts connections, as many as there is room for.

Event loops' own servers count a connection after its TLS handshake, and when the system has no descriptor left they log
each of a thousand attempts a second.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Final

from stromboli.server.http.connections import HEAD_WITHIN

MOST_CONNECTIONS: Final = 2_000
"""Connections at once, those whose TLS handshake is under way included; further ones are closed."""
FILES: Final = 256
"""Descriptors that connections leave to files and to connections that go out; half of what there is if that is less."""
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""Seconds until the next attempt after one that failed: the double of the pause before, between the two."""
LINE_EVERY: Final = 60.0
"""Seconds between two lines of the log about the same trouble."""
_LOG: Final = logging.getLogger(__name__)


def room_for_connections() -> int:
    """How many connections the limit of open files leaves room for; raises the soft limit as far as is needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_CONNECTIONS
    aim = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
    except (OSError, ValueError) as error:
        _LOG.info("the limit of open files stays at %d: %s", soft, error)
        aim = soft
    room = max(1, aim - min(FILES, aim // 2))
    if room < MOST_CONNECTIONS:
        _LOG.info("%d connections at once, as at most %d files may be open (ulimit -n)", room, aim)
    return min(MOST_CONNECTIONS, room)


@dataclass
class _Trouble:
    """Tells of one sort of trouble seldom, and then how often there was some."""

    what: str
    _times: int = 0
    _silent_until: float = float("-inf")

    def tell(self, now: float, why: object) -> None:
        self._times += 1
        if now >= self._silent_until:
            _LOG.warning("%s: %s (%d times since the last such line)", self.what, why, self._times)
            self._times, self._silent_until = 0, now + LINE_EVERY


@dataclass(eq=False)
class Acceptor:
    """Accepts from ``listening``, with at most ``most`` connections; ``opened`` has those whose handshake is done.

    Belongs to the running event loop, from :meth:`start` to :meth:`close`.
    """

    listening: socket.socket
    protocol: Callable[[], asyncio.Protocol]
    context: ssl.SSLContext | None
    opened: Set[object]
    most: int
    _handshakes: dict[asyncio.Task[None], asyncio.Protocol] = field(default_factory=dict)
    _pause: float = 0.0
    _resting: asyncio.TimerHandle | None = None
    _full: _Trouble = field(default_factory=lambda: _Trouble("a connection was closed at once"))
    _failing: _Trouble = field(default_factory=lambda: _Trouble("no connection can be accepted"))

    def start(self) -> None:
        """Accept from now on, one connection in each round of the event loop: other work has its turn in between."""
        self.listening.setblocking(False)
        asyncio.get_running_loop().add_reader(self.listening, self._accept)

    def close(self) -> None:
        """Accept no more, and break off handshakes."""
        asyncio.get_running_loop().remove_reader(self.listening)
        if self._resting is not None:
            self._resting.cancel()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until nothing is under way any more."""
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = self.listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # the client has gone while it waited
        except OSError as error:  # EMFILE, for instance: others may close what they have open
            self._failing.tell(loop.time(), error)
            self._pause = min(max(2 * self._pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            loop.remove_reader(self.listening)
            self._resting = loop.call_later(self._pause, self.start)
            return
        self._pause = 0.0
        if len(self.opened | set(self._handshakes.values())) < self.most:
            self._take(connection)
        else:
            connection.close()
            self._full.tell(loop.time(), f"{self.most} are open, no more may be")

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        protocol = self.protocol()
        task = asyncio.get_running_loop().create_task(self._greet(connection, protocol))
        self._handshakes[task] = protocol

        def done(task: asyncio.Task[None]) -> None:
            del self._handshakes[task]
            if task.cancelled():  # it may not even have begun
                connection.close()

        task.add_done_callback(done)

    async def _greet(self, connection: socket.socket, protocol: asyncio.Protocol) -> None:
        within = HEAD_WITHIN if self.context else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, connection, ssl=self.context, ssl_handshake_timeout=within
            )
        except OSError as error:  # clients that speak no TLS, or do not trust us, are no trouble of the server's
            _LOG.debug("TLS handshake: %s", error)
            connection.close()
