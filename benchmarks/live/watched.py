"""``stromboli serve`` with a watch on its event loop: ``python -m benchmarks.live.watched FILE FLAGS...``.

Whenever the loop stood still for long, a line of JSON goes to FILE (:class:`Stall`).
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections import Counter
from operator import sub
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from stromboli.live.process.flags import parse
from stromboli.live.process.process import serve

BEAT: Final = 0.005
"""Seconds between two beats of a loop that has nothing to do."""

LONG: Final = 0.03
"""Seconds without a beat that are written down."""


_IDLE: Final = ("-", "Thread._bootstrap")
"""Threads without work."""


class Stall(msgspec.Struct):
    """The loop did not turn.  Times are in seconds: ``at`` since 1970, when it turned again; ``lasted`` of the clock.

    ``loop`` and ``process`` are CPU of the loop's thread and of all.  ``waited`` is for how long the loop's thread
    could have run, but the machine had no CPU for it.  ``collecting`` is the garbage collector's part of ``lasted``;
    ``where`` counts by function what ran, as far as it could be sampled.
    """

    at: float
    lasted: float
    loop: float
    process: float
    waited: float
    collecting: float
    where: dict[str, int]

    @property
    def kept(self) -> float:
        """How long our own work kept the loop: its own, and that of threads for which it waited.

        What it waited for a CPU is the machine's; and nothing of ours keeps it for longer than all of ours has run.
        """
        return max(min(self.lasted - self.waited, self.process), self.loop)


class Watch:
    """Beats in the loop, and a thread that looks where the loop is when it does not beat."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("ab", buffering=0)
        self._loop = threading.get_ident()
        self._schedule = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._beaten = time.perf_counter()
        self._seen: Counter[str] = Counter()
        self._collecting = self._began = 0.0

    async def run(self) -> None:
        """Watch until cancelled."""
        gc.callbacks.append(self._collected)
        threading.Thread(target=self._look, daemon=True).start()
        while True:
            before = self._costs()
            self._beaten = began = time.perf_counter()
            await asyncio.sleep(BEAT)
            lasted = time.perf_counter() - began - BEAT
            if lasted > LONG:
                loop, process, waited, collecting = map(sub, self._costs(), before)
                found = Stall(time.time(), lasted, loop, process, waited, collecting, dict(self._seen))
                self._file.write(msgspec.json.encode(found) + b"\n")
            self._seen.clear()

    def _costs(self) -> tuple[float, float, float, float]:
        """So far: the loop's CPU, the process's, what the loop has waited for a CPU, and collecting."""
        waited = int(self._schedule.read_bytes().split()[1]) / 1e9
        return time.thread_time(), time.process_time(), waited, self._collecting

    def _look(self) -> None:
        while True:
            time.sleep(BEAT)
            if time.perf_counter() - self._beaten > LONG:
                for thread, frame in sys._current_frames().items():
                    place = _place(frame)
                    if thread == self._loop or (thread != threading.get_ident() and place not in _IDLE):
                        self._seen[place if thread == self._loop else f"[beside] {place}"] += 1

    def _collected(self, phase: str, _info: Any) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        else:
            self._collecting += now - self._began


def _place(frame: FrameType | None) -> str:
    """The innermost function of ours, and what it has called."""
    inner = None
    while frame is not None:
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        if "/stromboli/" in frame.f_code.co_filename:
            module = frame.f_code.co_filename.rpartition("/stromboli/")[2]
            return f"{module}:{name}" + (f" > {inner}" if inner else "")
        inner = name
        frame = frame.f_back
    return inner or "-"


def main() -> int:
    """Serve, watched."""
    file, *flags = sys.argv[1:]
    return serve(parse(flags), lambda _: [Watch(Path(file)).run()])


if __name__ == "__main__":
    sys.exit(main())
