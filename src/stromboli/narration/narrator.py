"""How a session reports what happens."""

from __future__ import annotations

from typing import Final

from stromboli.narration.catalogue import LINES
from stromboli.narration.mute import Mute
from stromboli.narration.observe import BulkTeller, Observer, Teller, teller, teller_all

_AROUND: Final = frozenset(("scheduler", "session", "cache", "live"))
"""Components that tell nothing of the steps of an action."""

STEPS: Final = tuple(key for key, line in LINES.items() if line.verbosity and line.component not in _AROUND)
"""The keys of lines that tell of the steps of actions, errors and warnings aside."""


class Narrator:
    """What the observer of a session wants to know, asked once a key; nothing reaches it while ``mute`` is on."""

    __slots__ = ("_bulk_tellers", "_hears_steps", "_tellers", "mute", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer, self.mute = observer, Mute()
        self._tellers: dict[str, Teller | None] = {}
        self._hears_steps: bool | None = None
        self._bulk_tellers: dict[str, BulkTeller | None] = {}

    def tells(self, key: str) -> Teller | None:
        """What to call, with the fields of the catalogue, when ``key`` happens; None where nothing listens."""
        tellers = self._tellers
        if key not in tellers:
            tellers[key] = self.mute.over(teller(self.observer, key))
        return tellers[key]

    @property
    def hears_steps(self) -> bool:
        """Whether the observer wants any of :data:`STEPS`."""
        if self._hears_steps is None:
            self._hears_steps = any(self.observer.wants(key) for key in STEPS)
        return self._hears_steps

    def tells_all(self, key: str) -> BulkTeller | None:
        """What to call, with a number and columns of the fields, when ``key`` happens so many times at once."""
        if key not in self._bulk_tellers:
            self._bulk_tellers[key] = self.mute.over_all(teller_all(self.observer, key))
        return self._bulk_tellers[key]
