"""Prometheus metrics: an observer that keeps the figures it is told and shows them when they are asked for.

Telling in bulk costs one update of a dictionary; labels and samples are made when metrics are read.  Nothing is shared
between two observers, so each scheduler of a process brings a registry of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.registry import Collector

from stromboli.metrics.cards import Cards
from stromboli.metrics.descriptions import CONTROLLERS, DESCRIPTIONS
from stromboli.metrics.families import PREFIX, Description
from stromboli.metrics.parts import Clock, Counts, Durations, Hearers, Jobs, Part, Queues
from stromboli.narration.observe import Columns, each
from stromboli.narration.spans import Span


class MetricsObserver(Collector):
    """Keeps the metrics of one scheduler and shows them in ``registry``.

    ``clock`` gives seconds since 1970; ``timer`` gives seconds, for the lengths of spans.  Any thread may tell and
    read; spans of one kind and name must not overlap.
    """

    def __init__(self, registry: CollectorRegistry, clock: Clock = time.time, timer: Clock = time.perf_counter) -> None:
        self._lock = threading.Lock()
        self._durations = Durations(timer)
        self._parts: tuple[Part, ...] = (self._durations, Counts(), Jobs(clock), Queues(), Cards())
        self._hearers: Hearers = {key: hear for part in self._parts for key, hear in part.hearers().items()}
        registry.register(self)

    def wants(self, key: str) -> bool:
        """Whether it is one of the keys that metrics are made of."""
        return key in self._hearers

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Keep the figures."""
        if hear := self._hearers.get(key):
            with self._lock:
                hear(**fields)

    def tell_all(self, key: str, count: int, columns: Columns) -> None:
        """Keep the figures of what is told at once."""
        if hear := self._hearers.get(key):
            with self._lock:
                for fields in each(count, columns):
                    hear(**fields)

    def started(self, kind: str, name: str) -> None:
        """Look at the timer."""
        self._durations.started(kind, name)

    def ended(self, kind: str, name: str) -> None:
        """Count how long it took."""
        with self._lock:
            self._durations.ended(kind, name)

    def span(self, kind: str, name: str) -> Span:
        """:meth:`started` and :meth:`ended` of one span."""
        return self._durations.span(kind, name, self._lock)

    def describe(self) -> Iterator[Metric]:
        """The families without samples, for which registering need not ask :meth:`collect`."""
        return (description.family() for description in DESCRIPTIONS.values())

    def collect(self) -> Iterator[Metric]:
        """All families that have series, as they stand now."""
        with self._lock:
            views = [view for part in self._parts for view in part.views()]
        return (metric for metric in (view() for view in views) if metric.samples)


def new_registry() -> CollectorRegistry:
    """A registry that shows this process: memory, processor time, files, garbage collection and Python's version."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


def generate_page() -> str:
    """The documentation page of the metrics, in Markdown."""
    head = ("# Metrics", "", *_EXPLANATION, "", "| name | kind | labels | meaning | buckets |", "|---|---|---|---|---|")
    controllers = ("", _CONTROLLERS, "", *head[-2:], *map(_row, CONTROLLERS))
    return "\n".join((*head, *map(_row, DESCRIPTIONS.values()), *controllers)) + "\n"


_EXPLANATION = (
    "Generated from `stromboli.metrics.descriptions`. Durations are in milliseconds. Buckets form an exponential",
    "range: the upper ends of the first and of the last, and their number. Series of a job or queue go with it.",
)

_CONTROLLERS = "The controllers show these, those of a job for as long as it is there:"


def _row(row: Description) -> str:
    buckets = "{:g} to {:g}, {}".format(*row.span) if row.span else ""
    text = f"{row.text} **Never set**: {row.unset}." if row.unset else row.text
    return f"| `{PREFIX}{row.name}` | {row.kind} | {', '.join(row.labels)} | {text} | {buckets} |"
