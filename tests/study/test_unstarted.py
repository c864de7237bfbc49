"""Jobs that never start are told with the reason, and no policy is best because it starts none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import stromboli.study as st
from stromboli.cli.main import main
from stromboli.errors import ManifestError, StudyError
from stromboli.sim.simulation.unstarted import Offers, in_short, startable
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of, offered_by
from stromboli.study.sweeps import sweep

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation"
TRACE = str(EXAMPLE / "small.swf")
NEVER = st.Conf("never", "actions: enqueue, backfill\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Sweeps run in this process, and tables are wide."""
    monkeypatch.setattr(sweep, "executor", lambda engine, workers: ThreadPoolExecutor(1))
    monkeypatch.setenv("COLUMNS", "400")


def job(*pods: Pods, least: int = 0) -> SimJob:
    return SimJob("a", 0, 5, pods, least=least)


# ---------------------------------------------------------------------- nodes


@pytest.mark.parametrize("text", ["2x4cp", "1x4cpu+2cards", "2x4", "4cpu", "1x4cpu,", "1xcpu"])
def test_nodes_with_a_unit_that_is_no_resource_are_refused_with_the_form(text):
    with pytest.raises(ManifestError, match="the form is COUNTxAMOUNT") as told:
        list(nodes_of(text))
    assert f"--nodes {text!r}" in str(told.value)


def test_short_and_qualified_names_are_resources():
    (offer,) = map(offered_by, nodes_of("1x4cpu+2gpu+8Gi+110pods+3example.com/card+16hugepages-2Mi"))
    assert offer == {
        "cpu": "4", "nvidia.com/gpu": "2", "memory": "8Gi", "pods": "110", "example.com/card": "3",
        "hugepages-2Mi": "16",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asks", "why"),
    [
        (job(Pods(2, {"cpu": "2"})), ""),
        (job(Pods(1, {"example.com/card": "1"})), ""),
        (job(Pods(1, {"cpu": "1"}), Pods(1, {"cpu": "99"}), least=1), ""),
        (job(Pods(1, {"nvidia.com/gpu": "1"})), "no node offers nvidia.com/gpu"),
        (job(Pods(1, {"nvidia.com/gpu": "0"})), ""),
        (job(Pods(1, {"cpu": "3"})), "a pod asks for more cpu than any node offers"),
        (job(Pods(3, {"cpu": "2"})), "the job asks for more cpu than all nodes offer"),
    ],
)
def test_what_nodes_lack_for_a_job(asks, why):
    assert Offers(Workload("w", (), tuple(nodes_of("2x2cpu")))).lack(asks) == why


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        ("2x0.12cpu", [Pods(6, {"cpu": "40m"})]),
        ("1x0.6cpu", [Pods(1, {"cpu": text}) for text in ("300m", "200m", "100m")]),
        ("2x0.0004cpu+1.2mem", [Pods(2, {"cpu": "900u", "memory": "1900m"})]),
    ],
)
def test_a_job_that_asks_for_all_there_is_may_start(nodes, pods):
    """Amounts count as in the scheduler, which rounds each up to a thousandth of a core, or a byte."""
    workload = Workload("w", (job(*pods),), tuple(nodes_of(nodes)))
    assert Offers(workload).lack(workload.jobs[0]) == ""
    assert st.simulate(workload).unstarted == {}


def test_reasons_in_short_are_the_most_frequent_ones():
    assert in_short({"a": 1, "b": 3, "c": 2, "d": 1, "e": 4}) == "e (4); b (3); c (2); other reasons (2)"


def test_a_workload_of_which_nothing_can_start_is_refused():
    nodes, small = tuple(nodes_of("1x2cpu")), job(Pods(1, {"cpu": "1"}))
    large = job(Pods(1, {"cpu": "9"}))
    assert startable(Workload("w", (small, large), nodes)).jobs
    with pytest.raises(
        StudyError, match="w: the nodes cannot take its job: a pod asks for more cpu than any node offers"
    ):
        startable(Workload("w", (large,), nodes))
    with pytest.raises(StudyError, match=r"any of its 2 jobs: no node offers cpu \(2\)"):
        startable(Workload("w", (small, large)))
    with pytest.raises(StudyError, match="w: no job is left to simulate"):
        startable(Workload("w", (), nodes))


# ---------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--nodes", "2x2cp"], "as cp is no resource"),
        (["--nodes", "2x2gpu"], "no node offers cpu (5)"),
        (["--nodes", "1x4cpu", "--from", "99999"], "they come from 0 to 200 s"),
        (["--nodes", "1x4cpu", "--for", "0"], "they come from 0 to 200 s"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "sweep"])
def test_what_can_start_no_job_is_bad_input(command, options, why, tmp_path, capsys):
    assert main([command, TRACE, "--into", str(tmp_path / "out"), *options]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_empty_trace_is_bad_input(tmp_path, capsys):
    (tmp_path / "empty.swf").write_text("; nothing\n", encoding="utf-8")
    assert main(["simulate", str(tmp_path / "empty.swf"), "--nodes", "1x4cpu"]) == 2
    assert "empty.swf: no job is left to simulate" in capsys.readouterr().err


@pytest.mark.parametrize("seeds", ["0", "-1"])
def test_no_seeds_are_bad_input(seeds, tmp_path, capsys):
    assert main(["sweep", TRACE, "--nodes", "1x4cpu", "--into", str(tmp_path), "--seeds", seeds]) == 2
    assert "write how many seeds, 1 or more" in capsys.readouterr().err
    with pytest.raises(StudyError, match="there is nothing to run"):
        st.sweep([st.read_swf(TRACE)], [NEVER], nodes="1x4cpu", seeds=[], into=tmp_path)


def test_a_simulation_says_how_many_jobs_never_started_and_why(tmp_path, capsys):
    assert main(["simulate", TRACE, "--nodes", "1x2cpu"]) == 0
    told = "note: 2 of 5 jobs never started, no wait counts them: the job asks for more cpu than all nodes offer (2)"
    assert told in capsys.readouterr().err
    (tmp_path / "never.conf").write_text(NEVER.text, encoding="utf-8")
    assert main(["simulate", TRACE, "--nodes", "1x4cpu", "--conf", str(tmp_path / "never.conf")]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[2].split() == ["all", "5", "5", "-", "-", "-", "0.00"]
    assert "5 of 5 jobs never started" in shown.err
    assert "1/1 tasks in gang unschedulable" in shown.err, "the scheduler's own words"
    assert main(["simulate", TRACE, "--nodes", "1x4cpu"]) == 0
    assert capsys.readouterr().err == ""


def test_a_job_that_was_withdrawn_is_not_blamed_on_the_nodes():
    jobs = (SimJob("a", 0, 9, (Pods(1, {"cpu": "2"}),)), SimJob("b", 1, 9, (Pods(1, {"cpu": "2"}),), cancelled=3))
    run = st.simulate(Workload("w", jobs), nodes="1x2cpu")
    assert run.unstarted == {"withdrawn before they started": 1}
    assert run.metrics["unstarted"] == 1


# ---------------------------------------------------------------------- sweeps


def swept(into: Path, *confs: st.Conf | str, **options) -> st.Sweep:
    return st.sweep([st.read_swf(TRACE)], list(confs), nodes="1x4cpu", into=into, **options)


def test_a_policy_that_starts_nothing_is_not_best(tmp_path):
    found = swept(tmp_path / "both", NEVER, st.builtin("default"))
    assert found.values("never", "mean_wait") == [0], "which looks perfect"
    assert [found.best(figure) for figure in ("mean_wait", "goodput", "evictions")] == ["default"] * 3
    assert found.unstarted_part("never") == 1
    with pytest.raises(StudyError, match="no configuration started any job, so none is best"):
        swept(tmp_path / "never", NEVER).best("mean_wait")


def test_a_policy_none_of_whose_points_is_done_is_not_best(tmp_path):
    found = swept(tmp_path, NEVER, st.builtin("default"))
    (never,) = [one for one in found.results if one.title["conf"] == "never"]
    never.file.unlink()
    assert st.open_sweep(tmp_path).best("mean_wait") == "default"


def test_the_table_of_a_sweep_says_what_never_started(tmp_path, capsys):
    (tmp_path / "never.conf").write_text(NEVER.text, encoding="utf-8")
    given = ["--nodes", "1x4cpu", "--into", str(tmp_path / "out"), "--conf", str(tmp_path / "never.conf"), "--conf", ""]
    assert main(["sweep", TRACE, *given]) == 0
    shown = capsys.readouterr()
    header, never, other = shown.out.splitlines()[:3]
    assert header.split()[3:6] == ["UNFINISHED", "MEAN", "WAIT"]
    assert never.split() == ["never.conf", "1", "1", "5", "-", "-", "-", "-", "0"]
    assert other.split()[3] == "0"
    assert "note: never.conf at load 1: 5 of 5 jobs never started" in shown.err
    assert shown.err.count("note: ") == 1


def test_a_report_praises_no_policy_that_starts_less(tmp_path):
    page = swept(tmp_path, st.builtin("default"), NEVER).report(tmp_path / "out.html").read_text(encoding="utf-8")
    assert "never at load 1 never started 5 of 5 jobs, which its waits and slowdowns leave out: 1/1 tasks" in page
    assert '<span class="good">' not in page
    assert "Jobs never started" in page


def test_a_point_without_jobs_is_a_problem(tmp_path):
    (problem,) = swept(tmp_path, NEVER, loads=[0.01]).problems
    assert "no job is left to simulate" in problem
