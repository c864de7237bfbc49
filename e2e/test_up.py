"""`stromboli up` as people start it: it finishes its examples by itself, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.stage import PATIENCE

ROOT = Path(__file__).parents[1]
UP = [sys.executable, "-m", "stromboli.cli.main", "up"]


def test_the_examples_finish_and_the_command_ends() -> None:
    done = subprocess.run(
        [*UP, "--examples", "examples/cluster"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[1].startswith("  export KUBECONFIG=")
    assert lines[2].startswith("  kubectl get ")
    for job in ("training", "evaluation", "notebook"):
        assert [line for line in lines if line.startswith(f"default/{job}:")][-1].split()[1] == "Completed,"
    assert len(lines) == len(set(lines))
    assert "All jobs are over. To try next, in a terminal:" in lines
    assert not Path(lines[1].partition("=")[2]).parent.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(number: signal.Signals) -> None:
    process = subprocess.Popen(UP, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise AssertionError("the command has no output")
    head = [process.stdout.readline() for _ in range(2)]
    folder = Path(head[1].strip().partition("=")[2]).parent
    assert folder.exists()
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert not folder.exists()
