"""Keeps the state's loads of nodes up to date, between the cycles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stromboli.errors import DurationError, MeasurementError, in_words
from stromboli.kube.client import Client
from stromboli.live.scheduler.usage_sources import Clock, Settings, UsageSource, source_of
from stromboli.model.usage import NodeUsage
from stromboli.model.values import duration

INTERVAL: Final = 30.0
LONGEST: Final = 60.0
"""Seconds between two passes unless the settings say otherwise, and those that a pass may take."""


class UsagePoller:
    """Asks the configured source about all nodes, again and again; a pass that fails is told and changes nothing.

    ``settings`` gives the configuration's ``metrics`` of the moment: a changed one counts from the next pass on, but
    the interval stays what it was at the start.  ``nodes`` names the nodes, ``take`` receives the samples, ``tell``
    tells keys of the catalogue; ``fills`` says whether what Prometheus does not know counts as 0.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        nodes: Callable[[], Sequence[str]],
        take: Callable[[Mapping[str, NodeUsage]], None],
        tell: Callable[..., None],
        *,
        client: Client | None = None,
        clock: Clock = time.time,
        fills: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings, self._nodes, self._take, self._tell = settings, nodes, take, tell
        self._client, self._clock, self._fills = client, clock, fills
        self.interval = interval_of(settings().get("interval", ""))
        self._source: UsageSource | None = None
        self._made_of: tuple[Settings, bool] | None = None

    async def run(self) -> None:
        """Ask at intervals until cancelled."""
        try:
            while True:
                await self.once()
                await asyncio.sleep(self.interval)
        finally:
            await self._close()

    async def once(self) -> None:
        """One pass."""
        try:
            async with asyncio.timeout(LONGEST):
                source = await self._current()
                if source is None:
                    self._tell("metrics_type_missing")
                    return
                self._take(await source.sample(self._nodes()))
        except TimeoutError:
            self._tell("node_metrics_failed", error=MeasurementError("", f"no answer within {LONGEST:g} s"))
        except Exception as error:  # noqa: BLE001  # scheduling does not hang on what a source answers
            self._tell("node_metrics_failed", error=in_words(error))

    async def _current(self) -> UsageSource | None:
        """The source of the settings as they are now."""
        wanted = (dict(self._settings()), self._fills())
        if wanted != self._made_of:
            await self._close()
            self._source = source_of(wanted[0], self._clock, self._client, fills=wanted[1])
            self._made_of = wanted
        return self._source

    async def _close(self) -> None:
        if self._source is not None:
            await self._source.close()
        self._source = self._made_of = None


def interval_of(written: str) -> float:
    """Seconds of the interval; the default for anything but a duration above 0."""
    try:
        found = duration.seconds(written)
    except DurationError:
        return INTERVAL
    return found if found > 0 else INTERVAL
