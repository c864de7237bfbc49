"""What a Service is to an API server: one address, behind which new connections go to replicas that are ready."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

LOOK_EVERY = 0.2
"""Seconds between looks at readiness; kube-proxy takes longer."""


class Replica(NamedTuple):
    """Where a replica serves, and where it says whether it is ready."""

    port: int
    health_port: int


class Balancer:
    """Passes connections on, in turn, to the replicas that were ready at the last look."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.replicas = replicas
        self._ready: list[Replica] = []
        self._turn = 0

    async def look(self) -> None:
        """Look at readiness, for ever."""
        while True:
            answers = await asyncio.gather(*(asyncio.to_thread(is_ready, one) for one in self.replicas))
            self._ready = [one for one, is_ready in zip(self.replicas, answers, strict=True) if is_ready]
            await asyncio.sleep(LOOK_EVERY)

    async def passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on, as bytes."""
        for _ in range(len(self._ready)):
            self._turn += 1
            chosen = self._ready[self._turn % len(self._ready)]
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", chosen.port)
                await asyncio.gather(_copied(reader, back), _copied(there, writer))
                return
        writer.close()


def is_ready(one: Replica) -> bool:
    """Whether a replica says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{one.health_port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


@contextmanager
def balanced(port: int, replicas: Sequence[Replica]) -> Iterator[None]:
    """Serve on ``port`` while the block lasts, in a thread of its own."""
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        balancer = Balancer(replicas)
        async with await asyncio.start_server(balancer.passed, "127.0.0.1", port):
            await balancer.look()

    task = loop.create_task(serve())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)
