"""A scheduler process on a large cluster that stands in the measuring process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.live.processes import Cost, Processes, cost_of
from benchmarks.live.standing import Standing
from benchmarks.live.watched import Stall
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.server.http.serving import serving

SHAPE: Final = "64cpu,256Gi"
"""Every node, with 110 pods."""

_READY_SECONDS: Final = 300.0


@dataclass
class Served:
    """The scheduler of process ``pid``; ``folder`` holds its log and its stalls.

    Its metrics are at ``port``, what it says of its health at ``health``.
    """

    standing: Standing
    folder: Path
    pid: int
    port: int
    health: int

    async def metrics(self) -> str:
        """The page of its metrics."""
        return await asyncio.to_thread(_page, self.port, "/metrics")

    async def until_ready(self) -> None:
        """Wait until it has read everything."""
        async with asyncio.timeout(_READY_SECONDS):
            while not await self._is_ready():
                await asyncio.sleep(0.5)

    async def _is_ready(self) -> bool:
        try:
            return bool(await asyncio.to_thread(_page, self.health, "/readyz"))
        except OSError:  # not yet, or with the status 500
            return False

    def told(self, words: str) -> int:
        """How many lines of its log match ``words``."""
        return len(re.findall(words, (self.folder / "scheduler.log").read_text()))

    async def until_told(self, words: str, times: int = 1) -> None:
        """Wait until so many more lines match than there are now."""
        wanted = self.told(words) + times
        while self.told(words) < wanted:
            await asyncio.sleep(0.5)

    async def until_bound(self) -> None:
        """Wait until no pod waits any more."""
        while self.standing.waiting:
            await asyncio.sleep(0.2)

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        os.kill(self.pid, number)

    def cost(self) -> Cost:
        """CPU seconds so far, and memory now."""
        return cost_of(self.pid)

    def stalls(self) -> list[Stall]:
        """When its loop stood still, so far."""
        lines = (self.folder / "stalls").read_bytes().splitlines()
        return [msgspec.json.decode(line, type=Stall) for line in lines]


@asynccontextmanager
async def served(
    nodes: int, gangs: int, size: int, flags: Sequence[str] = (), program: Sequence[str] = ("benchmarks.live.watched",)
) -> AsyncIterator[Served]:  # fmt: skip
    """A scheduler that starts on ``nodes`` nodes on which ``gangs`` of ``size`` pods run, while the block lasts.

    ``program`` is what runs: a module and its first arguments, before the file of stalls and the flags.
    """
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        folder = Path(name)
        (folder / "volcano-scheduler.conf").write_text(CONFIGURATION)
        (folder / "stalls").touch()
        async with serving(folder / "server") as server:
            standing = Standing(server.api)
            standing.nodes(f"{nodes}x{SHAPE}")
            standing.running(gangs, size)
            port, health = _free_port(), _free_port()
            with Processes(folder) as processes:
                own = (*_flags(folder, server.access.kubeconfig, port, health), *flags)
                processes.start("scheduler", [sys.executable, "-m", *program, f"{folder}/stalls", *own])
                yield Served(standing, folder, processes.pid("scheduler"), port, health)
                await asyncio.to_thread(processes.stop)


def _page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return str(answer.read(), "utf-8")


def _flags(folder: Path, kubeconfig: Path, port: int, health: int) -> Sequence[str]:
    return (
        f"--kubeconfig={kubeconfig}", f"--scheduler-conf={folder}/volcano-scheduler.conf", "--leader-elect=false",
        f"--listen-address=127.0.0.1:{port}", "--enable-metrics", f"--cache-dump-dir={folder}", "-v=3",
        "--log-flush-frequency=1s", "--enable-healthz", f"--healthz-address=127.0.0.1:{health}",
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
