"""Figures of a live scheduler in addition to those of its cycles, read when metrics are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from stromboli.live.scheduler.recording import Recorder
    from stromboli.live.scheduler.scheduler import LiveScheduler
    from stromboli.metrics.logs import LogObserver

PREFIX = "stromboli_"


class Figures(Collector):
    """What stands somewhere and is read when ``registry`` is; nothing is read until then."""

    def __init__(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def describe(self) -> list[Metric]:
        """Nothing to check for collisions."""
        return []


class LiveGauges(Figures):
    """Shows what a scheduler counts; the reference has no such figures, so they bear our own prefix."""

    def __init__(self, registry: CollectorRegistry, scheduler: LiveScheduler, recorder: Recorder | None = None) -> None:
        self._scheduler, self._recorder = scheduler, recorder
        super().__init__(registry)

    def collect(self) -> Iterator[Metric]:
        """All figures as they stand."""
        one = self._scheduler
        binder, evictor, recorder = one.executor.binder, one.executor.evictor, one.recorder
        yield _counter("state_drift", "Objects of which the state differed from a fresh list.", one.audit.found)
        yield _counter("audits", "Comparisons of the state with a fresh list.", one.audit.runs)
        yield _counter("audit_failures", "Kinds and objects whose comparison or repair failed.", one.audit.failed)
        yield _counter("stale_events", "Events that brought nothing new.", one.mirror.stale)
        yield _counter("binds", "Pods bound.", binder.bound)
        yield _counter("bind_failures", "Bindings that failed.", binder.failed)
        yield _counter("evictions", "Pods evicted.", evictor.evicted)
        yield _counter("eviction_failures", "Evictions that failed.", evictor.failed)
        yield _counter("events_written", "Events written.", recorder.written)
        yield _counter("events_dropped", "Events given up.", recorder.dropped)
        yield _gauge("writes_in_flight", "Requests that wait or are under way.", one.executor.in_flight)
        yield _gauge("assumed_pods", "Pods whose binding or eviction is not confirmed yet.", len(one.mirror.assumed))
        refused = float(one.configuration.is_refused)
        yield _gauge("configuration_refused", "1 while the configuration file as it stands is refused.", refused)
        yield _gauge("leading", "1 where this process leads.", float(one.may_write()))
        if self._recorder is not None:
            yield _counter("record_failures", "Times that recording has stopped.", self._recorder.failures)
            yield _counter("record_bytes", "Bytes recorded.", self._recorder.bytes)
        relists = CounterMetricFamily(PREFIX + "relists", "Whole lists of a kind that were read.", labels=["kind"])
        for kind, (lists, _watches) in one.informers.figures().items():
            relists.add_metric([kind], lists)
        yield relists
        failures = CounterMetricFamily(PREFIX + "duty_failures", "Failures of background work.", labels=["duty"])
        for duty, times in list(one.duties.failures.items()):
            failures.add_metric([duty], times)
        yield failures


class LogGauges(Figures):
    """Shows what a log has not been able to say."""

    def __init__(self, registry: CollectorRegistry, log: LogObserver) -> None:
        self._log = log
        super().__init__(registry)

    def collect(self) -> Iterator[Metric]:
        """The figure as it stands."""
        yield _counter("log_lines_lost", "Log lines that could not be written.", self._log.lost)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
