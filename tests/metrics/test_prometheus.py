"""Metrics bear the reference's names, labels and buckets, and show what observers heard."""

from __future__ import annotations

import re
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import stromboli
from stromboli.metrics.descriptions import COUNTED, DESCRIPTIONS, SET
from stromboli.metrics.families import PREFIX, Description, Histogram, exponential
from stromboli.metrics.prometheus import MetricsObserver, generate_page, new_registry
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.narration.catalogue import METRIC_KEYS
from stromboli.narration.observe import NamespaceFigures, OnAxes, Placed, QueueFigures, teller

NOW = 1_000_000.0
JOB = ("job_name", "queue", "job_namespace")
QUEUE = ("queue_name",)

REFERENCE: dict[str, tuple[str, tuple[str, ...], tuple[float, float, int] | None]] = {
    "e2e_scheduling_latency_milliseconds": ("histogram", (), (1, 5000, 20)),
    "open_session_duration_milliseconds": ("histogram", (), (1, 5000, 20)),
    "e2e_job_scheduling_latency_milliseconds": ("histogram", (), (100, 120000, 30)),
    "e2e_job_scheduling_duration": ("gauge", JOB, None),
    "e2e_job_scheduling_last_time": ("gauge", JOB, None),
    "e2e_job_scheduling_start_time": ("gauge", JOB, None),
    "plugin_scheduling_latency_milliseconds": ("histogram", ("plugin", "OnSession"), (0.1, 100, 15)),
    "action_scheduling_latency_milliseconds": ("histogram", ("action",), (1, 2000, 20)),
    "task_scheduling_latency_milliseconds": ("histogram", ("stage",), (50, 60000, 30)),
    "scheduling_stage_duration_milliseconds": ("histogram", ("stage",), (0.1, 500, 20)),
    "schedule_attempts_total": ("counter", ("result",), None),
    "pod_preemption_victims": ("gauge", (), None),
    "total_preemption_attempts": ("counter", (), None),
    "eviction_transactions_total": ("counter", ("action",), None),
    "unschedule_task_count": ("gauge", ("job_id",), None),
    "unschedule_job_count": ("gauge", (), None),
    "job_share": ("gauge", ("job_ns", "job_id"), None),
    "job_retry_counts": ("counter", ("job_id",), None),
    **{f"namespace_{name}": ("gauge", ("namespace_name",), None) for name in ("share", "weight", "weighted_share")},
    **{
        f"queue_{amount}_{unit}": ("gauge", (*QUEUE, "resource") if unit == "scalar_resources" else QUEUE, None)
        for amount in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
        for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
    },
    **{f"queue_{name}": ("gauge", QUEUE, None) for name in ("share", "weight", "overused")},
    "pipelined_tasks": ("gauge", (), None),
    "pipelined_restored_total": ("counter", ("result",), None),
    "pipelined_fast_path_total": ("counter", ("result",), None),
    "pipelined_given_up_total": ("counter", ("reason",), None),
    "pod_annotation_patches_total": ("counter", ("result",), None),
    "bind_already_bound_total": ("counter", ("result",), None),
    "plugin_dealloc_underflow_total": ("counter", ("plugin",), None),
}


class Ticking:
    """A clock that is moved by hand."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class World:
    """An observer with clocks of its own and the registry that it shows itself in."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.clock, self.timer = Ticking(), Ticking(0)
        self.observer = MetricsObserver(self.registry, self.clock, self.timer)

    def tell(self, key: str, **fields: object) -> None:
        say = teller(self.observer, f"metric.{key}")
        assert say is not None
        say(**fields)

    def span(self, kind: str, name: str, seconds: float) -> None:
        self.observer.started(kind, name)
        self.timer.now += seconds
        self.observer.ended(kind, name)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(PREFIX + name, labels)

    def series(self, name: str) -> list[tuple[tuple[str, ...], float]]:
        samples = [s for metric in self.registry.collect() for s in metric.samples if s.name == PREFIX + name]
        return sorted((tuple(s.labels.values()), s.value) for s in samples)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_metrics_are_there(name: str) -> None:
    row = DESCRIPTIONS[name]
    assert (row.kind, row.labels, row.span) == REFERENCE[name]


def test_every_metric_key_is_heard(world: World) -> None:
    assert {key for key in METRIC_KEYS if not world.observer.wants(key)} == set()
    assert not world.observer.wants("queue_overused")
    assert {name for name, _ in COUNTED.values()} | set(SET.values()) <= set(DESCRIPTIONS)


@pytest.mark.parametrize(
    ("span", "factor"),
    [
        ((1, 5000, 20), 1.565607),
        ((100, 120000, 30), 1.276964),
        ((0.1, 100, 15), 1.637894),
        ((1, 2000, 20), 1.491896),
        ((50, 60000, 30), 1.276964),
        ((0.1, 500, 20), 1.565607),
    ],
)
def test_buckets_form_an_exponential_range(span: tuple[float, float, int], factor: float) -> None:
    bounds = exponential(span)
    assert len(bounds) == span[2]
    assert (bounds[0], bounds[-1]) == pytest.approx(span[:2])
    assert [after / before for before, after in pairwise(bounds)] == pytest.approx([factor] * (span[2] - 1), rel=1e-6)


# -------------------------------------------------------------------------------------------------------------- spans


def test_one_cycle_fills_the_three_histograms_of_its_time(world: World) -> None:
    world.observer.started("cycle", "")
    world.observer.started("open_session", "")
    world.span("plugin_open", "gang", 0.002)
    world.observer.ended("open_session", "")
    world.span("action", "allocate", 0.010)
    world.span("plugin_close", "gang", 0.001)
    world.observer.ended("cycle", "")
    assert world.value("e2e_scheduling_latency_milliseconds_count") == 1
    assert world.value("e2e_scheduling_latency_milliseconds_sum") == pytest.approx(13)
    assert world.value("open_session_duration_milliseconds_sum") == pytest.approx(2)
    assert world.value("action_scheduling_latency_milliseconds_sum", action="allocate") == pytest.approx(10)
    opened = {"plugin": "gang", "OnSession": "OnSessionOpen"}
    closed = {"plugin": "gang", "OnSession": "OnSessionClose"}
    assert world.value("plugin_scheduling_latency_milliseconds_sum", **opened) == pytest.approx(2)
    assert world.value("plugin_scheduling_latency_milliseconds_count", **closed) == 1


def test_a_span_that_never_ended_is_not_measured(world: World) -> None:
    world.observer.started("stage", "Scoring")
    world.timer.now += 100
    world.span("stage", "Scoring", 0.001)
    world.observer.ended("stage", "Predicate")
    assert world.value("scheduling_stage_duration_milliseconds_sum", stage="Scoring") == pytest.approx(1)
    assert len(world.series("scheduling_stage_duration_milliseconds_count")) == 1


def test_a_prepared_span_is_measured_as_any_other(world: World) -> None:
    started, ended = world.observer.span("stage", "Scoring")
    for seconds in (0.001, 0.002):
        started()
        world.timer.now += seconds
        ended()
    ended()
    world.span("stage", "Scoring", 0.004)
    assert world.value("scheduling_stage_duration_milliseconds_sum", stage="Scoring") == pytest.approx(7)
    assert world.value("scheduling_stage_duration_milliseconds_count", stage="Scoring") == 3


def test_spans_may_be_prepared_while_others_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, observe = iter(range(100)), Histogram.observe

    def meanwhile(*arguments: Any) -> None:
        world.observer.span("stage", f"prepared {next(prepared)}")
        observe(*arguments)

    monkeypatch.setattr(Histogram, "observe", meanwhile)
    for stage in ("Predicate", "Scoring"):
        world.span("stage", stage, 0.001)
    for stage in ("Predicate", "Scoring"):
        assert world.value("scheduling_stage_duration_milliseconds_count", stage=stage) == 1


def test_unknown_spans_are_left_alone(world: World) -> None:
    world.span("coffee", "", 1)
    assert world.value("e2e_scheduling_latency_milliseconds_count") == 0


def test_stages_timed_by_others(world: World) -> None:
    world.tell("stage_duration", stage="Bind", seconds=0.25)
    assert world.value("scheduling_stage_duration_milliseconds_sum", stage="Bind") == 250


# --------------------------------------------------------------------------------------------------------- histograms

MILLIS = Description("x_milliseconds", "histogram", (), "x", (1, 100, 3))


@pytest.mark.parametrize(
    ("values", "times", "buckets", "total"),
    [
        ([], None, [0, 0, 0, 0], 0),
        ([0.5, 1, 1.5, 10, 50, 1000], None, [2, 4, 5, 6], 1063),
        ([-5], None, [1, 1, 1, 1], 0),
        ([0.5, 50], [3, 4], [3, 3, 7, 7], 201.5),
    ],
)
def test_histograms_count_into_buckets(
    values: list[float], times: list[int] | None, buckets: list[int], total: float
) -> None:
    histogram = Histogram(MILLIS)
    histogram.observe((), values, times)
    samples = histogram.view()().samples
    assert [sample.value for sample in samples] == [*buckets, total, buckets[-1]]
    assert [sample.labels.get("le") for sample in samples[:4]] == ["1", "10", "100", "+Inf"]


@given(st.lists(st.tuples(st.floats(-10, 1e7), st.integers(1, 9))))
def test_weights_equal_repeated_observation(pairs: list[tuple[float, int]]) -> None:
    weighted, repeated = Histogram(MILLIS), Histogram(MILLIS)
    weighted.observe((), [value for value, _ in pairs], [times for _, times in pairs])
    for value, times in pairs:
        for _ in range(times):
            repeated.observe((), [value])
    left, right = weighted.view()().samples, repeated.view()().samples
    assert [sample.value for sample in left] == pytest.approx([sample.value for sample in right])


def test_a_view_stands_while_more_is_told() -> None:
    histogram = Histogram(MILLIS)
    view = histogram.view()
    histogram.observe((), [5])
    assert view().samples[-1].value == 0
    assert histogram.count() == 1


# ------------------------------------------------------------------------------------------------ counters and gauges


@pytest.mark.parametrize("key", COUNTED)
def test_each_tell_counts_one(world: World, key: str) -> None:
    name, labels = COUNTED[key]
    fields = dict.fromkeys(labels, "x")
    world.observer.tell(key, fields)
    world.observer.tell(key, fields)
    assert world.value(name, **fields) == 2


@pytest.mark.parametrize("key", SET)
def test_gauges_show_the_last_value(world: World, key: str) -> None:
    assert world.value(SET[key]) == 0
    world.observer.tell(key, {"count": 7})
    world.observer.tell(key, {"count": 3})
    assert world.value(SET[key]) == 3


@pytest.mark.parametrize(
    ("action", "value"), [("preempt", 1), ("reclaim", 1), ("gangpreempt", 1), ("gangreclaim", 1), ("shuffle", None)]
)
def test_only_four_actions_have_eviction_transactions(world: World, action: str, value: float | None) -> None:
    world.tell("eviction_transaction", action=action)
    assert world.value("eviction_transactions_total", action=action) == value


# --------------------------------------------------------------------------------------------------------------- jobs


def jobs(world: World) -> None:
    world.tell("job_share", shares={"ns/a": 0.25, "ns/b": 0.5})
    world.tell("unschedule_task_count", counts={"ns/a": 3, "ns/b": 0})
    world.tell("job_retry_counts", jobs=["ns/a", "ns/b"])
    world.tell("job_retry_counts", jobs=["ns/a"])
    world.tell("job_started", job="ns/a", queue="q", created=NOW - 10)
    world.tell("e2e_job", placed=[Placed("ns/a", "q", NOW - 10, 3), Placed("ns/b", "q", NOW - 1)])


BY_JOB: dict[str, list[tuple[tuple[str, ...], float]]] = {
    "job_share": [(("ns", "a"), 0.25), (("ns", "b"), 0.5)],
    "unschedule_task_count": [(("a",), 3), (("b",), 0)],
    "job_retry_counts": [(("a",), 2), (("b",), 1)],
    "e2e_job_scheduling_start_time": [(("a", "q", "ns"), NOW - 10)],
    "e2e_job_scheduling_duration": [(("a", "q", "ns"), 10_000), (("b", "q", "ns"), 1_000)],
    "e2e_job_scheduling_last_time": [(("a", "q", "ns"), NOW), (("b", "q", "ns"), NOW)],
}


@pytest.mark.parametrize("name", BY_JOB)
def test_series_of_jobs(world: World, name: str) -> None:
    jobs(world)
    assert world.series(name) == BY_JOB[name]


@pytest.mark.parametrize("name", BY_JOB)
def test_a_deleted_job_has_no_series(world: World, name: str) -> None:
    jobs(world)
    world.tell("job_deleted", job="ns/a")
    world.tell("job_deleted", job="ns/never")
    assert world.series(name) == [(labels, value) for labels, value in BY_JOB[name] if "a" not in labels]
    assert world.value("e2e_job_scheduling_latency_milliseconds_count") == 4


def test_figures_of_all_jobs_replace_those_told_before(world: World) -> None:
    jobs(world)
    world.tell("job_deleted", job="ns/a")
    world.tell("job_share", shares={"ns/a": 0.75})
    assert world.series("job_share") == [(("ns", "a"), 0.75)]


def test_latencies_of_jobs_count_each_task_at_the_moment_of_telling(world: World) -> None:
    jobs(world)
    world.clock.now += 5
    world.tell("e2e_job", placed=[Placed("ns/a", "q", NOW - 10), Placed("ns/late", "q", NOW + 60)])
    world.clock.now += 1000
    assert world.value("e2e_job_scheduling_latency_milliseconds_count") == 6
    assert world.value("e2e_job_scheduling_latency_milliseconds_sum") == 3 * 10_000 + 1_000 + 15_000
    assert world.value("e2e_job_scheduling_duration", job_name="a", queue="q", job_namespace="ns") == 15_000
    assert world.value("e2e_job_scheduling_duration", job_name="late", queue="q", job_namespace="ns") == 0


def test_placements_are_worked_off_without_a_reader(world: World) -> None:
    for _ in range(1000):
        world.tell("e2e_job", placed=[Placed("ns/a", "q", NOW - 1)])
    assert world.value("e2e_job_scheduling_latency_milliseconds_count") == 1000


def test_latencies_of_pods(world: World) -> None:
    world.tell("task_latency", stage="Assumed", created=[NOW - 1, NOW - 2])
    world.tell("task_latency", stage="Bound", created=[])
    assert world.value("task_scheduling_latency_milliseconds_sum", stage="Assumed") == 3000
    assert world.value("task_scheduling_latency_milliseconds_count", stage="Bound") == 0


def test_jobs_of_one_name_share_the_series_that_names_no_namespace(world: World) -> None:
    world.tell("unschedule_task_count", counts={"x/a": 1, "y/a": 2})
    world.tell("job_retry_counts", jobs=["x/a", "y/a", "y/a"])
    assert world.series("unschedule_task_count") == [(("a",), 2)]
    assert world.series("job_retry_counts") == [(("a",), 3)]


# ---------------------------------------------------------------------------------------------- queues and namespaces


def test_figures_of_queues(world: World) -> None:
    figures = QueueFigures(
        allocated=Resource(2000, 1 << 30, {"nvidia.com/gpu": 1000, "pods": 2}),
        deserved=OnAxes(Axes(["nvidia.com/gpu"]), (4000, 1 << 31, 0, 8000)),
        share=0.5,
        weight=3,
        overused=False,
    )
    world.tell("queue_figures", figures={"q": figures})
    assert world.value("queue_allocated_milli_cpu", queue_name="q") == 2000
    assert world.value("queue_allocated_memory_bytes", queue_name="q") == 1 << 30
    assert world.series("queue_allocated_scalar_resources") == [(("q", "nvidia.com/gpu"), 1000), (("q", "pods"), 2)]
    assert world.series("queue_deserved_scalar_resources") == [(("q", "nvidia.com/gpu"), 8000), (("q", "pods"), 0)]
    assert [world.value(f"queue_{name}", queue_name="q") for name in ("share", "weight", "overused")] == [0.5, 3, 0]
    assert world.series("queue_real_capacity_milli_cpu") == []


def test_a_resource_once_seen_stays_as_zero(world: World) -> None:
    world.tell("queue_figures", figures={"q": QueueFigures(allocated=Resource(1, 1, {"nvidia.com/gpu": 1000}))})
    assert world.series("queue_allocated_scalar_resources") == [(("q", "nvidia.com/gpu"), 1000)]
    world.tell("queue_figures", figures={"q": QueueFigures(allocated=Resource(1, 1), request=Resource(1, 1))})
    for name in ("allocated", "request"):
        assert world.series(f"queue_{name}_scalar_resources") == [(("q", "nvidia.com/gpu"), 0)]


def test_figures_that_are_not_told_stand(world: World) -> None:
    world.tell("queue_figures", figures={"q": QueueFigures(share=0.5, weight=3)})
    world.tell("queue_figures", figures={"q": QueueFigures(overused=True, share=1.5)})
    assert [world.value(f"queue_{name}", queue_name="q") for name in ("share", "weight", "overused")] == [1.5, 3, 1]


def test_a_deleted_queue_has_no_series(world: World) -> None:
    amount = Resource(1, 1, {"nvidia.com/gpu": 1})
    everything = QueueFigures(amount, amount, amount, amount, amount, amount, 1.0, 1, True)
    world.tell("queue_figures", figures={"q": everything, "p": everything})
    world.tell("queue_deleted", queue="q")
    told = [(s.name, s.labels["queue_name"]) for metric in world.registry.collect() for s in metric.samples
            if "queue_name" in s.labels]  # fmt: skip
    assert len(told) == 21
    assert {queue for _, queue in told} == {"p"}


def test_figures_of_namespaces(world: World) -> None:
    world.tell("namespace_figures", figures={"ns": NamespaceFigures(0.5, 2, 0.25)})
    names = ("share", "weight", "weighted_share")
    assert [world.value(f"namespace_{name}", namespace_name="ns") for name in names] == [0.5, 2, 0.25]


# --------------------------------------------------------------------------------------------------------- exposition


def read(registry: CollectorRegistry) -> dict[str, str]:
    return {family.name: family.type for family in text_string_to_metric_families(generate_latest(registry).decode())}


def test_the_text_form_is_readable_and_has_the_reference_names(world: World) -> None:
    jobs(world)
    world.tell("eviction_transaction", action="preempt")
    text = generate_latest(world.registry).decode()
    lines = text.splitlines()
    assert 'volcano_job_retry_counts{job_id="a"} 2.0' in lines
    assert 'volcano_eviction_transactions_total{action="preempt"} 1.0' in lines
    assert "# TYPE volcano_eviction_transactions_total counter" in lines
    assert "volcano_total_preemption_attempts 0.0" in lines
    assert 'volcano_e2e_scheduling_latency_milliseconds_bucket{le="1"} 0.0' in lines
    assert "_created" not in text
    assert read(world.registry)["volcano_job_share"] == "gauge"


def test_metrics_without_labels_are_there_from_the_start(world: World) -> None:
    assert {name.removeprefix(PREFIX) for name in read(world.registry)} == {
        row.name.removesuffix("_total") for row in DESCRIPTIONS.values() if not row.labels
    }


def test_two_schedulers_share_nothing() -> None:
    one, other = World(), World()
    one.span("cycle", "", 1)
    one.tell("preemption_attempt")
    assert other.value("e2e_scheduling_latency_milliseconds_count") == 0
    assert other.value("total_preemption_attempts") == 0


def test_reading_while_telling(world: World) -> None:
    def tell() -> None:
        for i in range(300):
            world.tell("job_retry_counts", jobs=[f"ns/{i}"])
            world.tell("e2e_job", placed=[Placed(f"ns/{i}", "q", NOW)])

    threads = [threading.Thread(target=tell) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        world.series("job_retry_counts")
    for thread in threads:
        thread.join()
    assert len(world.series("job_retry_counts")) == 300
    assert world.value("e2e_job_scheduling_latency_milliseconds_count") == 600


def test_a_new_registry_shows_the_process() -> None:
    assert {"process_cpu_seconds", "python_info"} <= set(read(new_registry()))


def test_the_page_names_every_metric() -> None:
    page = generate_page()
    assert all(f"| `{PREFIX}{name}` | {row.kind} |" in page for name, row in DESCRIPTIONS.items())
    assert "| 0.1 to 100, 15 |" in page


def test_what_nothing_sets_is_marked_and_nothing_else() -> None:
    """The keys that metrics hear and no code tells, and the metrics that they feed."""
    package = Path(stromboli.__file__).parent
    files = [file for file in package.rglob("*.py") if "metrics" not in file.parts and "catalogue" not in file.name]
    told = {key for file in files for key in re.findall(r'"(metric\.[a-z0-9_]+)"', file.read_text(encoding="utf-8"))}
    heard = {key for key in MetricsObserver(CollectorRegistry())._hearers if key.startswith("metric.")}
    assert heard - told == {"metric.namespace_figures", "metric.schedule_attempt"}
    unset = {row.name for row in DESCRIPTIONS.values() if row.unset}
    assert unset == {"namespace_share", "namespace_weight", "namespace_weighted_share", "schedule_attempts_total"}
    assert generate_page().count("**Never set**") == len(unset)
