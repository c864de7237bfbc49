"""Acceptance rows S2 about the guides: what they say is done, and seen to work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.debugging_guide import blocks, code_of, entered, expected

DOCS = Path(__file__).parents[2] / "docs"


def test_S2_55_following_the_guide_stops_at_the_breakpoint(tmp_path: Path):
    conf, fight = blocks("yaml")
    (tmp_path / "scheduler.conf").write_text(conf)
    (tmp_path / "fight.yaml").write_text(fight)
    start = next(line for block in blocks("sh") for line in block.splitlines() if "plan fight.yaml" in line)
    [commands] = blocks("text")
    done = subprocess.run(
        [sys.executable, *start.split()[1:]],
        input=commands + "clear 1\ncontinue\nquit\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert re.search(r"Breakpoint 1 at .*preempt\.py", done.stdout), done.stderr
    assert re.search(r"> .*preempt\.py\(\d+\)preempt\(\)", done.stdout)
    assert "Task(default/high-0, Pending)" in done.stdout
    assert "preempt_loop.py" in done.stdout, "where shows the way"
    assert "1 pod evicted" in done.stdout, "and the plan goes on to its end"


def test_S2_55_the_guide_starts_a_live_scheduler_under_the_debugger_too() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert any(
        re.fullmatch(r"python -m pdb -m stromboli\.cli\.main serve --scheduler-conf=\S+", line) for line in lines
    )


@pytest.mark.parametrize(("example", "module", "name"), expected())
def test_S2_56_every_function_to_break_at_exists_and_is_entered(example: str, module: str, name: str) -> None:
    assert code_of(module, name) in entered(example)


def test_S2_65_preempt_and_reclaim_are_compared() -> None:
    text = (DOCS / "eviction.md").read_text(encoding="utf-8")
    table = text.partition("## Preempt against reclaim")[2].partition("A job starves")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    compared = {row[0]: row[1:] for row in rows[2:]}
    assert {"scope", "trigger", "victims", "plugins asked", "quota", "module"} <= set(compared)
    assert all(preempt != reclaim for preempt, reclaim in compared.values())
    assert compared["plugins asked"] == ["Preemptable", "Reclaimable"]
