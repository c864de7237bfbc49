"""The metrics of vGPU cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TypeAlias

from prometheus_client import Metric

from stromboli.metrics.descriptions import OF_CARDS, OF_PODS_ON_CARDS
from stromboli.metrics.families import Description, Labels, View, collected
from stromboli.metrics.parts import Hearers

Rows: TypeAlias = Mapping[Labels, tuple[float, ...]]
"""By labels, the values of several metrics in the order of their descriptions."""
Figures: TypeAlias = Callable[[], tuple[Rows, Rows]]
"""Makes what is shown of each card, and of each pod on a card."""


def nothing() -> tuple[Rows, Rows]:
    """The figures where no session has looked at cards."""
    return {}, {}


class Cards:
    """Gauges of cards as the last session saw them; they are computed when they are read."""

    def __init__(self) -> None:
        self._figures = self._told = nothing

    def hearers(self) -> Hearers:
        """All of them are told at once, before their session closes; a session that looks at no cards tells nothing."""
        return {"metric.vgpu_devices": self._keep, "session_closed": self._settle}

    def _keep(self, figures: Figures) -> None:
        self._told = figures

    def _settle(self, session: str) -> None:
        self._figures, self._told = self._told, nothing

    def views(self) -> Iterable[View]:
        """What was told last."""
        figures = cache(self._figures)
        for part, descriptions in enumerate((OF_CARDS, OF_PODS_ON_CARDS)):
            for place, description in enumerate(descriptions):
                yield partial(_made, description, figures, part, place)


def _made(description: Description, figures: Figures, part: int, place: int) -> Metric:
    return collected(description, ((labels, values[place]) for labels, values in figures()[part].items()))
