"""An embedded server in a process of its own, which writes its log to a file: ``python -m benchmarks.chaos.served``."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stromboli.server.http.serving import serving

LOG = "server.log"


@dataclass(frozen=True)
class Served:
    """Where a server is, and what lets one in."""

    port: int
    token: str
    authority: str
    process: subprocess.Popen[str]


async def serve(folder: Path) -> None:
    """Serve until told to end, and say where."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with serving(folder, durable=True) as found:
        (folder / "authority.pem").write_text(found.access.authority)
        print(found.url.rsplit(":", 1)[1], found.access.token, flush=True)
        await over.wait()


@contextmanager
def server(folder: Path) -> Iterator[Served]:
    """A server over the objects of ``folder`` while the block lasts.  Raises OSError when it does not start."""
    with (folder / LOG).open("a") as log:
        command = [sys.executable, "-m", "benchmarks.chaos.served", str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    with process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise OSError(f"the server did not start: {folder / LOG}")
        port, token = line.split()
        try:
            yield Served(int(port), token, (folder / "authority.pem").read_text(), process)
        finally:
            process.terminate()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(serve(Path(sys.argv[1])))
