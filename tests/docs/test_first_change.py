"""The first changes that CONTRIBUTING.md shows: their differences fit the files as they are, and what is new works."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from stromboli.builtin import PLUGINS

ROOT = Path(__file__).parents[2]
CHANGES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## A first change")[2].partition("\n## ")[0]
PATH = re.compile(r"`((?:src|tests)/[\w/]+\.py)`")


class Block(NamedTuple):
    """A fenced block: its language, its lines, and the file named last before it."""

    language: str
    text: str
    path: str


def blocks() -> list[Block]:
    found = re.finditer(r"```(\w+)\n(.*?)```", CHANGES, re.DOTALL)
    return [Block(each[1], each[2], PATH.findall(CHANGES[: each.start()])[-1]) for each in found]


DIFFERENCES = [block for block in blocks() if block.language == "diff"]


def changed(text: str, difference: str) -> str:
    """The text with a difference applied; the difference's old lines must stand in the text exactly once."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
    after = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
    assert text.count(before) == 1, before
    return text.replace(before, after)


@pytest.mark.parametrize("block", DIFFERENCES, ids=[block.path for block in DIFFERENCES])
def test_a_difference_fits_its_file(block: Block) -> None:
    path = ROOT / block.path
    compile(changed(path.read_text(encoding="utf-8"), block.text), path, "exec")


def test_each_change_touches_two_files_and_a_test_at_most() -> None:
    parts = re.split(r"^### ", CHANGES, flags=re.MULTILINE)[1:]
    assert len(parts) == 3
    for part in parts:
        touched = {path for path in PATH.findall(part) if path.startswith("src/")}
        assert 1 <= len(touched) <= 2, part


def test_the_plugin_does_what_its_test_says(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, tests = (block for block in blocks() if block.language == "python" and "idlecpu" in block.path)
    module = ModuleType("stromboli.plugins.idlecpu")
    exec(plugin.text, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(PLUGINS, "idlecpu", "stromboli.plugins.idlecpu:IdleCpu")
    found = ModuleType("test_idlecpu")
    exec(tests.text, vars(found))
    called = [value() for name, value in vars(found).items() if name.startswith("test_")]
    assert len(called) == 2
