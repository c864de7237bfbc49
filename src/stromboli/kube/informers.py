"""Informers that run together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, TypeVar

from stromboli.kube.informer import Informer

T = TypeVar("T")

DOUBT_EVERY: Final = 5.0
"""Seconds between looks whether watches may say nothing because the server has gone and come back."""


class Informers:
    """Several informers that run together, by kind."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Informer[object]] = {}
        self._running: asyncio.TaskGroup | None = None

    def add(self, informer: Informer[T], name: str = "") -> Informer[T]:
        """Take one in, under its kind or another ``name``, which runs at once if the others do; returns it."""
        self.by_kind[name or informer.resource.kind] = informer  # type: ignore[assignment]  # its objects are not looked at here
        if self._running is not None:
            self._running.create_task(informer.run())
        return informer

    async def synced(self) -> None:
        """Return when all have told what there was."""
        await asyncio.gather(*(informer.synced.wait() for informer in self.by_kind.values()))

    def refresh(self) -> None:
        """List everything again."""
        for informer in self.by_kind.values():
            informer.refresh()

    def late(self) -> list[str]:
        """Kinds that have not been listed yet."""
        return [kind for kind, informer in self.by_kind.items() if not informer.synced.is_set()]

    async def run(self) -> None:
        """Run all until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._running:
                for informer in self.by_kind.values():
                    self._running.create_task(informer.run())
                self._running.create_task(self._doubt())
        finally:
            self._running = None

    async def _doubt(self) -> None:
        while True:
            await asyncio.sleep(DOUBT_EVERY)
            for informer in self.by_kind.values():
                informer.doubt()

    def figures(self) -> Mapping[str, tuple[int, int]]:
        """By kind, how often objects were listed and watches opened."""
        return {kind: (informer.relists, informer.watches) for kind, informer in self.by_kind.items()}
