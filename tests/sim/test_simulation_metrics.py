"""Figures of simulations against sums on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.sim.simulation import metrics
from stromboli.sim.simulation.accounts import Accounts, deserved, jain
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of
from stromboli.study.simulating import read_trace, simulate
from stromboli.testing.builders import queue

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation"
FIFO = str(EXAMPLE / "fifo.conf")


@pytest.fixture(scope="module")
def run():
    """Starts at 0, 100, 100, 160, 200; ends at 100, 160, 150, 162, 220; 3, 2, 1, 4 and 2 of four cores."""
    return simulate(read_trace(EXAMPLE / "small.swf", "1x4cpu"), FIFO, queues=EXAMPLE / "fifo.yaml")


SLOWDOWNS = (1, (90 + 60) / 60, (80 + 50) / 50, (130 + 2) / 10, 1)
USERS = ((SLOWDOWNS[0] + SLOWDOWNS[2] + SLOWDOWNS[4]) / 3, (SLOWDOWNS[1] + SLOWDOWNS[3]) / 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jobs", 5),
        ("unfinished", 0),
        ("unstarted", 0),
        ("mean_wait", (0 + 90 + 80 + 130 + 0) / 5),
        ("median_wait", 80),
        ("p95_wait", 130),
        ("mean_response", (100 + 150 + 130 + 132 + 20) / 5),
        ("bounded_slowdown", sum(SLOWDOWNS) / 5),
        ("makespan", 220),
        ("evictions", 0),
        ("failures", 0),
        ("restarts", 0),
        ("lost_work", 0),
        ("failed", 0),
        ("gini_slowdown", (USERS[1] - USERS[0]) / (2 * (USERS[1] + USERS[0]))),
        ("goodput", 1),
        ("queue_length", (90 + 80 + 130) / 220),
        ("longest_queue", 3),
        ("jain", 1),
        # a sample each 200/128 s: one core is free in 96 of 141, of no use to four of five jobs; two in 20, to two
        ("fragmentation", (96 * 4 / 5 + 20 * 2 / 5) / 141),
        ("utilisation cpu", (300 + 120 + 50 + 8 + 40) / (4 * 220)),
        # of four cores that are asked for from 10 to 162, one is idle until 150, two until 160
        ("shortfall cpu", 140 + 20),
    ],
)
def test_figures_on_paper(run, name, expected):
    assert run.metrics[name] == pytest.approx(expected)


def test_every_figure_has_its_sum_on_paper(run):
    [mark] = test_figures_on_paper.pytestmark
    elsewhere = {"finish_time_fairness", "worst_finish_time_fairness"}
    assert {name for name, _ in mark.args[1]} | elsewhere == set(run.metrics)


def test_finish_time_fairness(run):
    """While job 2 was there (150 s for 60 s of work on half of the cluster) there were 500 / 150 jobs on average."""
    assert run.jobs.rows[1]["finish_time_fairness"] == pytest.approx(150 / (60 * 0.5 * (90 + 150 + 130 + 130) / 150))
    assert run.metrics["worst_finish_time_fairness"] == max(row["finish_time_fairness"] for row in run.jobs)


def test_figures_of_the_only_queue_are_those_of_all(run):
    assert run.by_queue == {"default": {key: run.metrics[key] for key in run.by_queue["default"]}}


def test_a_queue_below_its_share_falls_short():
    """The second queue waits from 20 to 100 for the half that it deserves; Jain's index is 1/2 then."""
    jobs = (SimJob("a", 0, 100, (Pods(1, {"cpu": "4"}),), "a"), SimJob("b", 20, 50, (Pods(1, {"cpu": "4"}),), "b"))
    run = simulate(Workload("w", jobs).on([*nodes_of("1x4cpu"), queue("a"), queue("b")]), FIFO)
    assert run.metrics["jain"] == pytest.approx((20 + 80 / 2 + 50) / 150)
    assert [row["shortfall cpu"] for row in run.queues] == [0, pytest.approx(2 * 80)]
    stated = [queue("a", deserved={"cpu": 3}), queue("b", deserved={"cpu": 1})]
    run = simulate(Workload("w", jobs).on([*nodes_of("1x4cpu"), *stated]), FIFO)
    assert run.by_queue["b"]["shortfall cpu"] == pytest.approx(1 * 80)


def test_lost_work_counts_against_goodput():
    one, two = (Pods(1, {"cpu": "1"}),), (Pods(1, {"cpu": "2"}),)
    ended = JobRun(SimJob("a", 0, 10, one, "q"), start=0, end=10, held=30, useful=10, lost=20, evictions=2)
    waiting = JobRun(SimJob("b", 5, 10, two, "r", user="u"), held=5, useful=5)
    workload = Workload("w", (ended.job, waiting.job)).on(nodes_of("1x2cpu")).whole()
    found = metrics.figures([ended, waiting], Accounts(workload))
    assert found["goodput"] == pytest.approx((10 * 0.5 + 5 * 1) / (30 * 0.5 + 5 * 1))
    assert (found["evictions"], found["unfinished"], found["lost_work"]) == (2, 1, 20)
    assert found["utilisation cpu"] == pytest.approx((30 + 10) / (2 * 10))
    assert list(metrics.by_queue([ended, waiting], Accounts(workload))) == ["q", "r"]


def test_sums():
    assert [metrics.percentile([4.0, 1.0, 3.0, None, 2.0], share) for share in (0.25, 0.5, 0.95)] == [1, 2, 4]
    assert deserved(10, [(1, 2), (1, 10), (2, 10)]) == pytest.approx([2, 8 / 3, 16 / 3])
    assert [jain(values) for values in ([1, 1], [1, 0], [0, 0], [])] == [1, 0.5, None, None]
    assert [metrics.gini(values) for values in ([3, 3, 3], [0, 0, 6], [])] == [0, pytest.approx(2 / 3), 0]
