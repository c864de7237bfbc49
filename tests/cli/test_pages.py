"""docs/cli.md says what there is: commands, options, rules, exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from stromboli.cli.app import app
from stromboli.cli.linting.cluster_rules import CLUSTER_RULES
from stromboli.cli.linting.conf_rules import CONF_RULES
from stromboli.cli.linting.job_rules import JOB_RULES
from stromboli.cli.linting.refusals import NAMES, REFUSED
from stromboli.cli.main import main

PAGE = Path("docs/cli.md")


def commands() -> dict[str, list[str]]:
    """Every command that does something, with the long names of its options."""
    found: dict[str, list[str]] = {}

    def walk(command: Any, name: str) -> None:
        inner = getattr(command, "commands", None)
        if inner:
            for word, one in inner.items():
                walk(one, f"{name} {word}".strip())
            return
        options = (text for parameter in command.params for text in parameter.opts)
        found[name] = [text for text in options if text.startswith("--") and text != "--help"]

    walk(typer.main.get_command(app), "")
    return found


def test_commands_are_found() -> None:
    assert set(commands()) > {"plan", "lint", "serve", "controllers", "manifests", "top", "job run", "queue list"}


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_is_described(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"stromboli {name}" in text
    shared = {"--plugins-dir", "--lenient-config", "--compat", "--output", "--config"}  # described with plan
    assert [option for option in commands()[name] if option not in text and option not in shared] == []


def test_every_rule_is_described_with_its_severity() -> None:
    text = PAGE.read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `([a-z-]+)` \| (error|warning|note) \|", text, re.MULTILINE))
    assert described == {
        **{rule.id: rule.severity for rule in CONF_RULES},
        **{rule.id: rule.severity for rule in (*CLUSTER_RULES, *JOB_RULES, *NAMES)},
        **{rule.id: rule.severity for rule in REFUSED},
    }


def test_the_quickstart_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "examples/quickstart", "--config", "examples/quickstart/volcano-scheduler.conf"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "0/28 nodes are unavailable" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
