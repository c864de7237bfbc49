"""The table of predictions on traces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.records import eta
from stromboli.study.learning import Answer


def trace(folder: Path, name: str, jobs: int) -> str:
    rows = (f"2017-10-16 {10 + at // 60}:{at % 60:02d}:00,70.0,1,70.0,a" for at in range(jobs))
    (folder / name).write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows, ""]))
    return str(folder / name)


def test_a_line_for_each_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs come each minute and run for longer, one after the other, so that each waits ten seconds longer."""
    traces = [trace(tmp_path, "one.csv", 90), trace(tmp_path, "other.csv", 3)]
    assert eta.main([*traces, "--nodes", "1x1gpu", "--every", "60"]) == 0
    one, other, both = (line.split("|") for line in capsys.readouterr().out.splitlines()[-3:])
    calibrated, predictions = map(int, re.findall(r"\d+", one[5]))
    assert 20 <= calibrated < predictions <= 90
    assert float(one[9]) < 1, "P80 is better than a moving average of waits that grow"
    assert other[5].strip() == "0 of 0"
    assert [cell.strip() for cell in both[1:4]] == ["all", "", "93"]
    assert both[6:] == one[6:], "no answer of the other one counts"


def test_all_answers_count_together() -> None:
    """One came after 100 s of 300 that were said, one after 500 s of 200; averages said 200 and 400."""
    weeks = [
        eta.Counted("a", "1x1gpu", 4, 10.0, 3, [(answer(300.0, outcome=100.0), 200.0)]),
        eta.Counted("b", "1x1gpu", 5, 20.0, 2, [(answer(200.0, outcome=500.0), 400.0)]),
    ]
    ratio = (0.2 * 200 + 0.8 * 300) / (0.2 * 100 + 0.8 * 100)
    assert eta.together(weeks)[:5] == ["all", "", "9", "", "2 of 5"]
    assert eta.together(weeks)[7:9] == ["50.0%", f"{ratio:.2f}"]
    assert weeks[0].cells[:5] == ["a", "1x1gpu", "4", "10 s", "1 of 3"]
    assert weeks[0].cells[7:9] == ["100.0%", "2.00"]


def answer(said: float, outcome: float) -> Answer:
    return Answer("ns/j", "q", 0.0, (said,) * 3, outcome, calibrated=True)
