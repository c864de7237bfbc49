"""The sizes of functions, read from the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, *FUNCTIONS)
TABLES = (ast.List, ast.Tuple, ast.Dict, ast.Set)
CELLS = (*TABLES, ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.unaryop, ast.expr_context)


@dataclass(frozen=True)
class Function:
    """One function: its qualified name, first line, lines of body that count, complexity."""

    name: str
    line: int
    lines: int
    complexity: int


def functions(node: ast.AST, prefix: str = "") -> Iterator[Function]:
    """Yield every function below `node`, nested ones and methods included, in source order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = prefix + child.name
            if isinstance(child, FUNCTIONS):
                yield Function(name, child.lineno, body_lines(child), complexity(child))
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a body; docstrings don't count, a data table counts as one line."""
    last = function.body[-1].end_lineno or 0
    return last - function.body[0].lineno + 1 - sum(uncounted_lines(statement) for statement in function.body)


def uncounted_lines(node: ast.AST) -> int:
    """Count the lines below `node` that are docstrings, or rows of a data table after its first."""
    if isinstance(node, ast.Expr) and is_text(node.value):
        return height(node)
    if isinstance(node, TABLES) and all(isinstance(cell, CELLS) for cell in ast.walk(node)):
        return height(node) - 1
    return sum(uncounted_lines(child) for child in ast.iter_child_nodes(node))


def is_text(node: ast.expr) -> bool:
    """Tell whether an expression is a plain string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def height(node: ast.expr | ast.stmt) -> int:
    """Count the lines that a node spans."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def complexity(function: ast.AST) -> int:
    """Count the independent ways through a function, one more than its branches.

    Each boolean operator, conditional expression, comprehension and filter of a comprehension is a branch, too.
    """
    return sum(map(ways, ast.walk(function)))


def ways(node: ast.AST) -> int:
    """Count the ways that one node adds to those through its function."""
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, (*BRANCHES, ast.IfExp)) or is_case(node))


def is_case(node: ast.AST) -> bool:
    """Tell whether a node is a case of a match statement that asks for something."""
    return isinstance(node, ast.match_case) and not (
        isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
    )
