"""What has a limit in the project: files, functions, classes, folders, circles of imports, code that stands twice."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from tools.functions import Function, functions
from tools.near_duplicates import near_duplicates
from tools.structure import circles, folders, import_graph, module_name, public_names


@dataclass(frozen=True)
class Size:
    """Something measured: what is limited, where, of which object (empty: the file or folder), how much."""

    limit: str
    path: PurePath
    line: int
    name: str
    value: int

    @property
    def key(self) -> tuple[str, str]:
        """Answer what an exception must name to mean this: the limit, and the path with the object's name."""
        return self.limit, f"{self.path.as_posix()} {self.name}".strip()

    @property
    def where(self) -> str:
        """Spell the place as path:line, with the object's name if there is one."""
        place = f"{self.path}:{self.line}" if self.line else self.path.as_posix()
        return f"{place}: {self.name}".rstrip(": ")


@dataclass(frozen=True)
class Source:
    """A module of the project: its path relative to the project, and its text."""

    path: PurePath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The module's syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> Sequence[Function]:
        """The module's functions, in source order."""
        return [*functions(self.tree)]

    @property
    def of_package(self) -> bool:
        """Tell whether the module is part of the package."""
        return self.path.parts[0] == "src"

    def sizes(self) -> Iterator[Size]:
        """Yield what has a limit in this module alone."""
        yield Size("file lines", self.path, 1, "", len(self.text.splitlines()))
        for function in self.functions:
            yield Size("function lines", self.path, function.line, function.name, function.lines)
            if self.of_package:
                yield Size("complexity", self.path, function.line, function.name, function.complexity)


def read_sources(project: Path, trees: Iterable[str]) -> list[Source]:
    """Read every module of `trees`, in the order of their paths."""
    paths = [path for tree in trees for path in sorted((project / tree).rglob("*.py"))]
    return [Source(PurePath(path.relative_to(project)), path.read_text(encoding="utf-8")) for path in paths]


def all_sizes(sources: Sequence[Source]) -> Iterator[Size]:
    """Yield everything that has a limit: in each module, in folders, and in the package as a whole."""
    package = [source for source in sources if source.of_package]
    for source in sources:
        yield from source.sizes()
    for folder, count in sorted(folders(source.path for source in sources).items()):
        yield Size("modules a folder", folder, 0, "", count)
    yield from class_sizes(package)
    yield from circle_sizes(package)
    twins, total = near_duplicates((source.path, source.text) for source in package)
    yield Size("near-duplicates in a thousand lines", PurePath("src"), 0, "", 1000 * len(twins) // max(total, 1))


def class_sizes(package: Iterable[Source]) -> Iterator[Size]:
    """Yield how many public names each class offers."""
    by_name = {module_name(source.path): source for source in package}
    offered = public_names({name: source.tree for name, source in by_name.items()})
    for name, names in offered.items():
        module, _, own = name.rpartition(".")
        yield Size("public names a class", by_name[module].path, 0, own, len(names))


def circle_sizes(package: Iterable[Source]) -> Iterator[Size]:
    """Yield how many files each circle of imports has; none has a place of its own."""
    graph = import_graph({module_name(source.path): source.tree for source in package})
    for circle in circles(graph):
        yield Size("files a circle of imports", PurePath("src"), 0, "", len(circle))
