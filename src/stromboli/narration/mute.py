"""Silence while something is only tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stromboli.narration.observe import BulkTeller, Teller


class Mute:
    """In a ``with`` block of it, what it has been put over tells nothing: for trials that are taken back."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_error: object) -> None:
        self.on = False

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
        return say and self._muted(say)

    def _muted(self, say: Callable[..., None]) -> Callable[..., None]:
        def told(*columns: object, **fields: object) -> None:
            if not self.on:
                say(*columns, **fields)

        return told

    def over_all(self, say: BulkTeller | None) -> BulkTeller | None:
        """As :meth:`over`."""
        return say and self._muted(say)
