"""Silence while something is only tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stromboli.narration.observe import BulkTeller, Columns, Teller


class Mute:
    """In a ``with`` block of it, what it has been put over tells nothing: for trials that are taken back.

    Blocks may stand within each other; ``on`` says whether the present one is silent.
    """

    __slots__ = ("_outer", "on")

    def __init__(self) -> None:
        self.on = False
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(self.on)
        self.on = True

    def __exit__(self, *_error: object) -> None:
        self.on = self._outer.pop()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """In a block of this everything is told: for what is computed once and kept, so that nothing tells it later."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before

    def over(self, say: Teller | None) -> Teller | None:
        """``say``, which may be muted from now on."""
        if say is None:
            return None

        def told(**fields: object) -> None:
            if not self.on:
                say(**fields)

        return told

    def over_all(self, say: BulkTeller | None) -> BulkTeller | None:
        """As :meth:`over`."""
        if say is None:
            return None

        def told(count: int, columns: Columns) -> None:
            if not self.on:
                say(count, columns)

        return told
