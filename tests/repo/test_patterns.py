"""Patterns that come from outside are compiled in one place, and ``re`` sees only what stands in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "stromboli"
ROOM = "model/values/patterns.py"
ASKED = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}


def breaches(tree: ast.Module, path: str) -> Iterator[str]:
    """What a module does with patterns that it may not: ``re`` with a pattern that is no constant, and RE2 at all."""
    top = {id(node) for node in _outside_of_functions(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and path != ROOM and "re2" in _modules(node):
            yield f"{path}:{node.lineno} imports re2"
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            yield f"{path}:{node.lineno} imports from re, out of sight of this test"
        if isinstance(node, ast.Call) and _asks(node) and id(node) not in top:
            yield f"{path}:{node.lineno} compiles a pattern that is no constant: use model/values/patterns.py"


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def _asks(call: ast.Call) -> bool:
    asked, constant = call.func, bool(call.args) and isinstance(call.args[0], ast.Constant)
    of_re = isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "re"
    return of_re and isinstance(asked, ast.Attribute) and asked.attr in ASKED and not constant


def _outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated as the module is imported: only constants are there by then."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _outside_of_functions(child)


def test_no_pattern_from_an_object_reaches_re():
    files = sorted(SOURCES.rglob("*.py"))
    assert SOURCES / ROOM in files
    found = [told for file in files for told in breaches(ast.parse(file.read_text()), str(file.relative_to(SOURCES)))]
    assert found == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import re\ndef f(text):\n    return re.compile(text)", "x.py:3 compiles"),
        ("import re\ndef f(text):\n    return re.search(text, 'a')", "x.py:3 compiles"),
        ("import re\nclass A:\n    f = lambda self, text: re.compile(text)", "x.py:3 compiles"),
        ("import re2", "x.py:1 imports re2"),
        ("from re import compile", "x.py:1 imports from re"),
        ("import re\nA = 'a'\nB = re.compile(A)\ndef f(text):\n    return re.sub('a', 'b', text)", ""),
    ],
)
def test_a_breach_is_seen(code, told):
    found = list(breaches(ast.parse(code), "x.py"))
    assert found == [] if not told else len(found) == 1 and found[0].startswith(told)
