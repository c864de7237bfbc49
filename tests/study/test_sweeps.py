"""Sweeps: equal results whatever runs them, nothing lost and nothing run twice, and what is said of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import stromboli.study as st
from stromboli.cli.main import main
from stromboli.errors import ConfigError, StudyError
from stromboli.study.report.statistics import interval, paired
from stromboli.study.sweeps import engines, points, sweep

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulation"
FIFO = str(EXAMPLE / "fifo.conf")
CONFS: list[str | Path | st.Conf] = [FIFO, st.builtin("default")]


class Here(Executor):
    """Runs points in this process, one after the other; ``dies`` says which calls lose all workers."""

    def __init__(self, dies=()) -> None:
        self.calls, self.dies = 0, set(dies)

    def submit(self, fn, /, *args, **options):
        future: Future = Future()
        self.calls += 1
        if self.calls in self.dies:
            future.set_exception(BrokenExecutor("a worker is gone"))
        else:
            future.set_result(fn(*args, **options))
        return future


@pytest.fixture
def here(monkeypatch):
    """All engines are this process."""
    pool = Here()
    monkeypatch.setattr(sweep, "executor", lambda engine, workers: AsContext(pool))
    return pool


class AsContext:
    def __init__(self, pool) -> None:
        self.pool = pool

    def __enter__(self):
        return self.pool

    def __exit__(self, *_):
        pass


def swept(into: Path, **options):
    workload = st.read_swf(EXAMPLE / "small.swf")
    given = {"seeds": range(2), "loads": [1, 1.5], "nodes": "1x4cpu", "queues": EXAMPLE / "fifo.yaml", **options}
    return st.sweep([workload], CONFS, into=into, **given)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "points").iterdir()}


def test_points_are_run_once(tmp_path, here):
    first = swept(tmp_path)
    assert here.calls == len(first.points) == 8
    before = bytes_of(tmp_path)
    (tmp_path / "points" / next(iter(before))).unlink()
    assert swept(tmp_path).points.rows == first.points.rows
    assert here.calls == 9
    assert bytes_of(tmp_path) == before
    assert here.calls == 9
    swept(tmp_path, seeds=range(3))
    assert here.calls == 13


def test_lost_workers_cost_a_try(tmp_path, here):
    here.dies = {3}
    assert len(swept(tmp_path).results) == 8
    here.calls, here.dies = 0, set(range(100))
    with pytest.raises(StudyError, match="the workers of all 8 points were lost 3 times each, and none is done"):
        swept(tmp_path / "other")
    assert here.calls > 8, "each of them was tried"


@pytest.mark.parametrize("at_once", [True, False])
def test_several_points_that_end_their_workers_keep_no_other_from_being_run(tmp_path, here, monkeypatch, at_once):
    """Also where the pool says so as the next point is given to it."""
    good = points.run_point

    def run_point(point):
        if point.title["conf"] == "default":
            raise BrokenExecutor("killed")
        return good(point)

    monkeypatch.setattr(sweep, "run_point", run_point)
    monkeypatch.setattr(Here, "submit", submitted if not at_once else lambda pool, fn, /, *args: done(fn(*args)))
    found = swept(tmp_path)
    assert [problem.split(", ")[1] for problem in found.problems] == ["conf default"] * 4
    assert [one.title["conf"] for one in found.results] == ["fifo.conf"] * 4


def done(result):
    future: Future = Future()
    future.set_result(result)
    return future


def test_a_point_that_ends_its_worker_is_named_and_the_others_are_done(tmp_path, here, monkeypatch):
    """It is told from those that ran next to it, as each of these is run alone after a loss."""
    good = points.run_point

    def run_point(point):
        if point.title == {"trace": "small.swf", "conf": "default", "load": 1, "seed": 1}:
            raise BrokenExecutor("killed")
        return good(point)

    monkeypatch.setattr(sweep, "run_point", run_point)
    monkeypatch.setattr(Here, "submit", submitted)
    found = swept(tmp_path)
    assert found.problems == (
        "trace small.swf, conf default, load 1, seed 1: its worker was lost 3 times; is memory short?",
    )
    assert len(found.results) == 7
    monkeypatch.undo()
    monkeypatch.setattr(sweep, "executor", lambda engine, workers: AsContext(Here()))
    assert len(swept(tmp_path).results) == 8, "it is tried again by the next sweep"


def submitted(pool, fn, /, *args):
    """As an executor does, with whatever the call raises."""
    future: Future = Future()
    try:
        future.set_result(fn(*args))
    except BrokenExecutor as error:
        future.set_exception(error)
    return future


def test_what_is_said_of_a_sweep(tmp_path, here):
    found = swept(tmp_path, loads=[1])
    assert found.best("mean_wait") == "default" or found.values("default", "mean_wait") == found.values(
        "fifo.conf", "mean_wait"
    )
    assert found.best("goodput", at_most={"mean_wait": 1e9}) == "fifo.conf"
    with pytest.raises(StudyError, match="no configuration stays within p95_wait 1"):
        found.best("goodput", at_most={"p95_wait": 1})
    with pytest.raises(StudyError, match="no figure 'speed'"):
        found.best("speed")
    again = st.open_sweep(tmp_path)
    assert again.points.rows == found.points.rows
    assert [row["job"] for row in again.results[0].jobs] == [f"job-{number}" for number in range(1, 6)]
    with pytest.raises(StudyError, match="holds no sweep"):
        _ = st.open_sweep(tmp_path / "nothing").points


def test_mistakes_are_told_before_anything_runs(tmp_path, here):
    with pytest.raises(ConfigError):
        st.sweep([st.read_swf(EXAMPLE / "small.swf")], [st.Conf("bad", "actions: nonsense")], into=tmp_path / "a")
    with pytest.raises(StudyError, match="two configurations are called default"):
        st.sweep([], [st.builtin("default")] * 2, into=tmp_path / "a")
    with pytest.raises(StudyError, match="no engine 'rockets'"), engines.executor("rockets", 1):
        pass
    assert not (tmp_path / "a").exists()
    with sweep._alone(tmp_path), pytest.raises(StudyError, match="another sweep writes"):
        swept(tmp_path)


def test_problems_of_points_are_listed(tmp_path, here, monkeypatch):
    monkeypatch.setattr(points, "simulate", lambda *_, **__: (_ for _ in ()).throw(StudyError("no luck")))
    found = swept(tmp_path, seeds=[7], loads=[1])
    assert found.problems[0] == "trace small.swf, conf fifo.conf, load 1, seed 7: no luck"
    assert not found.results


def test_any_failure_is_that_of_its_point_alone(tmp_path, here, monkeypatch):
    good = st.simulate

    def simulate(workload, conf, **options):
        if conf.name == "default":
            raise KeyError("gpu")
        return good(workload, conf, **options)

    monkeypatch.setattr(points, "simulate", simulate)
    found = swept(tmp_path, seeds=[7], loads=[1])
    assert found.problems == ("trace small.swf, conf default, load 1, seed 7: KeyError: 'gpu'",)
    assert len(found.results) == 1
    monkeypatch.setattr(points, "simulate", good)
    monkeypatch.setattr(Here, "submit", given_up)
    assert "RuntimeError: a worker died four times" in swept(tmp_path, seeds=[8], loads=[1]).problems[0]


def given_up(pool, fn, /, *args):
    """Fails as Dask does after its workers have died of a point again and again."""
    future: Future = Future()
    future.set_exception(RuntimeError("a worker died four times"))
    return future


def test_tables_are_read_by_others(tmp_path):
    run = st.simulate(st.read_swf(EXAMPLE / "small.swf"), FIFO, nodes="1x4cpu")
    frame, other = run.jobs.to_pandas(), run.jobs.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert list(frame["start"]) == other["start"].to_list() == [row["start"] for row in run.jobs]
    assert pl.DataFrame(run.samples)["waiting"].max() == run.metrics["longest_queue"]
    assert "<table" in run.queues._repr_html_()
    for name in ("a", "b"):
        run.write(tmp_path / name, "parquet")
    files = [sorted((tmp_path / name).iterdir()) for name in ("a", "b")]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def test_confidence_on_paper():
    assert interval([1, 2, 3]).mean == 2
    assert interval([1, 2, 3]).half == pytest.approx(4.303 / 3**0.5)
    assert interval([5]) == (5, None)
    assert paired([3, 4], [1, 2]) == (2, 0)
    assert paired([3, 4, 5], [1, 2, 3]).differs
    assert not paired([1, 9], [5, 4]).differs


def test_a_report_is_one_page(tmp_path, here):
    hostile = EXAMPLE.joinpath("fifo.conf").read_text(encoding="utf-8") + "# <script>alert(1)</script>\n"
    workload = st.read_swf(EXAMPLE / "small.swf").on([])
    found = st.sweep(
        [workload], [*CONFS, st.Conf("<b>x", hostile)], into=tmp_path, nodes="1x4cpu", seeds=range(3), loads=[1.5]
    )
    page = found.report(tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 7
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "&lt;b&gt;x" in page
    assert "http" not in page.replace('xmlns="http://www.w3.org', "").replace('xlink="http://www.w3.org', "").replace(
        "http-equiv", ""
    )
    assert page == found.report(tmp_path / "twice.html").read_text(encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


@pytest.mark.slow
def test_equal_results_on_any_engine(tmp_path, here, monkeypatch):
    """Also while something else has the port that Dask shows itself on."""
    swept(tmp_path / "here")
    monkeypatch.undo()
    with socket.socket() as other:
        with suppress(OSError):  # then it is taken already
            other.bind(("127.0.0.1", 8787))
            other.listen()
        for engine in ("processes", "dask"):
            swept(tmp_path / engine, engine=engine, workers=2)
            assert bytes_of(tmp_path / engine) == bytes_of(tmp_path / "here")


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path):
    """Whatever was done before it was killed is as it was, and its workers end with it."""
    command = [
        sys.executable, "-m", "stromboli.cli.main", "sweep", str(EXAMPLE / "small.swf"), "--nodes", "1x4cpu", "--conf",
        FIFO, "--seeds", "6", "--loads", "1.5", "--workers", "2", "--into", str(tmp_path),
    ]  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    folder = tmp_path / "points"
    while not (folder.exists() and any(folder.glob("*.parquet"))) and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    done = {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in folder.glob("*.parquet")}
    assert done
    _await_end(running.pid)
    assert subprocess.run(command, check=True, capture_output=True).returncode == 0
    found = {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in folder.glob("*.parquet")}
    assert len(found) == len(json.loads((tmp_path / "sweep.json").read_text(encoding="utf-8"))["points"]) == 6
    assert done.items() <= found.items()


def _await_end(leader: int) -> None:
    """Return when no process of the session is left; fail where one stays."""
    for _ in range(200):
        if not _group(leader):
            return
        time.sleep(0.1)
    raise AssertionError(f"processes of session {leader} are left")


def _group(leader: int) -> bool:
    """Whether a process of the session has not ended; one that has ended but was not waited for does not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = status.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(group) == leader and state != "Z":
            return True
    return False


KILLER = """
import os, signal
from pathlib import Path
from typing import Any
from stromboli.plugin import Plugin, node_order

FOLDER = Path({folder!r})

class Killer(Plugin):
    \"\"\"Ends its process the first time that it is asked, in the middle of a point.\"\"\"

    name = "killer"

    @node_order(key=lambda task: None)
    def score(self, task, node):
        try:
            (FOLDER / "killed").touch(exist_ok=False)
        except FileExistsError:
            return 0.0
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_a_killed_worker_costs_its_point_another_try(tmp_path, engine):
    """The worker itself is killed in the middle of a point, by what the configuration has it run."""
    (plugin := tmp_path / "killer.py").write_text(KILLER.format(folder=str(tmp_path)), encoding="utf-8")
    plugins = f"[{{name: gang}}, {{name: predicates}}, {{name: killer, path: {plugin}}}]"
    text = f"actions: allocate\ntiers:\n- plugins: {plugins}\n"
    log = st.read_swf(EXAMPLE / "small.swf")
    given = {"engine": engine, "workers": 1, "seeds": range(2), "nodes": "2x4cpu", "into": tmp_path / "out"}
    found = st.sweep([log], [st.Conf("kills", text)], **given)
    assert (tmp_path / "killed").exists()
    assert found.problems == ()
    assert len(found.results) == 2


WAITER = """
import time
from pathlib import Path
from stromboli.plugin import Plugin, node_order

FOLDER = Path({folder!r})

class Waiter(Plugin):
    \"\"\"Stays in the middle of a point until it may go.\"\"\"

    name = "waiter"

    @node_order(key=lambda task: None)
    def score(self, task, node):
        while not (FOLDER / "go").exists():
            (FOLDER / "waits").touch()
            time.sleep(0.01)
        return 0.0
"""


@pytest.mark.slow
def test_an_interrupted_sweep_ends_says_how_far_it_went_and_goes_on(tmp_path):
    """Ctrl-C reaches all processes of a terminal; the workers end with the command, in the middle of their points."""
    (plugin := tmp_path / "waiter.py").write_text(WAITER.format(folder=str(tmp_path)), encoding="utf-8")
    plugins = f"[{{name: gang}}, {{name: predicates}}, {{name: waiter, path: {plugin}}}]"
    (conf := tmp_path / "waits.conf").write_text(f"actions: allocate\ntiers:\n- plugins: {plugins}\n", encoding="utf-8")
    command = [
        sys.executable, "-m", "stromboli.cli.main", "sweep", str(EXAMPLE / "small.swf"), "--nodes", "2x4cpu", "--conf",
        str(conf), "--workers", "1", "--into", str(tmp_path / "out"), "--seeds",
    ]  # fmt: skip
    (tmp_path / "go").touch()
    assert subprocess.run([*command, "1"], check=True, capture_output=True).returncode == 0
    (tmp_path / "go").unlink()
    running = subprocess.Popen([*command, "4"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "waits").exists() and running.poll() is None:
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    try:
        told = running.communicate(timeout=60)[1]
        _await_end(running.pid)
    finally:
        with suppress(ProcessLookupError):  # as it should be
            os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, told) == (
        130, "stromboli: ended: 1 of 4 points done; run the same command again to go on\n"
    )  # fmt: skip
    (tmp_path / "go").touch()
    assert "4 of 4 points done" in subprocess.run([*command, "4"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(("bound_to", "cpus"), [(lambda _: {3}, 1), (lambda _: {0, 2}, 2), (None, 5)])
def test_a_process_counts_the_cpus_it_is_bound_to(monkeypatch: pytest.MonkeyPatch, bound_to: Any, cpus: int) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    if bound_to is None:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    else:
        monkeypatch.setattr(os, "sched_getaffinity", bound_to, raising=False)
    assert engines.usable_cpus() == cpus
