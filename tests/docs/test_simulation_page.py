"""The commands of the page on simulation, as they stand there."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

from stromboli.cli.main import main
from stromboli.sim.simulation.lives import read_lives

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("stromboli simulate ")]
STORY = [
    line for line in PAGE.splitlines() if line.startswith(("stromboli sweep ", "stromboli report ", "stromboli conf "))
]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples" / "simulation", tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "there"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_its_figures(command, example, capsys):
    assert main(shlex.split(command, comments=True)[1:]) == 0
    shown = capsys.readouterr().out
    assert "bounded" not in shown
    assert [line.split()[0] for line in shown.splitlines()[:3]] == ["QUEUE", "default", "all"]


def test_tables(example, capsys):
    command = ["simulate", "small.swf", "--nodes", "1x4cpu", "--into", "out"]
    assert main(command) == 0
    with Path("out/jobs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert main([*command, "--parquet"]) == 0
    assert [row["job"] for row in parquet.read_table("out/jobs.parquet").to_pylist()] == [row["job"] for row in rows]
    assert json.loads(Path("out/figures.json").read_text(encoding="utf-8"))["jobs"] == len(rows) == 5


@pytest.mark.slow
def test_a_policy_is_compared_in_five_commands(example, capsys):
    """The other one of the five is among the commands above."""
    assert len(STORY) == 4
    for command in STORY:
        assert main(shlex.split(command, comments=True)[1:]) == 0
    assert "16 of 16 points done" in capsys.readouterr().out
    assert Path("report.html").read_text(encoding="utf-8").count("<svg") == 7


def test_the_lives_of_the_page_are_lives(tmp_path):
    (file := tmp_path / "lives.yaml").write_text(PAGE.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    assert read_lives(file).retries == 5


@pytest.mark.slow
def test_the_python_of_the_page_runs(example):
    exec(compile(PAGE.split("```python\n")[1].split("```")[0], "page", "exec"), {"__name__": "page"})
    assert Path("report.html").exists()
