"""What the core may not touch: the process's surroundings, chance, the wall clock, foreign packages.

import-linter proves which modules are imported; this proves which names of the allowed ones are used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import PurePath

CORE = (
    "errors", "api", "model", "narration", "framework", "reservations", "allocation", "preemption", "fairness",
    "filters", "plugin", "queue_accounts", "plugins", "actions", "cycle", "cluster",
)  # fmt: skip
DECLARATIONS = ("api", "model")
MODEL_PACKAGES = {"numpy", "msgspec", "re2", "stromboli"}
FORBIDDEN = {
    "os.environ": "the configuration is an argument",
    "os.environb": "the configuration is an argument",
    "os.getenv": "the configuration is an argument",
    "os.urandom": "the seed is an argument",
    "uuid.uuid1": "identities come from uuid5",
    "uuid.uuid4": "identities come from uuid5",
    "datetime.datetime.now": "the clock is an argument",
    "datetime.datetime.utcnow": "the clock is an argument",
    "datetime.datetime.today": "the clock is an argument",
    "datetime.date.today": "the clock is an argument",
}


def impurities(path: PurePath, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of what the module at `path` (relative to the project) uses against its layer's rules."""
    folder = layer(path)
    if folder in CORE:
        yield from forbidden_names(tree)
    if folder in DECLARATIONS:
        yield from foreign_packages(tree)


def layer(path: PurePath) -> str:
    """Name the folder, or the module, right under src/stromboli that holds `path`; empty outside of it."""
    return PurePath(path.parts[2]).stem if path.parts[:2] == ("src", "stromboli") else ""


def forbidden_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for every use of a name in FORBIDDEN, whatever it was imported as."""
    bound = imported_names(tree)
    for node in ast.walk(tree):
        for line, name in used_names(node, bound):
            if name in FORBIDDEN:
                yield line, f"uses {name}: {FORBIDDEN[name]}"


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Map each name that an import binds to the full dotted name it stands for."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= dict(map(bound_module, node.names))
        elif isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return bound


def bound_module(alias: ast.alias) -> tuple[str, str]:
    """Answer (name, module) of `import a.b`, which binds a, or of `import a.b as c`, which binds a.b to c."""
    package = alias.name.partition(".")[0]
    return (alias.asname, alias.name) if alias.asname else (package, package)


def used_names(node: ast.AST, bound: dict[str, str]) -> list[tuple[int, str]]:
    """Answer (line, full dotted name) of what this one node imports or reads."""
    if isinstance(node, ast.ImportFrom):
        return [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    if isinstance(node, ast.Attribute):
        return [(node.lineno, dotted(node, bound))]
    return []


def dotted(node: ast.expr, bound: dict[str, str]) -> str:
    """Spell an attribute chain with its first name resolved; empty if it doesn't start at an import."""
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, bound)
        return owner and f"{owner}.{node.attr}"
    return bound.get(node.id, "") if isinstance(node, ast.Name) else ""


def foreign_packages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for every import from outside the standard library and MODEL_PACKAGES."""
    for node in ast.walk(tree):
        for line, name in imported_modules(node):
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names | MODEL_PACKAGES:
                yield line, f"imports {package}: the model knows the standard library, numpy, msgspec and re2 only"


def imported_modules(node: ast.AST) -> list[tuple[int, str]]:
    """Answer (line, module) of what an import statement names."""
    if isinstance(node, ast.Import):
        return [(node.lineno, alias.name) for alias in node.names]
    return [(node.lineno, node.module)] if isinstance(node, ast.ImportFrom) and node.module else []
