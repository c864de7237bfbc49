"""The guide to debugging: its functions are entered, its debugger stops, its keywords are in the log's catalogue."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from stromboli.framework.catalogue import LINES
from tests.docs.test_eviction_page import plan_of

PAGE = Path(__file__).parents[2] / "docs" / "debugging.md"
TEXT = PAGE.read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w.]+):([\w.]+)`")
EXAMPLES = {"P1": 2, "R1": 3}
"""Examples, and the column of the table that says whether a function is entered in them."""


def rows() -> list[list[str]]:
    table = TEXT.partition("### Where to break")[2].partition("P1, R1 and the others")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "`" in line]


def code_of(module: str, name: str) -> CodeType:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    code: CodeType = found.__code__
    return code


@cache
def entered(example: str) -> frozenset[CodeType]:
    """Every function that is entered while the example is decided."""
    found: set[CodeType] = set()

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        plan_of(example)
    finally:
        sys.setprofile(before)
    return frozenset(found)


def expected() -> list[tuple[str, str, str]]:
    """(example, module, function) of every promise in the table."""
    found = []
    for cells in rows():
        for module, name in NAMED.findall(cells[1]):
            places = [example for example, column in EXAMPLES.items() if cells[column] == "yes"]
            places += [] if "(in " not in cells[0] else re.findall(r"[PR]\d", cells[0])
            assert places, f"{name} is nowhere entered"
            found += [(place, module, name) for place in places]
    return found


def test_the_table_names_every_step():
    assert len(rows()) >= 18
    assert {place for place, _, _ in expected()} == {"P1", "P2", "P4", "R1", "R2"}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)


def known(level: str) -> str:
    """All texts of the catalogue at a level, gaps as dots."""
    return "\n".join(re.sub(r"\{[^}]*\}", "…", line.text) for line in LINES.values() if str(line.level) == level)


def keywords() -> list[tuple[str, str]]:
    table = TEXT.partition("## Keywords and levels")[2].partition("Metrics:")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ]
    return [(word, row[1]) for row in cells for word in re.findall(r"`([^`]*)`", row[0])]


@pytest.mark.parametrize(("word", "level"), [pair for pair in keywords() if not pair[0].startswith("grep")])
def test_a_keyword_stands_in_the_catalogue_at_its_level(word: str, level: str):
    word = word.replace("Reclaim", "…") if word == "Reclaim" else re.sub(r"(Enter|Leaving) Preempt", r"\1 …", word)
    texts = known(level)
    assert word in texts or word == "…" or word.rstrip("<") in texts, word


def test_the_pattern_for_overused_queues_finds_the_line():
    [pattern] = re.findall(r'`grep -E "([^"]*)"`', TEXT)
    assert re.search(pattern, LINES["queue_overused"].text.format(queue="q1"))
