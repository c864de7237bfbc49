"""How fast requests may follow each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Bucket:
    """A token bucket: ``burst`` requests at once, ``qps`` a second from then on, in the order of asking.

    ``qps`` 0 or less means no limit.  ``clock`` gives seconds; the event loop's time by default.
    """

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] | None = None) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._clock = clock
        self._full_at = float("-inf")
        self.waited = 0.0

    async def take(self) -> None:
        """Return when a request may go; ``waited`` adds up the seconds."""
        if self._qps > 0 and (wait := self.claim()) > 0:
            self.waited += wait
            await asyncio.sleep(wait)

    def claim(self) -> float:
        """Claim the next token; returns how many seconds remain until it counts."""
        now = self._clock() if self._clock else asyncio.get_running_loop().time()
        start = max(self._full_at, now)
        self._full_at = start + 1 / self._qps
        return max(self._full_at - now - self._burst / self._qps, 0.0)
