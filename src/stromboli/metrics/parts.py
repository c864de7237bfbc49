"""What the metrics of a scheduler consist of: durations, counts, jobs, and queues with namespaces.

A part says which keys it hears, and gives views of its metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from prometheus_client import Metric

from stromboli.metrics.descriptions import AMOUNTS, COUNTED, DESCRIPTIONS, SET, TRANSACTIONS
from stromboli.metrics.families import Histogram, Labels, Numbers, Series, View, collected
from stromboli.model.resources.resource import Resource
from stromboli.narration.observe import NamespaceFigures, OnAxes, Placed, QueueFigures
from stromboli.narration.spans import Span

Clock: TypeAlias = Callable[[], float]
Hearers: TypeAlias = dict[str, Callable[..., None]]
"""By key, what takes its fields."""

_HELD: Final = 1 << 8
"""How much of what is told, or how many spans of a name, wait for a reader before they are worked off anyway."""


class Part(Protocol):
    """Some of the metrics."""

    def hearers(self) -> Hearers:
        """The keys that it wants."""

    def views(self) -> Iterable[View]:
        """Views of all its metrics."""


def _histogram(name: str) -> Histogram:
    return Histogram(DESCRIPTIONS[name])


def _itself(labels: Labels) -> Labels:
    return labels


def _namespace_and_name(uid: str) -> Labels:
    namespace, _, name = uid.partition("/")
    return namespace, name


def _name(uid: str) -> Labels:
    return (uid.partition("/")[2],)


# ---------------------------------------------------------------------------------------------------------- durations

_SPANS: Final[Mapping[str, tuple[str, Callable[[str], Labels]]]] = {
    "cycle": ("e2e_scheduling_latency_milliseconds", lambda _name: ()),
    "open_session": ("open_session_duration_milliseconds", lambda _name: ()),
    "action": ("action_scheduling_latency_milliseconds", lambda name: (name,)),
    "plugin_open": ("plugin_scheduling_latency_milliseconds", lambda name: (name, "OnSessionOpen")),
    "plugin_close": ("plugin_scheduling_latency_milliseconds", lambda name: (name, "OnSessionClose")),
    "stage": ("scheduling_stage_duration_milliseconds", lambda name: (name,)),
}
"""By kind of span, the histogram and the labels of a name."""


class Durations:
    """How long spans took."""

    def __init__(self, timer: Clock) -> None:
        self._timer = timer
        self._started: dict[tuple[str, str], float] = {}
        self._histograms = {name: _histogram(name) for name, _ in _SPANS.values()}
        self._took: dict[tuple[str, str], list[float]] = {}

    def started(self, kind: str, name: str) -> None:
        """A span begins; one of the same kind and name that has not ended is forgotten."""
        self._started[kind, name] = self._timer()

    def ended(self, kind: str, name: str) -> None:
        """A span is over; one that never began is not counted."""
        began = self._started.pop((kind, name), None)
        if began is not None and kind in _SPANS:
            self._hold(kind, name, self._timer() - began)

    def span(self, kind: str, name: str, lock: AbstractContextManager[object]) -> Span:
        """:meth:`started` and :meth:`ended` of one span that is announced often; its figures change under ``lock``."""
        if kind not in _SPANS:
            return _not_counted, _not_counted
        timer, took = self._timer, self._took.setdefault((kind, name), [])
        began: float | None = None

        def started() -> None:
            nonlocal began
            began = timer()

        def ended() -> None:
            nonlocal began
            if began is None:
                return
            took.append((timer() - began) * 1000)  # whole, even while another thread reads
            began = None
            if len(took) >= _HELD:
                with lock:
                    self._work_off()

        return started, ended

    def _hold(self, kind: str, name: str, seconds: float) -> None:
        held = self._took.setdefault((kind, name), [])
        held.append(seconds * 1000)
        if len(held) >= _HELD:
            self._work_off()

    def _work_off(self) -> None:
        for (kind, name), took in self._took.copy().items():  # another thread may prepare a span meanwhile
            milliseconds = took.copy()
            del took[: len(milliseconds)]  # the list is that of prepared spans: what has come meanwhile stays in it
            if milliseconds:
                histogram, labels = _SPANS[kind]
                self._histograms[histogram].observe(labels(name), milliseconds)

    def hearers(self) -> Hearers:
        """Stages that others timed."""
        return {"metric.stage_duration": lambda stage, seconds: self._hold("stage", stage, seconds)}

    def views(self) -> Iterable[View]:
        """The histograms."""
        self._work_off()
        return [histogram.view() for histogram in self._histograms.values()]


def _not_counted() -> None:
    """Of spans of no histogram."""


# ------------------------------------------------------------------------------------------------------------- counts


class Counts:
    """Plain counters and gauges; those without labels are 0 from the start."""

    def __init__(self) -> None:
        names = (*SET.values(), *(name for name, _ in COUNTED.values()), "eviction_transactions_total")
        self._numbers = {name: Numbers(DESCRIPTIONS[name], _itself) for name in names}
        for numbers in self._numbers.values():
            if not numbers.description.labels:
                numbers.values[()] = 0

    def hearers(self) -> Hearers:
        """One counter or gauge each."""
        counted = {key: self._counter(name, labels) for key, (name, labels) in COUNTED.items()}
        return {
            **counted,
            **{key: self._gauge(name) for key, name in SET.items()},
            "metric.eviction_transaction": self._evicted,
        }

    def _counter(self, name: str, labels: tuple[str, ...]) -> Callable[..., None]:
        add = self._numbers[name].add
        return lambda **fields: add(tuple(str(fields[label]) for label in labels))

    def _gauge(self, name: str) -> Callable[..., None]:
        values = self._numbers[name].values
        return lambda count: values.update({(): count})

    def _evicted(self, action: str) -> None:
        if action in TRANSACTIONS:
            self._numbers["eviction_transactions_total"].add((action,))

    def views(self) -> Iterable[View]:
        """All of them."""
        return [numbers.view() for numbers in self._numbers.values()]


# --------------------------------------------------------------------------------------------------------------- jobs


class Figures:
    """A gauge by job whose values are set all at once and evaluated when they are read."""

    def __init__(self, name: str, labels: Callable[[str], Labels]) -> None:
        self._description, self._labels = DESCRIPTIONS[name], labels
        self._values: Mapping[str, float] = {}
        self._gone: set[str] = set()

    def tell(self, values: Mapping[str, float]) -> None:
        """Forget what was told before."""
        self._values, self._gone = values, set()

    def pop(self, job: str, _default: None) -> None:
        """Show ``job`` no longer."""
        self._gone.add(job)

    def view(self) -> View:
        """What was told last."""
        values, gone = self._values, self._gone.copy()

        def made() -> Metric:
            numbers = Numbers(self._description, self._labels)
            numbers.values.update((job, value) for job, value in values.items() if job not in gone)
            return numbers.view()()

        return made


class Jobs:
    """Series of each job, and the latencies of jobs and pods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: list[tuple[float, Iterable[Placed]]] = []
        self._reached: list[tuple[float, str, Sequence[float]]] = []
        self._latency = _histogram("e2e_job_scheduling_latency_milliseconds")
        self._task_latency = _histogram("task_scheduling_latency_milliseconds")
        self._share = Figures("job_share", _namespace_and_name)
        self._lacking = Figures("unschedule_task_count", _name)
        self._retries = Numbers(DESCRIPTIONS["job_retry_counts"], _name)
        self._begun: dict[str, tuple[str, float]] = {}
        self._placed: dict[str, tuple[str, float, float]] = {}

    def hearers(self) -> Hearers:
        """Figures of jobs, most of them in bulk."""
        return {
            "metric.job_share": self._shared,
            "metric.unschedule_task_count": self._lacked,
            "metric.job_retry_counts": self._retried,
            "metric.e2e_job": self._hold,
            "metric.task_latency": self._task_reached,
            "metric.job_started": self._begin,
            "metric.job_deleted": self._forget,
        }

    def _shared(self, shares: Mapping[str, float]) -> None:
        self._share.tell(shares)

    def _lacked(self, counts: Mapping[str, float]) -> None:
        self._lacking.tell(counts)

    def _retried(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self._retries.add(job)

    def _begin(self, job: str, queue: str, created: float) -> None:
        self._begun[job] = (queue, created)

    def _task_reached(self, stage: str, created: Sequence[float]) -> None:
        self._reached.append((self._clock(), stage, created))
        if len(self._reached) >= _HELD:
            self._work_off()

    def _hold(self, placed: Iterable[Placed]) -> None:
        self._held.append((self._clock(), placed))
        if len(self._held) >= _HELD:
            self._work_off()

    def _work_off(self) -> None:
        for now, placed in self._held:
            latencies = [(now - one.created) * 1000 for one in placed]
            self._latency.observe((), latencies, [one.tasks for one in placed])
            self._placed.update({one.job: (one.queue, one.created, now) for one in placed})
        self._held.clear()
        by_stage: dict[str, list[float]] = {}
        for now, stage, created in self._reached:
            by_stage.setdefault(stage, []).extend([(now - one) * 1000 for one in created])
        for stage, latencies in by_stage.items():
            self._task_latency.observe((stage,), latencies)
        self._reached.clear()

    def _forget(self, job: str) -> None:
        self._work_off()
        for series in (self._share, self._lacking, self._retries.values, self._begun, self._placed):
            series.pop(job, None)

    def views(self) -> Iterable[View]:
        """Histograms, and gauges by job."""
        self._work_off()
        views = [gauge.view() for gauge in (self._share, self._lacking, self._retries)]
        return [*views, self._latency.view(), self._task_latency.view(), *self._e2e_views()]

    def _e2e_views(self) -> Iterator[View]:
        placed, begun = self._placed.copy(), self._begun.copy()
        yield lambda: _of_jobs(
            "e2e_job_scheduling_duration",
            ((job, queue, max(now - created, 0) * 1000) for job, (queue, created, now) in placed.items()),
        )
        yield lambda: _of_jobs(
            "e2e_job_scheduling_last_time", ((job, queue, now) for job, (queue, _, now) in placed.items())
        )
        yield lambda: _of_jobs(
            "e2e_job_scheduling_start_time", ((job, queue, created) for job, (queue, created) in begun.items())
        )


def _of_jobs(name: str, rows: Iterable[tuple[str, str, float]]) -> Metric:
    """A gauge of jobs from (uid, queue, value)."""

    def series() -> Iterator[tuple[Labels, float]]:
        for uid, queue, value in rows:
            namespace, job = _namespace_and_name(uid)
            yield (job, queue, namespace), value

    return collected(DESCRIPTIONS[name], series())


# ---------------------------------------------------------------------------------------------- queues and namespaces


class Queues:
    """Series of each queue and namespace.

    A resource that was once shown for a queue stays, as 0, in all amounts where it is missing.
    """

    def __init__(self) -> None:
        self._figures: dict[str, QueueFigures] = {}
        self._resources: dict[str, set[str]] = {}
        self._namespaces: dict[str, NamespaceFigures] = {}

    def hearers(self) -> Hearers:
        """Figures in bulk."""
        return {
            "metric.queue_figures": self._tell,
            "metric.queue_deleted": self._forget,
            "metric.namespace_figures": self._tell_namespaces,
        }

    def _tell(self, figures: Mapping[str, QueueFigures]) -> None:
        for queue, new in figures.items():
            old = self._figures.get(queue, QueueFigures())
            self._figures[queue] = QueueFigures._make(
                was if now is None else now for was, now in zip(old, new, strict=True)
            )

    def _tell_namespaces(self, figures: Mapping[str, NamespaceFigures]) -> None:
        self._namespaces.update(figures)

    def _forget(self, queue: str) -> None:
        self._figures.pop(queue, None)
        self._resources.pop(queue, None)

    def views(self) -> Iterator[View]:
        """Gauges by queue and by namespace."""
        figures = self._figures.copy()
        amounts = {name: _amounts(figures, name) for name in AMOUNTS}
        for by_queue in amounts.values():
            for queue, resource in by_queue.items():
                self._resources.setdefault(queue, set()).update(resource.scalars or ())
        known = {queue: sorted(names) for queue, names in self._resources.items()}
        for name, by_queue in amounts.items():
            yield from _amount_views(name, by_queue, known)
        for name in ("share", "weight", "overused"):
            yield _view(f"queue_{name}", _plain(figures, name))
        yield from _namespace_views(self._namespaces.copy())


def _amounts(figures: Mapping[str, QueueFigures], name: str) -> dict[str, Resource]:
    told = ((queue, getattr(one, name)) for queue, one in figures.items())
    return {
        queue: amount.resource() if isinstance(amount, OnAxes) else amount
        for queue, amount in told
        if amount is not None
    }


def _amount_views(name: str, amounts: Mapping[str, Resource], known: Mapping[str, list[str]]) -> Iterator[View]:
    yield _view(f"queue_{name}_milli_cpu", [((queue,), amount.milli_cpu) for queue, amount in amounts.items()])
    yield _view(f"queue_{name}_memory_bytes", [((queue,), amount.memory) for queue, amount in amounts.items()])
    scalars = [
        ((queue, resource), amount.get(resource))
        for queue, amount in amounts.items()
        for resource in known.get(queue, ())
    ]
    yield _view(f"queue_{name}_scalar_resources", scalars)


def _plain(figures: Mapping[str, QueueFigures], name: str) -> Series:
    told = ((queue, getattr(one, name)) for queue, one in figures.items())
    return [((queue,), float(value)) for queue, value in told if value is not None]


def _namespace_views(figures: Mapping[str, NamespaceFigures]) -> Iterator[View]:
    for name in NamespaceFigures._fields:
        yield _view(f"namespace_{name}", [((namespace,), getattr(one, name)) for namespace, one in figures.items()])


def _view(name: str, series: Series) -> View:
    return lambda: collected(DESCRIPTIONS[name], series)
