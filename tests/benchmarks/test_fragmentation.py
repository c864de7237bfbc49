"""FGD's table: what arrives, what is asked for, and the figures that are printed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmarks import fragmentation
from benchmarks.fragmentation import POLICIES, Outcome, arrivals, main, read, run

NODES = "sn,cpu_milli,memory_mib,gpu,model\ncpus,64000,262144,0,\nold,32000,65536,2,T4\nnew,32000,65536,4,V100M16\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "whole,4000,8192,1,1000,,LS,Running,0,10,5\npair,8000,8192,2,1000,,BE,Running,0,10,5\n"
    "part,1000,1024,1,300,,BE,Running,0,10,5\nplain,1000,1024,0,0,,BE,Running,0,10,5\n"
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES, encoding="utf-8")
    pods.write_text(PODS, encoding="utf-8")
    return nodes, pods


def test_tasks_arrive_until_they_ask_for_130_percent(files: tuple[Path, Path]) -> None:
    trace = read(*files)
    assert (len(trace.nodes), trace.offered, trace.asks) == (2, 6000, [1000, 2000, 300, 0])
    for seed in range(5):
        order = arrivals(trace.asks, trace.offered, Random(seed))
        assert sorted(order[:4]) == [0, 1, 2, 3]  # the trace first
        assert 6800 < sum(trace.asks[drawn] for drawn in order) <= 8800


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_allocates_nearly_all(files: tuple[Path, Path], policy: str) -> None:
    outcome = run(read(*files), POLICIES[policy], 42)
    assert 70.0 < outcome.allocated <= 100.0
    assert outcome.placed >= 4


def test_a_mean_out_of_bounds_is_a_failure(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*map(str, files), "--seeds", "1", "--policy", "random"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("| random | ")
    assert (code, last.endswith("| ok |")) in {(0, True), (1, False)}


@pytest.mark.parametrize(
    ("allocated", "verdicts"),
    [
        ({"random": 80.0, "best-fit": 90.0, "gradient": 95.0}, ["ok", "ok"]),
        ({"random": 91.0, "best-fit": 90.0, "gradient": 95.0}, ["MISSED", "MISSED"]),
        ({"random": 80.0, "best-fit": 95.0, "gradient": 95.0}, ["MISSED", "MISSED"]),
    ],
)
def test_policies_come_in_the_published_order_on_each_trace(
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    allocated: dict[str, float],
    verdicts: list[str],
) -> None:
    found = {POLICIES[name].conf: Outcome(share, 5, 1.0) for name, share in allocated.items()}
    monkeypatch.setattr(fragmentation, "run", lambda _trace, policy, _seed: found[policy.conf])
    nodes, pods = files
    code = main([str(nodes), str(pods), str(pods), "--seeds", "1"])
    *rows, last = capsys.readouterr().out.splitlines()[3:]
    assert [line.split(" | ")[-1].removesuffix(" |") for line in rows] == verdicts
    assert last == f"{verdicts.count('ok')} of 2 traces in the published order; seeds: 1"
    assert code == ("MISSED" in verdicts)


@pytest.mark.parametrize(
    ("policy", "mean", "holds"),
    [("random", 88.4, True), ("random", 88.5, False), ("gradient", 95.38, False), ("gradient", 97.0, True)],
)
def test_the_published_means(policy: str, mean: float, holds: bool) -> None:
    assert POLICIES[policy].holds(mean) is holds
