"""Code that stands twice: windows of ten lines that are alike once names, numbers and strings are blanked.

Only code counts: no docstrings, comments, imports, and no tables, which are the literal collections outside functions
and, inside, those that hold nothing but data.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from tools.functions import CELLS, FUNCTIONS, TABLES, is_text

WINDOW = 10
BLANKS = {tokenize.NUMBER: "0", tokenize.STRING: "''"}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Line:
    """A line of code: where it stands, and its shape."""

    path: PurePath
    number: int
    shape: str


def near_duplicates(sources: Iterable[tuple[PurePath, str]]) -> tuple[list[Line], int]:
    """Answer the lines that lie in a window with a twin, and how many lines of code there are."""
    files = [code_lines(path, text) for path, text in sources]
    places: defaultdict[tuple[str, ...], list[list[Line]]] = defaultdict(list)
    for lines in files:
        for start in range(len(lines) - WINDOW + 1):
            window = lines[start : start + WINDOW]
            places[tuple(line.shape for line in window)].append(window)
    twins = {line for found in places.values() if len(found) > 1 for window in found for line in window}
    return sorted(twins, key=lambda line: (line.path, line.number)), sum(map(len, files))


def code_lines(path: PurePath, text: str) -> list[Line]:
    """Answer the lines of a module's functions, in order, as shapes."""
    counted = counted_lines(ast.parse(text))
    return [Line(path, number, shape) for number, shape in sorted(shapes(text).items()) if number in counted]


def counted_lines(tree: ast.Module) -> set[int]:
    """Number the lines of a module that are code."""
    every = {line for node in tree.body for line in lines_of(node)}
    inside = {child for node in ast.walk(tree) if isinstance(node, FUNCTIONS) for child in ast.walk(node)}
    return every - {line for node in ast.walk(tree) if is_left_out(node, inside) for line in lines_of(node)}


def is_left_out(node: ast.AST, inside: set[ast.AST]) -> bool:
    """Tell whether a node holds no code: a docstring, an import, or a table; `inside` are the nodes of functions."""
    if isinstance(node, ast.Expr):
        return is_text(node.value)
    if isinstance(node, TABLES):
        return node not in inside or all(isinstance(cell, CELLS) for cell in ast.walk(node))
    return isinstance(node, (ast.Import, ast.ImportFrom))


def lines_of(node: ast.AST) -> Iterator[int]:
    """Number the lines that a node spans."""
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 0)
    return iter(range(first, last + 1))


def shapes(text: str) -> Mapping[int, str]:
    """Answer each line's tokens, names and literals blanked, by number."""
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            rows[token.start[0]].append(blanked(token))
    return {number: " ".join(row) for number, row in rows.items()}


def blanked(token: tokenize.TokenInfo) -> str:
    """Answer a token's shape."""
    if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
        return "name"
    return BLANKS.get(token.type, token.string)
