"""The page on testing has every law of this folder."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def laws(file: Path) -> list[str]:
    """The names that a module marks its tests with, by reading it."""
    calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    marks = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "law"]
    return [str(argument.value) for call in marks for argument in call.args if isinstance(argument, ast.Constant)]


def test_every_law_stands_on_the_page_with_what_breaks_it() -> None:
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()}
    found = [law for file in sorted(Path(__file__).parent.glob("test_*.py")) for law in laws(file)]
    assert len(found) > 15
    assert [law for law in found if law not in rows] == []
