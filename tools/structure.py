"""How modules hang together: which import which, what lies in a folder, what a class offers; read from the text.

A module is known by its dotted name, as `sources` of the project give it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

Graph = Mapping[str, frozenset[str]]
"""By module the modules of the same project that it imports, for types alone included."""


def module_name(path: PurePath) -> str:
    """Spell the dotted name of the module at `path`, which may begin with src/."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts[0] == "src" :]).removesuffix(".__init__")


def import_graph(trees: Mapping[str, ast.Module]) -> Graph:
    """Answer which modules of `trees`, which hold each module by its name, import which others."""
    return {name: frozenset(imports(tree, trees.keys()) - {name}) for name, tree in trees.items()}


def imports(tree: ast.Module, known: Iterable[str]) -> set[str]:
    """Name those of the `known` modules that a module imports anywhere: inside functions and for types, too."""
    named = (name for node in ast.walk(tree) for name in imported(node))
    return set(known) & set(named)


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the names an import statement may mean: of modules, and of what it takes from them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        parts = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (node.module, *parts)


def test_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each test module that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found = {name for name in imported(node) if is_test_module(name)}
            yield from ((node.lineno, name) for name in sorted(found))


def is_test_module(name: str) -> bool:
    """Tell whether a dotted name is that of a module of tests."""
    parts = name.split(".")
    return parts[0] in ("tests", "e2e") and parts[-1].startswith("test_")


def circles(graph: Graph) -> list[list[str]]:
    """Answer the groups of modules that reach each other by imports, the largest first, each sorted."""
    reached = {name: reach(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted((list(group) for group in groups if group), key=lambda group: (-len(group), group))


def reach(graph: Graph, start: str) -> set[str]:
    """Name every module that `start` imports, directly or through others; itself only if it is in a circle."""
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def folders(paths: Iterable[PurePath]) -> Counter[PurePath]:
    """Count the modules that lie right in each folder; a package's own `__init__.py` is none of them."""
    return Counter(path.parent for path in paths if path.stem != "__init__")


def public_names(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Name by class (as module.Class) what it offers: methods, properties, attributes assigned in it or its methods.

    Names that begin with an underscore aren't offered.  What comes from bases among `trees` is included.
    """
    every = {
        f"{module}.{node.name}": node
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    classes = {node.name: node for node in every.values()}
    return {name: offered(node, classes) for name, node in every.items()}


def offered(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """Name the public attributes of one class and of its bases among `classes`."""
    own = {name for child in ast.walk(node) for name in bound(child) if not name.startswith("_")}
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return own.union(*(offered(classes[base], classes) for base in bases if base in classes and base != node.name))


def bound(node: ast.AST) -> Iterator[str]:
    """Yield the attribute names that a statement of a class binds."""
    if isinstance(node, ast.ClassDef):
        yield from (name for child in node.body for name in declared(child))
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
        yield node.attr


def declared(node: ast.stmt) -> Iterator[str]:
    """Yield the names that one statement in the body of a class declares."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def is_self(node: ast.expr) -> bool:
    """Tell whether an expression is the name self."""
    return isinstance(node, ast.Name) and node.id == "self"
