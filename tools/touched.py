"""Print the test modules that a change touches: `python -m tools.touched [--base REVISION]`.

The change is what differs from the merge base with the revision (default: main, or the last commit while on it),
uncommitted and new files included.  A changed test module counts itself; a changed module of the package or of the
tests' own support counts the test modules that import it, and those named after it.  Whatever else changes in a folder
of tests (conftest.py, recorded data) counts all test modules of that folder and below, or of the nearest folder above
that has any.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

from tools.structure import Graph, import_graph, module_name

PROJECT = Path(__file__).parent.parent
TREES = ("src", "tests")
SUPPORT = "tests."


def touched(changed: Iterable[PurePath], graph: Graph, paths: Mapping[str, PurePath]) -> list[PurePath]:
    """Answer the test modules to run for `changed` files, sorted; `paths` are by module name."""
    files = list(changed)
    modules = {module_name(path) for path in files if path.suffix == ".py"}
    tests = {name: path for name, path in paths.items() if is_test(path)}
    folders = {parent for path in tests.values() for parent in path.parents}
    shared = {
        next(parent for parent in path.parents if parent in folders)
        for path in files
        if path.parts[0] == "tests" and is_shared(path)
    }
    return sorted(
        path for name, path in tests.items() if concerns(name, modules, graph) or not shared.isdisjoint(path.parents)
    )


def is_shared(path: PurePath) -> bool:
    """Tell whether the tests of a folder use a file without importing it."""
    return path.suffix != ".py" or path.name == "conftest.py"


def is_test(path: PurePath) -> bool:
    """Tell whether pytest collects a module."""
    return path.name.startswith("test_")


def concerns(test: str, modules: set[str], graph: Graph) -> bool:
    """Tell whether a test module is changed, named after a changed module, or imports one (or support that does)."""
    named = {stem(module) for module in modules if not module.startswith(SUPPORT)}
    return test in modules or stem(test).removeprefix("test_") in named or not modules.isdisjoint(near(test, graph))


def near(test: str, graph: Graph) -> set[str]:
    """Name what a test module imports, itself or through other modules of the tests."""
    found: set[str] = set()
    waiting = [test]
    while waiting:
        for name in graph.get(waiting.pop(), frozenset()) - found:
            found.add(name)
            if name.startswith(SUPPORT):
                waiting.append(name)
    return found


def stem(module: str) -> str:
    """Answer the last part of a dotted name."""
    return module.rpartition(".")[2]


def changed_files(base: str) -> list[PurePath]:
    """Name what differs from the merge base of HEAD and `base`, relative to the project."""
    start = git("merge-base", "HEAD", base)
    if start == git("rev-parse", "HEAD"):
        start = "HEAD" if git("status", "--porcelain") else "HEAD~1"
    names = git("diff", "--name-only", start).split() + git("ls-files", "--others", "--exclude-standard").split()
    return [PurePath(name) for name in names]


def git(*arguments: str) -> str:
    """Answer what a git command prints, without surrounding blanks; CalledProcessError if it fails."""
    return subprocess.run(["git", *arguments], cwd=PROJECT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Print the paths, one a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="main")
    paths = [PurePath(path.relative_to(PROJECT)) for tree in TREES for path in sorted((PROJECT / tree).rglob("*.py"))]
    trees = {module_name(path): ast.parse((PROJECT / path).read_text(encoding="utf-8")) for path in paths}
    by_name = {module_name(path): path for path in paths}
    for path in touched(changed_files(parser.parse_args().base), import_graph(trees), by_name):
        print(path)


if __name__ == "__main__":
    main()
