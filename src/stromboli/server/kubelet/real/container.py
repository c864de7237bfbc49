"""A container that is a process: its log, its end, and what its status says."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from stromboli.cluster.body import Body
from stromboli.server.kubelet.real.layout import SETUP_FAILED

MOST_LOG: Final = 8 << 20
"""Bytes of a container's log; the rest is left out."""
_CUT: Final = b"\n[stromboli: the log is longer than 8 MiB; the rest is left out]\n"
_PIECE: Final = 1 << 16


@dataclass
class Container:
    """One container of a pod through all its runs; ``state`` and ``last`` are those of its status."""

    name: str
    image: str
    folder: Path
    restarts: int = 0
    state: Body = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last: Body = field(default_factory=dict)
    run: asyncio.Task[int] | None = None
    """The present run, which answers with the exit code."""
    pid: int = 0
    """Number of its first process, 0 before that is known and after its end."""
    told: signal.Signals | None = None
    """The last signal sent."""

    @property
    def log(self) -> Path:
        """Where its output is kept."""
        return self.folder / "log"

    @property
    def exit_code(self) -> int | None:
        """That of the last run, None while it runs or waits."""
        code = self.state.get("terminated", {}).get("exitCode")
        return None if code is None else int(code)

    async def follow(self, process: asyncio.subprocess.Process) -> int:
        """Keep what a process writes until it ends; gives its exit code, 128 and the signal's number if killed."""
        output = process.stdout or asyncio.StreamReader()
        first = await output.readline()
        self.pid = int(first) if first.strip().isdigit() else 0
        if self.told is not None:
            self.signal(self.told)
        left = MOST_LOG
        with self.log.open("wb") as log:
            log.write(b"" if self.pid else first)
            while piece := await output.read(_PIECE):
                log.write(piece[:left])
                if left and len(piece) >= left:
                    log.write(_CUT)
                left = max(left - len(piece), 0)
                log.flush()
        code = await process.wait()
        self.pid = 0
        return code if code >= 0 else 128 - code

    def ended(self, code: int, at: str) -> None:
        """Note the end of a run."""
        began = self.state.get("running", {}).get("startedAt", at)
        reason = {0: "Completed", SETUP_FAILED: "StartError"}.get(code, "Error")
        self.state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": at}}

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process, if it runs."""
        self.told = number
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def status(self, identity: str) -> Body:
        """Its part of the pod's status."""
        runs = "running" in self.state
        base = {"name": self.name, "image": self.image, "imageID": self.image, "containerID": identity}
        more = {"ready": runs, "started": runs, "restartCount": self.restarts}
        return {**base, **more, "state": self.state, "lastState": self.last}
