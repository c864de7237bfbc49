"""The embedded server on a socket of the local machine."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn

from stromboli.cluster.body import Body
from stromboli.errors import CannotServe
from stromboli.server.admission.admission import Admission
from stromboli.server.api import Api
from stromboli.server.controllers.node_lifecycle import TICK
from stromboli.server.http.accepting import Acceptor, room_for_connections
from stromboli.server.http.access import Access, access_in
from stromboli.server.http.connections import IDLE, BoundedProtocol
from stromboli.server.http.http import Front
from stromboli.server.storage.journal import SqliteJournal

_LOG: Final = logging.getLogger(__name__)
LOOPBACK: Final = "127.0.0.1"
_BASE: Final = "objects.sqlite"
_BACKLOG: Final = 1024


@dataclass(frozen=True)
class Serving:
    """A server that runs: where it is, and what lets one in."""

    api: Api
    url: str
    access: Access


@asynccontextmanager
async def serving(
    directory: Path,
    *,
    durable: bool = False,
    port: int = 0,
    admissions: Sequence[Admission] = (),
    objects: Iterable[Body] = (),
    front: Callable[[Api], Front] = Front,
) -> AsyncIterator[Serving]:
    """Run a server while the block lasts.

    ``directory`` takes certificates, token and kubeconfig, and if ``durable`` the objects too.  Port 0 leaves the
    choice to the system.  ``front`` makes the handler of requests, for callers that want to see them.
    """
    access = access_in(directory, LOOPBACK)
    journal = SqliteJournal(directory / _BASE) if durable else None
    later = asyncio.get_running_loop().call_soon
    api = Api(
        later, journal=journal, admissions=admissions, objects=objects, certificate=access.authority, token=access.token
    )
    try:
        with _listening(port) as listening:
            server = _Guest(_settings(front(api), access))
            task = asyncio.create_task(server.serve([listening]))
            await _started(server, task)
            url = f"https://{LOOPBACK}:{listening.getsockname()[1]}"
            access.write_kubeconfig(url)
            ticking = asyncio.create_task(_ticking(api))
            try:
                yield Serving(api, url, access)
            finally:
                ticking.cancel()
                api.watcher.close()
                server.should_exit = True
                await task
    finally:
        if journal is not None:
            journal.close()


async def _ticking(api: Api) -> None:
    while True:
        await asyncio.sleep(TICK)
        try:
            api.clockwork.tick()
        except Exception:  # noqa: BLE001 - one object's trouble is logged, and time goes on
            _LOG.exception("clockwork")


def _listening(port: int) -> socket.socket:
    # Named TCP, as event loops send at once only over sockets that say so: others wait 40 ms for the end of an answer.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except OSError as error:
        listening.close()
        raise CannotServe(f"port {port} of {LOOPBACK}: {error.strerror}") from error
    listening.listen(_BACKLOG)
    return listening


def _settings(front: Front, access: Access) -> uvicorn.Config:
    return uvicorn.Config(
        front,
        log_level="error",  # its warnings are about kubectl exec, which wants a websocket
        access_log=False,
        lifespan="off",
        http=BoundedProtocol,
        ws="none",
        ssl_certfile=access.certificate,
        ssl_keyfile=access.private_key,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=2,
        server_header=False,
    )


class _Guest(uvicorn.Server):
    """A server that leaves signals to its caller, and waits for TLS handshakes no longer than for heads."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections on ``sockets``."""
        state, most = self.server_state, room_for_connections()
        protocol = partial(BoundedProtocol, config=self.config, server_state=state, app_state={})
        acceptors = [Acceptor(one, protocol, self.config.ssl, state.connections, most) for one in sockets or ()]
        for acceptor in acceptors:
            acceptor.start()
        self.servers = acceptors  # type: ignore[assignment]  # as far as they are asked, they are servers
        self.started = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none."""
        yield


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        if task.done():
            await task
            raise CannotServe("the API server ended while it started")
        await asyncio.sleep(0.005)
