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

ROOT = Path(__file__).parents[2]
COMMANDS = [
    line
    for line in (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("stromboli simulate ")
]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples" / "simulation", tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "there"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_its_figures(command, example, capsys):
    assert main(shlex.split(command)[1:]) == 0
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
