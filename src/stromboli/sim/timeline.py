"""Virtual time: what is due happens in order of its time, and nothing else takes any."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf

Call = Callable[[], object]
"""Something that happens."""


class Timeline:
    """A clock, ``now`` in seconds since 1970, and what is due when.

    Of what is due at the same time the one that was asked for first happens first, so equal histories are equal.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._due: list[tuple[float, bool, int, Call]] = []
        self._numbers = count()

    def at(self, when: float, call: Call, *, last: bool = False) -> None:
        """Let ``call`` happen at ``when``; what lies in the past happens next.

        ``last``: after all else that happens at that moment.
        """
        heappush(self._due, (max(when, self.now), last, next(self._numbers), call))

    def after(self, seconds: float, call: Call) -> None:
        """Let ``call`` happen so many seconds from now."""
        self.at(self.now + seconds, call)

    @property
    def due(self) -> float:
        """When the next thing is due; infinite where nothing is."""
        return self._due[0][0] if self._due else inf

    def step(self) -> bool:
        """Let what is due next happen; False where nothing is."""
        if self._due:
            self.now, _, _, call = heappop(self._due)
            call()
            return True
        return False

    def run(self, until: float) -> None:
        """Let everything happen that is due until then, that moment included; it is ``until`` afterwards."""
        while self._due and self._due[0][0] <= until:
            self.now, _, _, call = heappop(self._due)
            call()
        self.now = max(self.now, until)
