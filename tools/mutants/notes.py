"""Modules whose functions note each statement that they execute, in a list that all of them share.

A tracer is called for each line, which makes a test take two or three times as long; to note a statement sets an item
of a list.  The notes are compiled in between the statements, so they are of modules that are imported while ``noting``
lasts.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from itertools import compress
from pathlib import Path
from types import CodeType

from tools.mutants.mutations import FUNCTIONS

NAME = "__noted_statements__"
"""Under this name all modules find the list."""


class Notes:
    """Which statements were executed since the notes were last taken, and the files whose statements are noted."""

    def __init__(self) -> None:
        self.noted: list[int] = []
        self.places: list[tuple[str, int]] = []
        self.files: set[str] = set()

    def place(self, path: str, line: int) -> int:
        """A new item of the list, for the statement that begins in this line."""
        self.places.append((path, line))
        self.noted.append(0)
        return len(self.places) - 1

    def taken(self) -> dict[str, int]:
        """The lines that statements executed by now begin in, as bits of a number, by path; begins anew."""
        lines: dict[str, int] = {}
        for path, line in compress(self.places, self.noted):
            lines[path] = lines.get(path, 0) | 1 << line
        self.noted[:] = [0] * len(self.noted)
        return lines


class _WithNotes(ast.NodeTransformer):
    """Puts a note before each statement of each function."""

    def __init__(self, notes: Notes, path: str) -> None:
        self.notes, self.path, self.inside = notes, path, False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        was, self.inside = self.inside, self.inside or isinstance(node, FUNCTIONS)
        super().generic_visit(node)
        if self.inside:
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    setattr(node, field, list(self.noted(block)))
        self.inside = was
        return node

    def noted(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        """The block, with a note before each statement; a docstring stays the first one."""
        for statement in block:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                place = self.notes.place(self.path, statement.lineno)
                (note,) = ast.parse(f"{NAME}[{place}] = 1").body
                for each in ast.walk(note):
                    ast.copy_location(each, statement)
                yield note
            yield statement


def compiled(text: str, file: str, notes: Notes, path: str) -> CodeType:
    """The code of a module that notes its statements under ``path``."""
    return compile(_WithNotes(notes, path).visit(ast.parse(text)), file, "exec", dont_inherit=True)


@contextmanager
def noting(notes: Notes, project: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Let modules of the project, given by path and text, note their statements if they are imported in this block."""
    given = SourceFileLoader.get_code
    paths = {str(project / path): path for path in texts}

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        file = loader.get_filename(name)
        path = paths.get(file)
        if path is None:
            return given(loader, name)
        notes.files.add(file)
        return compiled(texts[path], file, notes, path)

    setattr(builtins, NAME, notes.noted)
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        SourceFileLoader.get_code = given  # type: ignore[method-assign]
