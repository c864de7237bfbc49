"""The commands that run until they are stopped: one function, with help and version before anything else is loaded."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import resolve_name

import pytest

from stromboli.cli.main import main
from stromboli.cli.services import PROGRAMS, Program

HEAVY = ("aiohttp", "numpy", "prometheus_client", "cryptography", "re2", "stromboli.kube.client")
"""What costs a start most of its time."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_help_lists_every_flag(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([program.name, "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"Usage: stromboli {program.name} [FLAGS]")
    for flag in resolve_name(program.flags):
        assert f"--{flag.name}=" in told
    assert callable(resolve_name(program.run))


@pytest.mark.parametrize("flag", ["--version", "--help"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_help_and_version_load_little(program: Program, flag: str) -> None:
    code = (
        "import sys\nfrom stromboli.cli.main import main\n"
        f"code = main({[program.name, flag]!r})\n"
        f"print(sorted(set({HEAVY!r}) & sys.modules.keys()), file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout.startswith("stromboli " if flag == "--version" else "Usage: ")
