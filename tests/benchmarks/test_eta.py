"""The table of predictions on traces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.records import eta


def trace(folder: Path, name: str, jobs: int) -> str:
    rows = (f"2017-10-16 {10 + at // 60}:{at % 60:02d}:00,70.0,1,70.0,a" for at in range(jobs))
    (folder / name).write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows, ""]))
    return str(folder / name)


def test_a_line_for_each_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs come each minute and run for longer, one after the other, so that each waits ten seconds longer."""
    traces = [trace(tmp_path, "one.csv", 90), trace(tmp_path, "other.csv", 3)]
    assert eta.main([*traces, "--nodes", "1x1gpu", "--every", "60"]) == 0
    one, other = (line.split("|") for line in capsys.readouterr().out.splitlines()[-2:])
    calibrated, predictions = map(int, re.findall(r"\d+", one[5]))
    assert 20 <= calibrated < predictions <= 90
    assert float(one[9]) < 1, "P80 is better than a moving average of waits that grow"
    assert other[5].strip() == "0 of 0"
