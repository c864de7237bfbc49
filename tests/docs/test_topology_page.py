"""The page about closeness: its example says what the scheduler says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cli.main import main

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "topology.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n\$ stromboli (.*)\n((?:.*\n)*?)```", PAGE)


@pytest.mark.parametrize(("command", "said"), BLOCKS, ids=[command.split()[-1] for command, _ in BLOCKS])
def test_examples_say_what_the_page_says(
    command: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of xdist have one
    main(command.split())
    assert said in capsys.readouterr().out


def test_arguments_are_those_of_the_plugins() -> None:
    for section in PAGE.split("\n## ")[1:]:
        name = section.partition("\n")[0]
        rows = [line.partition("|")[2].partition("|")[0] for line in section.splitlines() if line.startswith("| `")]
        named = {key for row in rows for key in re.findall(r"`([^`]+)`", row)}
        plugin = builtin_registry().plugin_class(name)
        assert plugin is not None
        keys = {argument.key for argument in plugin.arguments.values()}
        assert keys <= {re.sub(r"<.*>", "*", key) for key in named}, name
