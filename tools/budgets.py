"""Hold the source to its budgets, and print what exceeds them: `python -m tools.budgets [PROJECT]`.

Functions of the package have a median of at most 6 lines and a 90th percentile of at most 25, none more than 60; files
have at most 400 lines, cyclomatic complexity is at most 10. budget_exceptions.toml beside this file may let a file
grow to 600 lines or a function to a complexity of 15: at most ten entries, each with its reason.
"""

from __future__ import annotations

import ast
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from tools.measure import Function, functions
from tools.purity import impurities

TREES = ("src", "tools", "tests", "benchmarks")
EXCEPTIONS = "tools/budget_exceptions.toml"
MOST_EXCEPTIONS = 10
MEDIAN, NINTH_DECILE = 6, 25
FORBIDDEN_STEMS = {"util", "utils", "helper", "helpers", "common", "misc"}
# what is limited: (limit, limit for those with an exception)
LIMITS = {"function lines": (60, 60), "complexity": (10, 15), "file lines": (400, 600)}
TEST_FILE_LINES = 600  # tables of scenarios may be long


@dataclass(frozen=True)
class Size:
    """Something measured: what is limited, where, of which object (a function's name; empty: the file), how much."""

    limit: str
    path: PurePath
    line: int
    name: str
    value: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Answer what an exception must name to mean this."""
        return self.limit, self.path.as_posix(), self.name

    @property
    def where(self) -> str:
        """Spell the place as path:line, with the object's name if it isn't the file."""
        return f"{self.path}:{self.line}: {self.name}".rstrip(": ")


@dataclass(frozen=True)
class Source:
    """A module of the project: its path relative to the project, and its text."""

    path: PurePath
    text: str

    def sizes(self) -> Iterator[Size]:
        """Yield everything about this module that has a limit."""
        yield Size("file lines", self.path, 1, "", len(self.text.splitlines()))
        for function in self.functions():
            yield Size("function lines", self.path, function.line, function.name, function.lines)
            yield Size("complexity", self.path, function.line, function.name, function.complexity)

    def functions(self) -> Iterator[Function]:
        """Yield the module's functions."""
        return functions(ast.parse(self.text))

    def breaches(self) -> Iterator[str]:
        """Yield what this module does that no exception can allow."""
        for name in {self.path.stem, self.path.parent.name} & FORBIDDEN_STEMS:
            yield f"{self.path}:1: the name {name!r} says nothing about what is inside"
        for line, text in impurities(self.path, ast.parse(self.text)):
            yield f"{self.path}:{line}: {text}"


class Exceptions:
    """The sizes that may exceed their limit, with reasons, and which of them were needed."""

    def __init__(self, entries: list[dict[str, str]]) -> None:
        self.entries = {(e.get("limit", ""), e.get("path", ""), e.get("function", "")): e for e in entries}
        self.unused = dict(self.entries)
        self.count = len(entries)

    @classmethod
    def read(cls, path: Path) -> Exceptions:
        """Read the list; a missing file has no entries."""
        return cls(tomllib.loads(path.read_text()).get("exception", []) if path.exists() else [])

    def allow(self, size: Size) -> bool:
        """Tell whether an entry lets `size` exceed its limit, and remember that it was needed."""
        return self.unused.pop(size.key, None) is not None or size.key in self.entries

    def breaches(self) -> Iterator[str]:
        """Yield what is wrong with the list itself; to be asked last, as it names entries nothing needed."""
        if self.count > MOST_EXCEPTIONS:
            yield f"{EXCEPTIONS}: {self.count} exceptions, at most {MOST_EXCEPTIONS}"
        for key, entry in self.entries.items():
            if not entry.get("reason", "").strip():
                yield f"{EXCEPTIONS}: {' '.join(key)} lacks a reason"
        for key in self.unused:
            yield f"{EXCEPTIONS}: {' '.join(key).strip()} is needed no longer"


def sources(project: Path, trees: Iterable[str] = TREES) -> list[Source]:
    """Read every module of `trees`, in the order of their paths."""
    paths = [path for tree in trees for path in sorted((project / tree).rglob("*.py"))]
    return [Source(PurePath(path.relative_to(project)), path.read_text()) for path in paths]


def oversized(size: Size, exceptions: Exceptions) -> Iterator[str]:
    """Yield the complaint about `size`, if it exceeds what it is allowed."""
    limit, last = LIMITS[size.limit]
    if size.limit == "file lines" and size.path.parts[0] == "tests":
        limit = TEST_FILE_LINES
    if size.value > limit and not (size.value <= last and exceptions.allow(size)):
        yield f"{size.where}: {size.limit} {size.value}, at most {limit}"


def spread(lengths: list[int]) -> Iterator[str]:
    """Yield complaints about the package's functions as a whole."""
    if lengths and (median := statistics.median(lengths)) > MEDIAN:
        yield f"src: the median function has {median:g} lines, at most {MEDIAN}"
    if lengths and (decile := ninth_decile(lengths)) > NINTH_DECILE:
        yield f"src: every tenth function has more than {decile - 1} lines, at most {NINTH_DECILE}"


def ninth_decile(lengths: list[int]) -> int:
    """Answer the length that nine functions of ten don't exceed."""
    return sorted(lengths)[int(0.9 * len(lengths))]


def breaches(project: Path) -> list[str]:
    """Check the whole project; one line for each thing that exceeds a budget or breaks a rule."""
    modules = sources(project)
    exceptions = Exceptions.read(project / EXCEPTIONS)
    found = [text for module in modules for text in module.breaches()]
    found += [text for module in modules for size in module.sizes() for text in oversized(size, exceptions)]
    found += spread(package_lengths(project))
    return found + list(exceptions.breaches())


def package_lengths(project: Path) -> list[int]:
    """Answer the lengths of all functions of the package."""
    return [function.lines for module in sources(project, ["src"]) for function in module.functions()]


def summary(lengths: list[int]) -> str:
    """Say in one line how long the package's functions are."""
    if not lengths:
        return "no functions yet"
    middle, most = statistics.median(lengths), max(lengths)
    return f"{len(lengths)} functions: median {middle:g} lines, p90 {ninth_decile(lengths)}, longest {most}"


def main(arguments: list[str]) -> int:
    """Check the project at the path given (by default the one that holds this file); 1 if anything is wrong."""
    project = Path(arguments[0]) if arguments else Path(__file__).parent.parent
    found = breaches(project)
    print("\n".join([*found, f"budgets: {len(found)} over; {summary(package_lengths(project))}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
