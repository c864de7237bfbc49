"""The frame of a process of ours: election, pages, signals and logs around the parts that work while it leads."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, Protocol

from prometheus_client import CollectorRegistry

from stromboli.errors import in_words
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.memory import giving_back
from stromboli.live.process.events import Telling, flush
from stromboli.live.process.flags import IDLE
from stromboli.live.process.gauges import LogGauges
from stromboli.live.process.leading import Leadership
from stromboli.live.process.loops import run_in_fastest_loop
from stromboli.live.process.web import Pages
from stromboli.metrics.logs import LogObserver
from stromboli.metrics.prometheus import new_registry

OK: Final = 0
LOST: Final = 1
"""Exit codes: stopped as asked, and the Lease lost."""

SWITCH: Final = 0.0002
"""Seconds for which a thread keeps the interpreter while another one wants it.

The event loop gives it up at every look at its sockets and with all that is encrypted, so that next to a cycle's thread
it waits for so long several times a request.
"""

Values = Mapping[str, Any]
"""Flags by name with underscores (:func:`stromboli.live.process.flags.parse`)."""

Asked = Callable[[], Coroutine[Any, Any, None]]
"""What is done because a signal has come."""


class Part(Protocol):
    """What a process is there for."""

    async def run(self) -> None:
        """Work until cancelled, or until :meth:`stop` has been called and done."""

    def stop(self) -> None:
        """Finish what is under way, hand back the rest, and return from :meth:`run`."""


class Service:
    """A process from its flags: ``parts`` run, ``pages`` are served, and the Lease is held meanwhile.

    ``background`` are endless coroutines.  :meth:`run` returns the exit code.  It always shuts down in this order:
    parts, what signals have asked for, the Lease, pages, connections, log; so nothing of ours is under way any more
    when another may lead.
    """

    def __init__(self, flags: Values, agent: str) -> None:
        self.flags = flags
        self.registry: CollectorRegistry = new_registry()
        self.log = LogObserver(sys.stderr, flags["v"], flags["log_format"])
        LogGauges(self.registry, self.log)
        access = find_access(flags["kubeconfig"], flags["context"], flags["master"])
        self.client = Client.reaching(access, qps=flags["kube_api_qps"], burst=flags["kube_api_burst"], agent=agent)
        self.leadership = Leadership()
        self.parts: list[Part] = []
        self.pages: list[Pages] = []
        self.background: Collection[Coroutine[Any, Any, None]] = ()
        self.asked: dict[int, Asked] = {}
        """What is done alongside everything else when a signal comes; unexpected errors in it are reported."""
        self.tell = Telling(self.log)
        for text in flags[IDLE]:
            self.tell("complaint", text=text)
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Serve until a signal says to stop (0), or the Lease is lost (1)."""
        async with self.client:
            self._listen()
            try:
                for pages in self.pages:
                    await pages.start()
                return await self._serve()
            finally:
                for pages in self.pages:
                    await pages.stop()
                self.log.flush()

    def stop(self) -> None:
        """End in order; what is under way is finished first."""
        for part in self.parts:
            part.stop()

    async def _serve(self) -> int:
        parts = [asyncio.create_task(part.run(), name=type(part).__name__) for part in self.parts]
        leading = asyncio.create_task(self.leadership.lead(), name="lease")
        logging = asyncio.create_task(flush(self.log, self.flags["log_flush_frequency"]), name="logs")
        memory = asyncio.create_task(giving_back(), name="memory")
        background = [logging, memory, *map(asyncio.create_task, self.background)]
        try:
            return await _until_over(parts, leading, background)
        finally:
            await _ended([*parts, *background])
            await asyncio.gather(*self._answering, return_exceptions=True)
            await _ended([leading])
            await self.leadership.release()

    # ------------------------------------------------------------------ signals

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for ending in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(ending, self.stop)
        for number, work in self.asked.items():
            loop.add_signal_handler(number, self._answer, number, work)

    def _answer(self, number: int, work: Asked) -> None:
        task = asyncio.create_task(self._answered(number, work))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answered(self, number: int, work: Asked) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  # what was only asked for ends nothing
            self.tell("signal_failed", signal=signal.Signals(number).name, error=in_words(error))


async def _until_over(
    parts: Collection[asyncio.Task[None]], leading: asyncio.Task[None], background: Collection[asyncio.Task[None]]
) -> int:
    """Wait until all parts are done, or the Lease is lost; raises what failed first of all these."""
    waiting = {*parts, leading, *background}
    while not waiting.isdisjoint(parts):
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        if leading in done:
            return LOST
    return OK


async def _ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel ``tasks`` and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run_service(make: Callable[[], Service]) -> int:
    """Run a process in the event loop that suits it best, and return its exit code."""

    async def main() -> int:
        return await make().run()

    sys.setswitchinterval(SWITCH)
    return run_in_fastest_loop(main())
