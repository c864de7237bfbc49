"""Print the figures of the package's structure, one a line: `python -m tools.measure [PROJECT] [--worst N]`.

With --worst each figure is followed by the N places that make it what it is.
"""

from __future__ import annotations

import argparse
import ast
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from tools.functions import Function, functions
from tools.near_duplicates import near_duplicates
from tools.structure import circles, folders, import_graph, module_name, public_names

SESSION = ".session.Session"


@dataclass(frozen=True)
class Figure:
    """A figure: its name, its value as text, and the places behind it, the worst first."""

    name: str
    value: str
    places: Sequence[str] = ()


@dataclass(frozen=True)
class Package:
    """The modules under src/ of a project: text by path, relative to the project."""

    texts: dict[PurePath, str]

    @classmethod
    def read(cls, project: Path) -> Package:
        """Read the package of the project at a path."""
        paths = sorted((project / "src").rglob("*.py"))
        return cls({PurePath(path.relative_to(project)): path.read_text(encoding="utf-8") for path in paths})

    @property
    def trees(self) -> dict[PurePath, ast.Module]:
        """The modules' syntax trees by path."""
        return {path: ast.parse(text) for path, text in self.texts.items()}


def figures(package: Package) -> Iterator[Figure]:
    """Yield every figure."""
    trees = package.trees
    yield from sizes(package)
    yield from of_functions(trees)
    yield from of_folders(package)
    yield of_circles(trees)
    yield from of_classes(trees)
    yield of_duplicates(package)


def sizes(package: Package) -> Iterator[Figure]:
    """Yield how many files and lines there are, by folder, and how long files are."""
    lengths = {path: text.count("\n") for path, text in package.texts.items()}
    rooms: Counter[str] = Counter()
    for path, length in lengths.items():
        rooms["/".join(path.parts[2:3])] += length
    yield Figure("files", f"{len(lengths):,}")
    places = [f"{lines:,}  {room}" for room, lines in rooms.most_common()]
    yield Figure("lines", f"{sum(lengths.values()):,}", places)
    longest = sorted(lengths.items(), key=lambda item: (-item[1], item[0]))
    yield Figure("longest file", str(longest[0][1]), [f"{lines}  {path}" for path, lines in longest])


def of_functions(trees: dict[PurePath, ast.Module]) -> Iterator[Figure]:
    """Yield the sizes and complexities of functions."""
    every = [(path, function) for path, tree in trees.items() for function in functions(tree)]
    for name, measure in (("function lines", lines_of), ("complexity", complexity_of)):
        values = sorted(measure(function) for _, function in every)
        worst = sorted(every, key=lambda item: -measure(item[1]))
        places = [f"{measure(function)}  {path}:{function.line} {function.name}" for path, function in worst]
        ninth = values[int(0.9 * len(values))]
        yield Figure(f"{name}: median/p90/max", f"{statistics.median(values):g}/{ninth}/{values[-1]}", places)
    above = sum(function.complexity > 12 for _, function in every)
    yield Figure("functions of complexity above 12", str(above))


def lines_of(function: Function) -> int:
    """Answer a function's lines."""
    return function.lines


def complexity_of(function: Function) -> int:
    """Answer a function's complexity."""
    return function.complexity


def of_folders(package: Package) -> Iterator[Figure]:
    """Yield how many folders hold modules, and how many the fullest."""
    counts = folders(package.texts)
    places = [f"{count}  {folder}" for folder, count in counts.most_common()]
    yield Figure("folders with modules", str(len(counts)))
    yield Figure("modules in the largest folder", str(max(counts.values())), places)


def of_circles(trees: dict[PurePath, ast.Module]) -> Figure:
    """Answer the size of the largest circle of imports."""
    found = circles(import_graph({module_name(path): tree for path, tree in trees.items()}))
    return Figure(
        "largest import circle", str(max(map(len, found), default=0)), [f"{len(c)}  {' '.join(c)}" for c in found]
    )


def of_classes(trees: dict[PurePath, ast.Module]) -> Iterator[Figure]:
    """Yield how many public names classes have, and Session among them."""
    named = {module_name(path): tree for path, tree in trees.items()}
    offered = sorted(public_names(named).items(), key=lambda item: -len(item[1]))
    places = [f"{len(names)}  {name}" for name, names in offered]
    yield Figure("public names of the largest class", str(len(offered[0][1])), places)
    session = next((sorted(names) for name, names in offered if name.endswith(SESSION)), None)
    if session:
        yield Figure("public names of Session", str(len(session)), session)


def of_duplicates(package: Package) -> Figure:
    """Answer which part of the code stands twice."""
    twins, total = near_duplicates(package.texts.items())
    places = Counter(str(line.path) for line in twins).most_common()
    return Figure("near-duplicates", f"{len(twins) / total:.1%}", [f"{count}  {path}" for path, count in places])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="show N places behind each figure")
    options = parser.parse_args()
    for figure in figures(Package.read(options.project)):
        print(f"{figure.name + ' ':.<45} {figure.value}")
        for place in figure.places[: options.worst]:
            print(f"    {place}")


if __name__ == "__main__":
    main()
