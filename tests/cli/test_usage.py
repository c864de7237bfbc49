"""Loads of nodes given to a plan as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.cli.main import main
from tests.cli import manifests as m

CONF = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: usage}]\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "conf").write_text(CONF)
    m.write(tmp_path, [m.node("n1"), m.pod("a")])
    return tmp_path


def planned(files: Path, usage: str) -> int:
    (files / "usage").write_text(usage)
    return main(["plan", str(files / "cluster.json"), "-c", str(files / "conf"), "--usage", str(files / "usage")])


def test_a_loaded_node_takes_no_pod(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(files, "n1: {cpu: 95, memory: 3}") == 0
    assert "the CPU load of the node exceeds the upper limit." in capsys.readouterr().out
    assert planned(files, "n1: {cpu: 5, memory: 3}") == 0
    assert "upper limit" not in capsys.readouterr().out


def test_a_file_that_cannot_be_used_is_named_with_the_field(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(files, "n1: {cpu: high}") == 2
    found = capsys.readouterr().err
    assert "usage" in found
    assert "cpu: expected a number, got a text" in found
