"""Cycles of a simulation that are left out because nothing that waits could have room."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.builtin import full_registry
from stromboli.sim.simulation.lives import PLAIN as STEADY
from stromboli.sim.simulation.lives import Lives
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, TimedChange, Workload, nodes_of
from stromboli.study.conf import Conf
from stromboli.testing.builders import queue

REGISTRY = full_registry("")
PLAIN = Conf(
    "plain",
    """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
""",
)
SHARED = Conf(
    "shared",
    """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}]
""",
)
USUAL = Conf.of("")
"""The default configuration: overcommit and proportion say which jobs are admitted."""
LIMITED = Conf(
    "limited",
    """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}]
""",
)
"""Queue ``a`` may have so much and no more, and jobs that are admitted count."""

FAILING = Lives(pod_mtbf=20.0, restarts="job", retries=3)


def job(number: int, submit: float, runtime: float, cores: float, count: int = 1, queue: str = "a") -> SimJob:
    return SimJob(f"job-{number}", submit, runtime, (Pods(count, {"cpu": str(cores)} if cores else {}),), queue)


def ran(
    jobs: list[SimJob], nodes: str, conf: Conf, skips: bool, period: float | None = None, lives: Lives = STEADY,
    changes: tuple[TimedChange, ...] = (),
) -> Simulation:  # fmt: skip
    a = queue("a", capability={"cpu": "6"} if conf is LIMITED else None)
    workload = replace(Workload("w", tuple(jobs)).on([*nodes_of(nodes), a, queue("b", weight=2)]), changes=changes)
    simulation = Simulation(workload, conf.config(REGISTRY), REGISTRY, skips=skips, period=period, lives=lives)
    simulation.run(300)
    return simulation


def test_no_cycle_runs_while_nothing_that_waits_has_room() -> None:
    """Seven small jobs end one by one next to one that lasts, and one waits for the whole of their node."""
    small = [job(number, 0, 10.0 * (number + 1), 1) for number in range(7)]
    jobs = [*small, job(7, 0, 200, 1), job(8, 0, 300, 8), job(9, 1, 5, 8)]
    found, every = (ran(jobs, "2x8cpu", PLAIN, skips) for skips in (True, False))
    assert found.runs[-1].start == every.runs[-1].start == 200
    assert found.cycles == 3, "as jobs come, twice, and when a node is empty"


@pytest.mark.parametrize("cores", [3, 0])
def test_one_that_fits_where_a_job_ended_starts_at_once(cores: float) -> None:
    jobs = [job(0, 0, 10, 3), job(1, 0, 50, 5), job(2, 1, 5, 8), job(3, 1, 5, cores)]
    found = ran(jobs, "1x8cpu", SHARED, skips=True)
    assert found.runs[3].start == (10 if cores else 1)


pods_of_jobs = st.sampled_from([(1, 1), (2, 1), (3, 1), (5, 1), (1, 2), (3, 2)])
"""Cores and pods: of two jobs of different queues one always has room within its queue's share, so that all end."""
waiting = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 12), pods_of_jobs, st.sampled_from("ab")), min_size=4, max_size=9
)


def test_a_job_that_was_placed_before_another_comes_counts_as_running_for_its_admission() -> None:
    """Three cores and five are more than overcommit admits next to five that are counted twice."""
    jobs = [job(0, 1, 4, 5, queue="a"), job(1, 3, 4, 3, queue="b")]
    found, every = (ran(jobs, "2x5cpu", USUAL, skips) for skips in (True, False))
    assert [run.start for run in found.runs] == [run.start for run in every.runs] == [1, 3]
    assert found.cycles == 2, "nothing waits after either"


def test_a_queue_that_may_have_more_lets_a_job_start_that_waits_for_that() -> None:
    jobs = [job(0, 0, 5, 4, count=2), job(1, 100, 5, 1)]
    grows = (TimedChange(3, queue("a", capability={"cpu": "10"}), True),)
    found, every = (ran(jobs, "2x5cpu", LIMITED, skips, changes=grows) for skips in (True, False))
    assert [run.start for run in found.runs] == [run.start for run in every.runs] == [3, 100]


limits = st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["3", "6", "10"])), max_size=2)
"""When queue ``a`` may have how much from then on."""


@pytest.mark.slow
@pytest.mark.law("cycles without room decide nothing")
@settings(deadline=None, max_examples=20)
@given(
    waiting,
    st.sampled_from([PLAIN, SHARED, USUAL, LIMITED]),
    st.sampled_from([None, 3.0]),
    st.sampled_from([STEADY, FAILING]),
    limits,
)
def test_schedules_are_those_with_every_cycle(
    rows: list[tuple[int, int, tuple[int, int], str]], conf: Conf, period: float | None, lives: Lives,
    grows: list[tuple[int, str]],
) -> None:  # fmt: skip
    limited = sorted(grows) if conf is LIMITED else []
    changes = tuple(TimedChange(at, queue("a", capability={"cpu": most}), True) for at, most in limited)
    jobs = [
        job(number, submit, runtime, cores, count, queue)
        for number, (submit, runtime, (cores, count), queue) in enumerate(sorted(rows))
    ]
    few, every = (ran(jobs, "2x5cpu", conf, skips, period, lives, changes) for skips in (True, False))
    assert [(run.start, run.end) for run in few.runs] == [(run.start, run.end) for run in every.runs]
    assert few.cycles <= every.cycles
