"""What the guide to debugging says: its blocks, the functions of its table, and which of them examples enter."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.docs.eviction_examples import plan_of

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


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)
