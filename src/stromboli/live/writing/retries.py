"""How long what keeps failing is left alone before it is tried again."""

from __future__ import annotations

from typing import Final

FIRST: Final = 1.0
LONGEST: Final = 30.0
"""Seconds after the first failure, and at most; each failure doubles them."""

FORGOTTEN: Final = 600.0
"""Seconds after which a failure counts no more."""


class Retries:
    """Failures in a row of whatever has a name, such as pods by uid; times are seconds since 1970."""

    def __init__(self) -> None:
        self._failed: dict[str, tuple[float, float]] = {}
        """When each failed last, and the pause after it; the newest come last."""

    def failed(self, name: str, now: float) -> None:
        """Note a failure, and forget those of long ago."""
        _, pause = self._failed.pop(name, (0.0, 0.0))
        self._failed[name] = now, min(2 * pause or FIRST, LONGEST)
        while (oldest := next(iter(self._failed))) != name and now - self._failed[oldest][0] > FORGOTTEN:
            del self._failed[oldest]

    def succeeded(self, name: str) -> None:
        """The next failure is the first one."""
        self._failed.pop(name, None)

    def is_over(self, name: str, now: float) -> bool:
        """Whether the pause after the last failure, if any, is over."""
        at, pause = self._failed.get(name, (0.0, 0.0))
        return now >= at + pause
