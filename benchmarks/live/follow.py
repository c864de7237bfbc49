"""When each pod of a run was created, bound and running, as the API server's audit log tells.

A watch of our own would take CPU from what is measured: the server would write every pod to it three times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.live.audit import Audit, Entry

PAUSE: Final = 1 / 16
"""Seconds between two looks at the log."""
_TOLD_BY: Final = {"create pods": "created", "create pods/binding": "bound", "patch pods/status": "running"}
"""Of which times a request tells."""


@dataclass
class Times:
    """By pod, the server's clock in seconds since 1970 when its creation, binding and first status were answered.

    The first status that a kubelet writes says that the pod runs.
    """

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)

    def note(self, entry: Entry) -> None:
        """Take a request in."""
        times: dict[str, float] | None = getattr(self, _TOLD_BY.get(entry.request, ""), None)
        if times is None or not entry.succeeded or (times is self.running and entry.client != "stromboli-kubelets"):
            return
        times.setdefault(entry.name, entry.answered)


async def until_running(
    audit: Audit, times: Times, pods: int, limit: float, ended: Callable[[], Sequence[str]]
) -> None:
    """Follow until so many pods run.  Raises TimeoutError after ``limit`` seconds, or once a process has ``ended``."""
    async with asyncio.timeout(limit):
        while len(times.running) < pods:
            await asyncio.sleep(PAUSE)
            for entry in audit.news():
                times.note(entry)
            if ended():
                raise TimeoutError
