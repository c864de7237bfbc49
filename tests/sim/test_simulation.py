"""Workloads in virtual time: schedules worked out by hand, figures by their formulas, traces in every format."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from stromboli.builtin import full_registry
from stromboli.errors import ManifestError
from stromboli.plugin import Plugin, Reason, predicate
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of, pods_of
from stromboli.sim.traces.trace_objects import START
from stromboli.study.simulating import read_trace, simulate
from stromboli.testing.builders import queue

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "simulation"
SMALL = EXAMPLE / "small.swf"
FIFO = str(EXAMPLE / "fifo.conf")
EVICTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: predicates}]
"""


def starts(workload: Workload, period: float | None) -> list[float | None]:
    return [run.start for run in simulate(workload, FIFO, period=period).runs]


def small(strategy: str = "traverse") -> Workload:
    return read_trace(SMALL, "1x4cpu").on([queue("default", dequeueStrategy=strategy)])


@pytest.mark.parametrize(
    ("strategy", "period", "expected"),
    [
        ("fifo", None, [0, 100, 100, 160, 200]),
        ("traverse", None, [0, 100, 20, 160, 200]),
        ("traverse", 7.0, [0, 105, 21, 168, 203]),
    ],
)
def test_jobs_start_when_they_do_on_paper(strategy, period, expected):
    assert starts(small(strategy), period) == expected


def test_room_that_comes_within_a_second_of_a_cycle_is_used_at_once():
    """A job of a second ends when the cycle after its start is due: the next job begins then, not a second later."""
    jobs = tuple(
        SimJob(f"job-{number}", 0, runtime, (Pods(1, {"cpu": "4"}),)) for number, runtime in enumerate((1, 0.25, 0, 1))
    )
    assert starts(Workload("w", jobs).on(nodes_of("1x4cpu")), None) == [0, 1, 1.25, 1.25]
    assert starts(Workload("w", jobs).on(nodes_of("1x4cpu")), 2.0) == [0, 2, 4, 6]


ADMITTING = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: overcommit}]
"""


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([{"pods_delay": 5.0}], [5], id="pods come after the admission"),
        pytest.param([{"pods_delay": 5.0, "group": {"status": {"phase": "Inqueue"}}}], [5], id="admitted as it comes"),
        pytest.param([{}, {"pods_delay": 5.0}], [0, 105], id="admitted once the first job has ended"),
        pytest.param([{}, {"pods_delay": 5.0, "cancelled": 50.0}, {}], [0, None, 100], id="withdrawn before that"),
        pytest.param([{"pods_delay": 5.0, "cancelled": 3.0}, {}], [None, 3], id="withdrawn before its pods come"),
        pytest.param([{"pods_delay": 4_000.0}], [4_000], id="no other event for hours"),
    ],
)
@pytest.mark.parametrize("skips", [True, False])
def test_pods_that_are_made_once_a_job_is_admitted(jobs, expected, skips):
    """Each job asks for the whole node, and overcommit admits what four fifths of another would exceed."""
    made = tuple(SimJob(f"job-{number}", 0, 100, (Pods(1, {"cpu": "4"}),), **more) for number, more in enumerate(jobs))
    registry = full_registry("")
    config = registry.configured_by(ADMITTING, "conf")
    simulation = Simulation(Workload("w", made).on(nodes_of("1x4cpu")), config, registry, skips=skips)
    assert [run.start for run in simulation.run()] == expected


def test_figures_by_hand():
    found = simulate(small("fifo"), FIFO)
    slowdowns = 1, (90 + 60) / 60, (80 + 50) / 50, (130 + 2) / 10, 1
    assert found.metrics["bounded_slowdown"] == pytest.approx(sum(slowdowns) / 5)
    assert (found.metrics["mean_wait"], found.metrics["p95_wait"], found.metrics["makespan"]) == (60, 130, 220)
    assert found.metrics["utilisation cpu"] == pytest.approx((300 + 120 + 50 + 8 + 40) / (4 * 220))
    assert found.by_queue == {"default": {key: found.metrics[key] for key in found.by_queue["default"]}}


def test_an_evicted_pod_begins_again(tmp_path):
    (conf := tmp_path / "conf").write_text(EVICTING, encoding="utf-8")
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 1), ("high", 9))
    ]
    pods = (Pods(1, {"cpu": "2"}),)
    jobs = (
        SimJob("low", 0, 100, pods, priority_class="low"),
        SimJob("high", 40, 50, pods, priority_class="high"),
    )
    low, high = simulate(Workload("w", jobs).on([*nodes_of("1x2cpu"), *classes]), str(conf)).runs
    assert low.evictions == 1
    assert 39 <= low.lost <= 42
    assert high.start is not None
    assert 40 <= high.start <= 42
    assert low.end is not None
    assert high.end is not None
    assert low.end >= high.end + 100


def test_what_never_fits_is_left_over():
    workload = Workload("w", (SimJob("huge", 0, 1, (Pods(1, {"cpu": "9"}),)),)).on(nodes_of("1x2cpu"))
    assert simulate(workload, FIFO).metrics["unfinished"] == 1


def test_plugins_that_read_the_clock_say_so():
    """Cycles are left out only without them; capacity reads it where it has its argument gate-timeout alone."""
    registry, folder = full_registry(""), ROOT / "src" / "stromboli" / "plugins"
    reading = {
        path.relative_to(folder).parts[0].removesuffix(".py")
        for path in folder.rglob("*.py")
        if re.search(r"session\.now\b", path.read_text(encoding="utf-8"))
    }
    telling = {name for name in registry.plugin_names if registry.build(name, {}).depends_on_time}
    assert telling == {*(reading - {"capacity"}), "extender"}  # what a server answers may depend on anything
    for timeout, tells in (("1s", True), ("0s", False)):
        assert registry.build("capacity", {"gate-timeout": timeout}).depends_on_time == tells


TOO_EARLY = Reason("too early")


class Late(Plugin):
    """A plugin that does not come with Stromboli, as its author writes it."""

    name = "late"

    def on_session_open(self, session):
        self.waits = session.now < START.timestamp() + 50

    @predicate
    def is_late(self, task, node):
        return TOO_EARLY if self.waits else None


@pytest.mark.parametrize(("declared", "start"), [({}, 50), ({"depends_on_time": False}, None)])
def test_a_plugin_that_may_look_at_the_clock_is_asked_at_each_cycle(declared, start):
    """One that says falsely that it does not is believed, and its job waits for something else to happen."""
    (registry := full_registry("")).add(type("Late", (Late,), {"name": "late", **declared}))
    conf = registry.configured_by(
        'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: late}]\n', "conf"
    )
    workload = Workload("w", (SimJob("a", 0, 5, (Pods(1, {"cpu": "1"}),)),)).on(nodes_of("1x4cpu"))
    assert Simulation(workload, conf, registry).run()[0].start == start


def test_a_simulation_passes_over_what_compat_mode_does_not_know():
    registry, text = full_registry(""), 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: nosuch}]\n'
    workload = Workload("w", (SimJob("a", 0, 5, (Pods(1, {"cpu": "1"}),)),)).on(nodes_of("1x4cpu"))
    assert Simulation(workload, registry.configured_by(text, "conf", compat=True), registry).run()[0].start == 0


PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-16 10:31:54,67.0,1,67.0,11cb48\n"
SWF = "7 3 -1 5 -1 -1 -1 6 -1 -1 1 4 -1 -1 2 -1 -1 -1"


def test_formats(tmp_path):
    (philly := tmp_path / "p.csv").write_text(PHILLY + "2017-10-16 10:30:54,9,12,1,b\n", encoding="utf-8")
    first, second = read_trace(philly, "3x8gpu").jobs
    assert (first.submit, first.runtime, first.queue, first.size) == (0, 9, "vc-b", 2)
    assert (second.submit, second.asks(), second.queue) == (60, {"nvidia.com/gpu": 1}, "vc-11cb48")
    (swf := tmp_path / "s.swf.gz").write_bytes(gzip.compress(f"; comment\n{SWF}\n".encode()))
    (job,) = read_trace(swf, "3x4cpu").jobs
    assert (job.name, job.submit, job.runtime, job.queue, job.user) == ("job-7", 3, 5, "queue-2", "user-4")
    assert [(some.count, some.requests["cpu"]) for some in job.pods] == [(2, "3")]


@pytest.mark.parametrize(
    ("name", "text", "nodes", "told"),
    [
        ("a.swf", "1 2 3\n", "1x1cpu", "line 1.*3 fields; a job has 18"),
        ("a.swf", SWF.replace("7", "seven"), "1x1cpu", "line 1.*seven"),
        ("a.swf", f"; log\n{SWF}\n\n{SWF}\n", "1x1cpu", "a.swf, line 4: job 7 stands in line 2, too"),
        ("a.swf", SWF, "1cpu", "no group of nodes"),
        ("a.swf", SWF, "1x1", "no amount"),
        ("a.csv", "a,b\n", "1x1cpu", "none of swf, philly, openb, dlrm"),
        ("a.csv", PHILLY.replace("67.0,1,", "67.0,0,"), "1x1cpu", "column num_gpus"),
        ("a.csv", PHILLY.replace("2017-10-16", "soon"), "1x1cpu", "column timestamp"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, text, nodes, told):
    (trace := tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match=told):
        read_trace(trace, nodes)


def test_lines_about_parts_of_a_job_are_left_out(tmp_path):
    """A log says the whole of a job that was stopped and went on, then each part; a line of one that never ran, too."""
    never, parts = SWF.replace(" 5 ", " -1 "), [SWF.replace(" 1 4 ", f" {status} 4 ") for status in (2, 3)]
    (trace := tmp_path / "a.swf").write_text("\n".join([never, SWF, never, *parts]), encoding="utf-8")
    assert [job.runtime for job in read_trace(trace, "1x9cpu").jobs] == [5]


def test_long_numbers_stay_apart(tmp_path):
    numbers = ("1234567", "1234568")
    (trace := tmp_path / "a.swf").write_text("\n".join(SWF.replace("7 ", f"{one} ", 1) for one in numbers))
    assert [job.name for job in read_trace(trace, "1x9cpu").jobs] == [f"job-{one}" for one in numbers]


def test_windows_loads_and_nodes():
    workload = read_trace(SMALL, "2x2cpu+1gpu,1x512Gi")
    assert [job.submit for job in workload.window(100, 15).jobs] == [5, 15]
    assert [job.name for job in workload.part(1, 2).jobs] == ["job-2", "job-3"]
    assert len(workload.scaled(2).jobs) == 10
    assert workload.scaled(1.5, 3) == workload.scaled(1.5, 3)
    assert workload.capacity() == {"cpu": 4, "nvidia.com/gpu": 2, "memory": 512 * 2**30, "pods": 330}
    assert [(some.count, some.requests["cpu"]) for some in pods_of(7, 3, "cpu")] == [(2, "2"), (1, "3")]
