"""The reference kernel, by hand, and the table of bars."""

from __future__ import annotations

import gzip
import re

import pytest

from benchmarks.insight import NOT_BUILT, POLICIES, Job, Kernel, first_fit, main, slowdown
from benchmarks.records.million import main as million
from benchmarks.records.others import OTHERS, Other, others
from benchmarks.records.reading import SPANS
from benchmarks.records.reading import main as reading

JOBS = [Job(1, 100, 200), Job(2, 50, 100), Job(3, 98, 50), Job(4, 20, 50), Job(5, 1000, 256)]
REST = "-1 -1 -1 -1 -1 -1 1 1 -1 -1 0 -1 -1"


@pytest.mark.parametrize(
    ("policy", "backfill", "starts"),
    [
        ("FCFS", False, [1, 101, 101, 101, 199]),
        ("FCFS", True, [1, 101, 101, 4, 199]),  # the third would end at the shadow time, not before it
        ("SJF", False, [1, 101, 101, 101, 199]),
    ],
)
def test_schedules_on_paper(policy, backfill, starts):
    kernel = Kernel(JOBS, POLICIES[policy], backfill)
    mean = kernel.run()
    assert [kernel.starts[number] for number in range(5)] == starts
    assert mean == pytest.approx(sum(map(slowdown, JOBS, starts)) / 5)


def test_of_jobs_that_end_together_the_earlier_started_frees_its_processors_first():
    """At 8 job 5 starts as it comes, then job 3 as job 1 ends; job 5 ends first at 28, so job 6 fits before job 8."""
    sizes = 100, 100, 236, 120, 200, 20, 156, 100, 100, 156
    submits, runtimes = (2, 3, 4, 4, 6, 8, 8, 9, 9, 11), (50, 5, 10, 20, 5, 20, 21, 40, 20, 10)
    kernel = Kernel(list(map(Job, submits, runtimes, sizes)), POLICIES["FCFS"], backfill=True)
    kernel.run()
    assert [kernel.starts[number] for number in range(10)] == [2, 3, 52, 8, 62, 8, 28, 67, 67, 87]


def test_a_first_fit_starts_all_that_fit_at_every_event():
    assert first_fit(JOBS) == [1, 101, 3, 101, 151]


@pytest.fixture
def traces(tmp_path):
    """A folder of two logs of three jobs; one window of each is published."""
    log = "".join(f"{number} {number * 10} -1 {30 * number} 128 {REST}\n" for number in range(1, 4))
    for name in ("lublin_256", "lublin_256_new2"):
        (tmp_path / f"{name}.swf.gz").write_bytes(gzip.compress(log.encode()))
    lines = ["trace,window_start,jobs,policy,backfill,bsld"]
    lines += [f"{name},0,3,FCFS,0,1.0000" for name in ("lublin_256", "lublin_256_new2")]
    (tmp_path / "swf_published.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_the_table_says_what_is_not_built(traces, capsys):
    assert main([str(traces), "--windows", "1", "--log", "new2", "--no-speed", "--each", "--traverse"]) == 0
    shown = capsys.readouterr().out
    assert "| scheduler, fifo queue, lublin_256_new2, window 0, jobs from 0 | 1.0000 | " in shown
    assert "| scheduler, fifo queue, lublin_256_new2, 1 windows" in shown
    assert "window 0, jobs from 0: jobs not in the second of a first-fit | 0 | 0 |" in shown
    assert all(f"| {name} |" in shown for name in NOT_BUILT)


def test_windows_are_as_many_as_are_published(traces, capsys):
    assert main([str(traces), "--no-speed"]) == 0
    assert "| scheduler, fifo queue, lublin_256, 1 windows" in capsys.readouterr().out
    assert main([str(traces), "--windows", "0", "--no-speed"]) == 0
    assert "scheduler, fifo queue" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--first", "1"], ["--log", "unknown"]])
def test_where_no_window_is_published_the_caller_is_told(options, traces, capsys):
    with pytest.raises(SystemExit):
        main([str(traces), *options, "--no-speed"])
    assert "no window is published that --first, --windows and --log name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "answer", "found"),
    [
        ("timeit -h", r"Tool for .*", "Tool for measuring execution time of small code snippets"),
        ("benchmarks.records.explained {into}", r".*oracle.*", "MISSED: "),
    ],
)
def test_what_another_command_prints_is_what_was_found(command, answer, found, tmp_path):
    other = Other("bar", "asked", command, answer)
    assert other.found(tmp_path, tmp_path).startswith(found)


def test_what_other_commands_measure_is_named_where_they_are_not_run(tmp_path):
    lines = list(others(tmp_path, run=False))
    assert [line[2] for line in lines] == ["not measured here"] * len(OTHERS)
    assert ("a million jobs (python -m benchmarks.records.million)", "2 GiB", "not measured here") in lines


def test_a_log_of_many_jobs_is_read_and_begun(capsys):
    assert million(["--jobs", "200"]) == 0
    assert capsys.readouterr().out.startswith("200 jobs, of which 1")


@pytest.mark.parametrize(("what", "unit"), [("seek", "CPU s"), ("explain", "CPU s"), ("diff", "s")])
def test_a_record_answers(what, unit, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SPANS, what, (SPANS[what][0], 20, 18.0, float("inf")))
    assert reading([what, "--into", str(tmp_path), "--hours", "0.25"]) == 0
    assert re.search(rf"^\d+\.\d\d {unit} in 2 segments$", capsys.readouterr().out, re.MULTILINE)
