"""Algorithms name what happens, and classes of events report it: no algorithm asks what an observer wants."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/stromboli"
ALGORITHMS = [
    path
    for folder in ("allocation", "preemption")
    for path in sorted((SOURCE / folder).rglob("*.py"))
    if not path.name.endswith("_events.py")
]
ASKING = {"tells", "tells_all", "wants"}


def asked(source: str) -> list[str]:
    """What of an observer's wishes a module asks for."""
    return [
        node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and node.attr in ASKING
    ]


@pytest.mark.parametrize("path", ALGORITHMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_algorithm_does_not_ask_what_an_observer_wants(path: Path) -> None:
    assert asked(path.read_text(encoding="utf-8")) == []


def test_what_an_observer_wants_is_found_where_it_is_asked() -> None:
    assert asked((SOURCE / "preemption/search_events.py").read_text(encoding="utf-8"))
    assert asked("if say := session.tells('binding'):\n    say()\n") == ["tells"]
