"""The page docs/acceptance.md: which test holds the project to which statement of the checklist.

Tests name the rows that they execute: in the function's name (`test_S0_26_...`), in a case's id (`S0-26-...`), in the
docstring or in a comment on the line of the `def`. They are found by reading the tests, not by running them. The
statements come from the checklist beside the project; without it, from the page itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.later import LATER, PARTLY

PROJECT = Path(__file__).parent.parent
CHECKLISTS = ("../shared/spec/seed-checklist.md", "../shared/spec/seed-checklist-2.md")
PAGE = "docs/acceptance.md"
ROW = re.compile(r"(?<![A-Za-z0-9])S([0-9])[-_]([0-9]{2})(?![0-9])")
CHAPTERS: Mapping[str, str] = {
    "S0": "The session framework",
    "S1": "The resource model",
    "S2": "Preemption and reclaim",
    "S3": "Plugins",
    "S4": "Reservations that outlive a session",
}
REWORDED = {
    "HEAD spelling enableX works and wins over the seed's": "The spelling enableX works and wins over the other one",
    "generated page lists seed name, Go name, Python name, equal to NM 2": "generated page lists all names",
    "No room yet -> stays Pipelined, nothing written, nobody evicted": (
        "No room yet -> stays Pipelined, nothing written and no pod evicted"
    ),
    "seed's text": "the text",
}


@dataclass(frozen=True)
class Statement:
    """One row: its id, what it says, and how that is checked."""

    row: str
    text: str
    check: str


@dataclass(frozen=True)
class Test:
    """A test function: the module's path relative to the project, and the function's name."""

    path: str
    name: str


# ---------------------------------------------------------------------- statements


def statements(project: Path = PROJECT) -> list[Statement]:
    """All rows of the page, from the checklist if it is there, else from the page."""
    files = [project / name for name in CHECKLISTS]
    if all(file.is_file() for file in files):
        return [found for file in files for found in from_checklist(file.read_text(encoding="utf-8"))]
    return list(from_page((project / PAGE).read_text(encoding="utf-8")))


def from_checklist(text: str) -> Iterator[Statement]:
    """Rows of the checklist: id, statement, place, rule, check."""
    for cells in table(text):
        if len(cells) == 5 and wanted(cells[0]):
            yield Statement(cells[0], reworded(cells[1]), reworded(cells[4]))


def from_page(text: str) -> Iterator[Statement]:
    """Rows of the page: id, statement, check, tests."""
    for cells in table(text):
        if len(cells) == 4 and wanted(cells[0]):
            yield Statement(*cells[:3])


def table(text: str) -> Iterator[list[str]]:
    """The cells of every line of a table."""
    for line in text.splitlines():
        if line.startswith("| S"):
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def wanted(row: str) -> bool:
    """Whether the page has this row."""
    return row[:2] in CHAPTERS


def reworded(text: str) -> str:
    """The text in words that say the same without the checklist's sources at hand."""
    return REWORDED.get(text, text)


# ---------------------------------------------------------------------- tests


def rows_with_tests(project: Path = PROJECT) -> dict[str, list[Test]]:
    """The tests of every row, by path and place in the file."""
    found: dict[str, list[Test]] = {}
    for file in sorted((project / "tests").rglob("test_*.py")):
        path = file.relative_to(project).as_posix()
        text = file.read_text(encoding="utf-8")
        for name, rows in rows_of_module(text) if ROW.search(text) else ():
            for row in rows:
                found.setdefault(row, []).append(Test(path, name))
    return found


def rows_of_module(text: str) -> Iterator[tuple[str, list[str]]]:
    """Test functions with the rows that they name."""
    tree, lines = ast.parse(text), text.splitlines()
    tables = {name: node.value for node in tree.body for name in assigned(node) if isinstance(node, Assignment)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            words = [node.name, ast.get_docstring(node) or "", lines[node.lineno - 1].partition("#")[2]]
            words += (text for decorator in node.decorator_list for text in ids(decorator, tables))
            if rows := rows_in(words):
                yield node.name, rows


def rows_in(words: Iterable[str]) -> list[str]:
    """Rows that texts name, each once."""
    found = (f"S{chapter}-{number}" for word in words for chapter, number in ROW.findall(word))
    return [*dict.fromkeys(found)]


Assignment = ast.Assign | ast.AnnAssign


def assigned(node: ast.stmt) -> list[str]:
    """The names that a statement gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def ids(decorator: ast.expr, tables: Mapping[str, ast.expr | None]) -> Iterator[str]:
    """Texts that begin with a row, in a decorator and in the tables that it names."""
    for node in ast.walk(decorator):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ROW.match(node.value):
            yield node.value
        elif isinstance(node, ast.Name) and (value := tables.get(node.id)) is not None:
            yield from ids(value, {name: other for name, other in tables.items() if name != node.id})


# ---------------------------------------------------------------------- page


def page(project: Path = PROJECT) -> str:
    """The whole page."""
    rows, tests = statements(project), rows_with_tests(project)
    lines = [*_INTRODUCTION]
    for chapter, title in CHAPTERS.items():
        own = [row for row in rows if row.row.startswith(chapter)]
        lines += ["", f"## {chapter}: {title}", "", "| Row | Statement | Check | Tests |", "|---|---|---|---|"]
        lines += [f"| {one.row} | {one.text} | {one.check} | {answer(one.row, tests)} |" for one in own]
    return "\n".join([*lines, ""])


def answer(row: str, tests: Mapping[str, Iterable[Test]]) -> str:
    """The tests of a row, file by file, and what is open."""
    by_file: dict[str, list[str]] = {}
    for test in tests.get(row, ()):
        by_file.setdefault(test.path, []).append(test.name)
    links = [f"[{path.removeprefix('tests/')}](../{path}): {', '.join(names)}" for path, names in by_file.items()]
    open_ = LATER.get(row) or PARTLY.get(row)
    note = [f"*{'Open' if links else 'Not yet'}: {open_}*"] if open_ else []
    return "; ".join([*links, *note]).replace("|", "\\|") or "**no test and no reason**"


_INTRODUCTION = """\
# Acceptance

Generated by `tools/acceptance.py` from the tests that name a row. A row is a statement that users of the scheduler can
hold it to, with the check that shows it; the tests execute that check. What cannot be executed yet says why.
""".splitlines()
