"""Lives of simulated pods: checkpoints, failures, lost nodes, and what leaving cycles out must not change."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.builtin import full_registry
from stromboli.errors import ManifestError
from stromboli.sim.simulation.lives import Lives, read_lives
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of
from stromboli.study.conf import Conf, builtin
from stromboli.study.simulating import simulate
from stromboli.testing.builders import queue

FIFO = Conf("fifo", (Path(__file__).parents[2] / "examples/simulation/fifo.conf").read_text(encoding="utf-8"))
EVICTING = Conf(
    "evicting",
    """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: predicates}]
""",
)
CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 1), ("high", 9))
]
SAVING = Lives(lost="checkpoint", checkpoint_every=10, checkpoint_cost=2, restart_cost=5)
REGISTRY = full_registry("")


@pytest.mark.parametrize(
    ("lives", "work", "ran", "again", "stays", "progress"),
    [
        (Lives(), 30, 25, False, 30, (25, 0)),
        (Lives(lost="none"), 30, 25, False, 30, (25, 25)),
        (SAVING, 30, 25, False, 34, (21, 20)),  # 10 + 2 + 10 + 2 + 1
        (SAVING, 35, 25, True, 5 + 35 + 6, (18, 10)),  # 5 to begin again, 10 + 2 + 8
        (SAVING, 30, 11, False, 34, (10, 0)),  # the checkpoint is not whole
        (SAVING, 0, 0, False, 0, (0, 0)),
    ],
)
def test_checkpoints_on_paper(lives, work, ran, again, stays, progress):
    assert lives.stay(work, again) == stays
    assert lives.progress(ran, work, again) == progress


def crowd(*jobs: SimJob, nodes: str = "1x2cpu") -> Workload:
    return Workload("w", jobs).on([*nodes_of(nodes), *CLASSES])


@pytest.mark.parametrize(
    ("lives", "lost", "left"), [(Lives(), 40, 100), (SAVING, 4, 8 + 5 + 70 + 12), (Lives(lost="none"), 0, 60)]
)
def test_an_evicted_pod_loses_what_it_has_not_saved(lives, lost, left):
    """It is evicted at 40, 30 saved and 4 more done; the other takes 50, and 8 to save."""
    low = SimJob("low", 0, 100, (Pods(1, {"cpu": "2"}),), priority_class="low")
    high = SimJob("high", 40, 50, (Pods(1, {"cpu": "2"}),), priority_class="high")
    run, other = simulate(crowd(low, high), EVICTING, lives=lives).runs
    assert (run.evictions, run.useful, other.start) == (1, 100, 40)
    assert run.lost == lost
    assert run.end == pytest.approx(90 + left, abs=1)


def test_a_pod_that_fails_begins_again_until_its_retries_are_spent():
    job = SimJob("a", 0, 100, (Pods(1, {"cpu": "2"}),))
    ended = simulate(crowd(job), FIFO, lives=Lives(pod_mtbf=60), seed=3).runs[0]
    assert ended.failures > 0
    assert (ended.failed, ended.useful) == (False, 100)
    assert ended.end == pytest.approx(100 + ended.lost + ended.failures, abs=0.1)
    spent = simulate(crowd(job), FIFO, lives=Lives(pod_mtbf=10, retries=2)).runs[0]
    assert (spent.failed, spent.failures, spent.useful) == (True, 3, 0)
    assert spent.end == pytest.approx(spent.lost + 2, abs=0.1)


@pytest.mark.parametrize(("restarts", "begun"), [("pod", 0), ("job", 1)])
def test_a_lost_node_takes_its_pods(restarts, begun):
    job = SimJob("a", 0, 400, (Pods(2, {"cpu": "2"}),))
    lives = Lives(node_mtbf=300, node_mttr=50, restarts=restarts)
    run = simulate(crowd(job, nodes="2x2cpu"), FIFO, lives=lives, seed=1).runs[0]
    assert run.failures > 0
    assert run.evictions == 0
    assert run.restarts == begun * run.failures
    assert run.useful == 800
    assert run.held == pytest.approx(run.useful + run.lost)


def test_slow_kubelets_hold_nodes_without_work():
    job = SimJob("a", 0, 100, (Pods(2, {"cpu": "1"}),))
    run = simulate(crowd(job), FIFO, lives=Lives(start_after=7)).runs[0]
    assert (run.end, run.held, run.useful) == (107, 214, 200)


jobs = st.lists(
    st.tuples(
        st.integers(0, 6), st.integers(0, 5), st.integers(1, 3), st.integers(1, 2), st.sampled_from(["a", "b"]),
        st.sampled_from(["", "low", "high"]),
    ),
    min_size=1, max_size=3,
)  # fmt: skip


def workload_of(rows, strategy: str) -> Workload:
    made = tuple(
        SimJob(f"job-{number}", submit, runtime, (Pods(count, {"cpu": str(cores)}),), name, priority_class=urgent)
        for number, (submit, runtime, count, cores, name, urgent) in enumerate(sorted(rows))
    )
    return crowd(*made, nodes="2x2cpu").on([queue("a", dequeueStrategy=strategy), queue("b")])


def schedule(workload, conf, **options):
    simulation = Simulation(workload, conf.config(REGISTRY), REGISTRY, **options)
    runs = [(run.start, run.end, run.evictions, run.held, run.useful, run.lost) for run in simulation.run()]
    return runs, simulation.cycles


@pytest.mark.slow
@pytest.mark.law("skipped cycles change no schedule")
@settings(deadline=None, max_examples=20)
@given(
    jobs,
    st.sampled_from([FIFO, EVICTING, builtin("default")]),
    st.sampled_from([None, 7.0]),
    st.sampled_from(["fifo", "traverse"]),
)
def test_cycles_that_are_left_out_change_no_schedule(rows, conf, period, strategy):
    """Unless left out, one runs at each period, or each second, until all jobs have ended."""
    workload = workload_of(rows, strategy)
    with patch("stromboli.sim.simulation.simulation.IDLE", 300):  # so long the cycles of a job go on that never fits
        skipped, every = (schedule(workload, conf, period=period, skips=skips) for skips in (True, False))
    assert skipped[0] == every[0]
    assert skipped[1] <= every[1]


lives = st.builds(
    Lives, lost=st.sampled_from(["all", "none"]), restarts=st.sampled_from(["pod", "job"]),
    pod_mtbf=st.sampled_from([0.0, 9.0]), node_mtbf=st.sampled_from([0.0, 30.0]), node_mttr=st.just(5.0),
    retries=st.sampled_from([None, 2]), stop_after=st.just(0.0),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.law("work is neither made nor lost unseen")
@settings(deadline=None, max_examples=20)
@given(jobs, lives, st.integers(0, 3))
def test_time_on_nodes_is_useful_or_lost(rows, lives, seed):
    for run in simulate(workload_of(rows, "traverse"), EVICTING, lives=lives, seed=seed).runs:
        assert run.held == pytest.approx(run.useful + run.lost, abs=0.1)
        if run.end is not None and not run.failed:
            assert run.useful == run.job.size * (run.job.runtime or 0)
            assert run.bound >= 0


def test_lives_from_a_file(tmp_path):
    (file := tmp_path / "lives.yaml").write_text("lost: checkpoint\ncheckpointEvery: 600\nnodeMtbf: 8.64e5\n")
    assert read_lives(file) == Lives(lost="checkpoint", checkpoint_every=600, node_mtbf=864_000)
    wrong = {
        "lost: some": "lost", "every: 3": "every", "podMtbf: -1": "pod_mtbf is less than 0", "- 3": "lives.yaml",
        "lost: checkpoint": "needs checkpointEvery", "{": "lives.yaml",
    }  # fmt: skip
    for text, told in wrong.items():
        file.write_text(text)
        with pytest.raises(ManifestError, match=told):
            read_lives(file)
