"""The mutations that a module allows, read from its syntax tree.

A mutation replaces one stretch of the source by another of the same number of lines.  What cannot change behaviour is
left out: docstrings, annotations, ``__slots__``, ``__all__``, ``zip``'s ``strict``, sizes of caches, blocks for type
checkers, bodies that only raise ``NotImplementedError``.  Texts are left alone as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPARISONS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
COMPARISON = re.compile(rb"\b(?:not\s+in|is\s+not|in|is)\b|<=|>=|==|!=|<|>")
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"),
}  # fmt: skip
TWINS = {"any": "all", "all": "any", "min": "max", "max": "min"}
SILENT_NAMES = {"__slots__", "__all__"}
SILENT_ARGUMENTS = {"strict", "maxsize"}
"""The argument of ``zip`` where lengths are equal anyhow, and how many answers a cache keeps."""
LONGEST_WORD = 40
"""Characters; a longer text is no name that a test would repeat."""


@dataclass(frozen=True)
class Edit:
    """A stretch of bytes of the source, and what stands there instead."""

    start: int
    end: int
    new: bytes


@dataclass(frozen=True)
class Mutation:
    """A module of the project (its path, relative to the project, and its text), and one edit of it.

    ``lines`` are the first and the last line of the statement; a line of a compound statement's body is not of it.
    ``function`` is the first line of the outermost function around it, 0 where it runs when the module is imported;
    ``names`` are then the names that the statement binds.
    """

    path: str
    text: str
    line: int
    lines: tuple[int, int]
    function: int
    names: tuple[str, ...]
    edit: Edit

    @cached_property
    def mutated(self) -> str:
        """The module's text with the edit made."""
        data = self.text.encode()
        return (data[: self.edit.start] + self.edit.new + data[self.edit.end :]).decode()

    @property
    def module(self) -> str:
        """The name that the module is imported by; the first part of its path is the folder of all sources."""
        return ".".join(Path(self.path).with_suffix("").parts[1:])

    @cached_property
    def function_name(self) -> str:
        """The name of the outermost function around it; empty where it runs when the module is imported."""
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, FUNCTIONS) and first_line(node) == self.function:
                return node.name
        return ""

    @property
    def nth(self) -> int:
        """Which of the equal lines of that function, or of the module up to it, its line is; 1 for the first."""
        lines = [line.strip() for line in self.text.splitlines()[max(self.function - 1, 0) : self.line]]
        return lines.count(lines[-1])

    @cached_property
    def words(self) -> list[str]:
        """The texts that stand in its line, or else in its statement, docstrings and sentences left out."""
        first, last = self.lines
        found = [
            (node.lineno, node.value)
            for node in ast.walk(ast.parse(self.text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and first <= node.lineno <= last
        ]
        words = [(line, word) for line, word in found if 2 < len(word) < LONGEST_WORD and "\n" not in word]
        return [word for line, word in words if line == self.line] or [word for _, word in words]

    @property
    def compiles(self) -> bool:
        """Whether the mutated text is Python; what moves to another line may break it."""
        try:
            ast.parse(self.mutated)
        except SyntaxError:
            return False
        return True

    @property
    def diff(self) -> str:
        """What changes, as lines with ``-`` and ``+``; both texts have the same number of lines."""
        pairs = zip(self.text.splitlines(), self.mutated.splitlines(), strict=True)
        changed = [(("-", old), ("+", new)) for old, new in pairs if old != new]
        return "\n".join(f"{sign} {line}" for pair in changed for sign, line in pair if line.strip())

    @property
    def where(self) -> str:
        """The place as path:line."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Place:
    """Where the walk stands."""

    lines: tuple[int, int] = (0, 0)
    function: int = 0
    names: tuple[str, ...] = ()


class Walk:
    """Collects the mutations of one module."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text, self.data = path, text, text.encode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutation] = []

    def begin(self, node: ast.expr | ast.stmt) -> int:
        """The offset at which a node begins, in bytes."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset behind a node, in bytes."""
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def source(self, node: ast.expr | ast.stmt) -> bytes:
        """The bytes of a node."""
        return self.data[self.begin(node) : self.end(node)]

    # -------------------------------------------------------------- statements

    def body(self, statements: list[ast.stmt], place: Place) -> None:
        """Walk through a block."""
        if not _only_declares(statements):
            for statement in statements:
                self.statement(statement, place)

    def statement(self, node: ast.stmt, place: Place) -> None:
        """Walk through a statement and what it contains."""
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_silent(node):
            return
        if isinstance(node, FUNCTIONS):
            self.function(node, place)
            return
        place = self.place_of(node, place)
        self.replaced(node, place)
        for name, value in ast.iter_fields(node):
            if name == "annotation" or (isinstance(node, ast.ClassDef) and name == "decorator_list"):
                continue
            self.child(value, place)

    def child(self, value: object, place: Place) -> None:
        """Walk through one field of a node."""
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            self.body(value, place)
        elif isinstance(value, list):
            for inner in value:
                self.child(inner, place)
        elif isinstance(value, ast.expr):
            self.expression(value, place)
        elif isinstance(value, (ast.ExceptHandler, ast.match_case)):
            self.body(value.body, place)
        elif isinstance(value, ast.withitem):
            self.expression(value.context_expr, place)

    def place_of(self, node: ast.stmt, place: Place) -> Place:
        """The place that a statement makes: its lines, those of a body left out, and what it binds."""
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        names = place.names if place.function else tuple(_bound(node)) or place.names
        return Place((node.lineno, max(node.lineno, last)), place.function, names)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: Place) -> None:
        """Walk through a function: its defaults are worked out where it is defined, its body when it is called."""
        if any("overload" in ast.dump(decorator) for decorator in node.decorator_list):
            return
        header = Place((node.lineno, max(node.lineno, node.body[0].lineno - 1)), place.function, (node.name,))
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
            self.expression(default, header)
        self.body(node.body, Place((0, 0), place.function or first_line(node)))

    def replaced(self, node: ast.stmt, place: Place) -> None:
        """Statements that may be left out, or done otherwise, as wholes."""
        simple = (ast.Raise, ast.AugAssign)
        if isinstance(node, simple) or _is_call(node) or _stores_in_object(node):
            self.edit(node, place, self.begin(node), self.end(node), b"pass")
        if isinstance(node, ast.Continue):
            self.edit(node, place, self.begin(node), self.end(node), b"break")
        if isinstance(node, ast.Break):
            self.edit(node, place, self.begin(node), self.end(node), b"continue")
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            self.edit(node, place, self.begin(node), self.end(node), b"return None")
        if isinstance(node, ast.If):
            self.negated(node.test, place)
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            self.between(node.target, node.value, place, re.escape(old), lambda _: new)

    # -------------------------------------------------------------- expressions

    def expression(self, node: ast.expr, place: Place) -> None:
        """Walk through an expression."""
        mutate = self.KINDS.get(type(node))
        if mutate is not None:
            mutate(self, node, place)
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.comprehension):
                for condition in inner.ifs:
                    self.negated(condition, place)
                for part in (inner.iter, *inner.ifs):
                    self.expression(part, place)
            elif isinstance(inner, ast.keyword) and inner.arg not in SILENT_ARGUMENTS:
                self.expression(inner.value, place)
            elif isinstance(inner, ast.expr) and not isinstance(node, ast.JoinedStr):
                self.expression(inner, place)

    def comparison(self, node: ast.Compare, place: Place) -> None:
        """``<`` for ``<=``, ``==`` for ``!=`` and so on."""
        for left, right in zip((node.left, *node.comparators), node.comparators, strict=False):
            self.between(left, right, place, COMPARISON.pattern.decode(), COMPARISONS.__getitem__)

    def junction(self, node: ast.BoolOp, place: Place) -> None:
        """``and`` for ``or``."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, place, rf"\b{old}\b", lambda _: new)

    def inversion(self, node: ast.UnaryOp, place: Place) -> None:
        """``x`` for ``not x``."""
        if isinstance(node.op, ast.Not):
            self.edit(node, place, self.begin(node), self.begin(node.operand), b"")

    def arithmetic(self, node: ast.BinOp, place: Place) -> None:
        """``+`` for ``-`` and so on, of numbers; what a module does with types is left alone."""
        texts = any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not texts and (place.function or not isinstance(node.op, ast.BitOr)):
            old, new = ARITHMETIC[type(node.op)]
            self.between(node.left, node.right, place, re.escape(old), lambda _: new)

    def constant(self, node: ast.Constant, place: Place) -> None:
        """Another truth value, or one more."""
        if isinstance(node.value, bool):
            self.edit(node, place, self.begin(node), self.end(node), str(not node.value).encode())
        elif isinstance(node.value, (int, float)):
            self.edit(node, place, self.begin(node), self.end(node), str(node.value + 1).encode())

    def choice(self, node: ast.IfExp, place: Place) -> None:
        """The other branch."""
        self.negated(node.test, place)

    def call(self, node: ast.Call, place: Place) -> None:
        """``any`` for ``all``, ``min`` for ``max``; the order of arrival instead of a sorted one."""
        if isinstance(node.func, ast.Name) and node.func.id in TWINS:
            self.edit(node.func, place, self.begin(node.func), self.end(node.func), TWINS[node.func.id].encode())
        if isinstance(node.func, ast.Name) and node.func.id == "sorted" and not node.keywords:
            self.edit(node.func, place, self.begin(node.func), self.end(node.func), b"list")

    KINDS: dict[type[ast.expr], Callable[..., None]] = {
        ast.Compare: comparison, ast.BoolOp: junction, ast.UnaryOp: inversion, ast.BinOp: arithmetic,
        ast.Constant: constant, ast.IfExp: choice, ast.Call: call,
    }  # fmt: skip

    # -------------------------------------------------------------- edits

    def negated(self, test: ast.expr, place: Place) -> None:
        """A condition turned round."""
        if not isinstance(test, ast.UnaryOp):
            self.edit(test, place, self.begin(test), self.end(test), b"(not (" + self.source(test) + b"))")

    def between(
        self, left: ast.expr, right: ast.expr, place: Place, pattern: str, new: Callable[[str], str]
    ) -> None:  # fmt: skip
        """The operator between two operands replaced."""
        start = self.end(left)
        found = re.search(pattern.encode(), self.data[start : self.begin(right)])
        if found is not None:
            text = " ".join(found[0].decode().split())
            self.edit(right, place, start + found.start(), start + found.end(), new(text).encode(), start)

    def edit(
        self, node: ast.expr | ast.stmt, place: Place, start: int, end: int, new: bytes, at: int | None = None
    ) -> None:  # fmt: skip
        """Note a mutation; it keeps its number of lines."""
        lost = self.data[start:end].count(b"\n") - new.count(b"\n")
        line = node.lineno if at is None else self.data[:at].count(b"\n") + 1
        edit = Edit(start, end, new + b"\n" * lost)
        self.found.append(Mutation(self.path, self.text, line, place.lines, place.function, place.names, edit))


def mutations(path: str, text: str) -> list[Mutation]:
    """All mutations of a module, in the order of their places."""
    walk = Walk(path, text)
    walk.body(ast.parse(text).body, Place())
    return sorted(walk.found, key=lambda each: (each.edit.start, each.edit.end, each.edit.new))


def called_at_import(text: str) -> set[str]:
    """The names of the functions that a module calls when it is imported, itself or by way of classes and defaults."""
    found: set[str] = set()
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, FUNCTIONS):
            left += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            continue
        if isinstance(node, ast.Call):
            found.add(getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
        left += ast.iter_child_nodes(node)
    return found


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line on which a function begins, its decorators with it."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _only_declares(statements: list[ast.stmt]) -> bool:
    """Whether a block does nothing but say that something is left to others."""
    rest = [each for each in statements if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    return not rest or (len(rest) == 1 and "NotImplementedError" in ast.dump(rest[0]))


def _is_silent(node: ast.stmt) -> bool:
    """Whether a statement is there for readers and type checkers alone."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    return bool(SILENT_NAMES.intersection(_bound(node)))


def _bound(node: ast.stmt) -> Iterator[str]:
    """The plain names that a statement binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
    if isinstance(node, ast.ClassDef):
        yield node.name


def _is_call(node: ast.stmt) -> bool:
    """Whether a statement is a call whose answer is not used."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Call) or (isinstance(value, ast.Await) and isinstance(value.value, ast.Call))


def _stores_in_object(node: ast.stmt) -> bool:
    """Whether a statement sets an attribute or an item."""
    return isinstance(node, ast.Assign) and all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
