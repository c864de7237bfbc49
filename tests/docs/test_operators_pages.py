"""Commands on the operator's pages: those that need no cluster are run, of the others the command and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from stromboli.cli.app import app
from stromboli.cli.main import main
from stromboli.live.process.flags import parse

PAGES = sorted(Path("docs/operators").glob("*.md"))
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
ON_A_CLUSTER = ("serve", "migrate check", "migrate check --output json")
"""Commands that e2e stories run on servers."""


def commands() -> list[str]:
    """Lines that begin with our program, without what comes after them in a pipe."""
    lines = [line for page in PAGES for block in SHELL.findall(page.read_text()) for line in block.splitlines()]
    ours = [re.split(r" [|>] ", line)[0].removeprefix("stromboli ") for line in lines if line.startswith("stromboli ")]
    return sorted(set(ours))


OFFLINE = [one for one in commands() if one not in ON_A_CLUSTER and not one.startswith("serve ")]


def test_there_are_commands() -> None:
    assert len(OFFLINE) >= 6
    assert set(commands()) - set(OFFLINE) == {
        one for one in commands() if one in ON_A_CLUSTER or one.startswith("serve")
    }


@pytest.mark.parametrize("line", OFFLINE)
def test_it_ends_well(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", [one for one in commands() if one.startswith("serve ")])
def test_flags_of_serve_are_known(line: str) -> None:
    assert parse(shlex.split(line)[1:])


def test_every_page_is_in_the_index() -> None:
    index = Path("docs/operators/index.md").read_text()
    assert [page.name for page in PAGES if page.name not in index and page.name != "index.md"] == []
    root: Any = typer.main.get_command(app)
    assert "migrate" in root.commands
