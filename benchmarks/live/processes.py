"""Processes of a run, each with a log of its own, and what they cost as the system counts it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_STOP_SECONDS = 10.0


class Cost(NamedTuple):
    """CPU seconds so far and memory in MiB now."""

    cpu: float
    mib: float


class Processes:
    """Starts processes in ``folder`` and ends them, last one first, when the ``with`` block is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End all, and wait for it."""
        for process in reversed(self._running.values()):
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start ``command``, with more in its ``environment``; its log is ``name``.log in the folder."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_environment() | dict(environment or {})
            )

    def adopt(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Count a process that another part started and will have ended by then."""
        self._running[name] = process

    def pid(self, name: str) -> int:
        """The number of a process."""
        return self._running[name].pid

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a process a signal."""
        self._running[name].send_signal(number)

    def kill(self, name: str) -> None:
        """Kill a process, and wait until it is gone; another of the name may be started then."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def ended(self) -> list[str]:
        """Names of those that have ended by themselves, with the last lines of their logs."""
        return [f"{name}: {self._tail(name)}" for name, process in self._running.items() if process.poll() is not None]

    def costs(self) -> dict[str, Cost]:
        """What each has cost so far."""
        return {name: cost_of(process.pid) for name, process in self._running.items() if process.poll() is None}

    def _tail(self, name: str) -> str:
        log = self.folder / f"{name}.log"
        return log.read_text(errors="replace")[-1000:] if log.exists() else ""


def _environment() -> dict[str, str]:
    """Ours, but so that Python keeps its bytecode, as it does of what is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cost_of(pid: int) -> Cost:
    """CPU seconds and resident memory of a process."""
    fields = _stat(Path(f"/proc/{pid}"))
    return Cost(_cpu(fields), int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20)


def in_threads(pid: int) -> float:
    """CPU seconds of a process's threads, other than its first."""
    return sum(_cpu(_stat(thread)) for thread in Path(f"/proc/{pid}/task").iterdir() if thread.name != str(pid))


def _stat(folder: Path) -> list[str]:
    """What the system counts of a process or thread, from the third figure on."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _cpu(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
