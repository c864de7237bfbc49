"""Groups, versions, keys of annotations and the words of our kinds stand once in the source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.kinds import ALL, KINDS
from stromboli.crds import admission
from stromboli.crds.schema import schema_of
from tests.support.admission_cases import WORLD

SOURCE = Path(__file__).parents[2] / "src" / "stromboli"
GROUPS = "|".join(sorted({re.escape(kind.group) for kind in ALL}))
PLACE = re.compile(rf"({GROUPS})(/v[0-9][a-z0-9]*)?")
KEY = re.compile(r"([a-z]+\.)?volcano\.sh/[A-Za-z][A-Za-z0-9-]*")

TABLES_OF_WORDS = {"journal/known_keys.py", "journal/pseudonyms.py"}
"""What may not be hidden in records, by its form and not by what it means."""
ELSEWHERE_TOO = {
    "*", "Allow", "Completed", "Failed", "False", "HyperNode", "Node", "Pending", "PodFailed", "Running",
    "Terminating", "True", "Unknown", "delete", "hard", "none", "soft",
}  # fmt: skip
"""Words of our kinds that mean something else, too: phases of pods, kinds, verbs, modes of sharding."""


def literals(file: Path) -> Iterator[str]:
    """The texts that a module states, those in its docstrings left out."""
    tree = ast.parse(file.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


TEXTS = {file: list(literals(file)) for file in sorted(SOURCE.rglob("*.py"))}


def places(found: re.Pattern[str] | set[str], but: set[str]) -> dict[str, list[str]]:
    """Where texts that are sought stand, by text; ``but`` some files."""
    where: dict[str, list[str]] = defaultdict(list)
    for file, texts in TEXTS.items():
        name = file.relative_to(SOURCE).as_posix()
        for text in texts if name not in but else ():
            if text in found if isinstance(found, set) else found.fullmatch(text):
                where[text].append(name)
    return where


def enums(schema: dict[str, Any]) -> Iterator[str]:
    """The words that a schema allows, wherever."""
    yield from schema.get("enum", ())
    for inner in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from enums(inner)


def test_groups_and_versions_stand_in_the_table_of_kinds() -> None:
    assert {name for names in places(PLACE, TABLES_OF_WORDS).values() for name in names} == {"api/kinds.py"}


def test_keys_of_annotations_and_labels_stand_once() -> None:
    assert {key: names for key, names in places(KEY, set()).items() if len(names) > 1} == {}


def test_words_of_our_kinds_stand_in_their_declarations() -> None:
    words = {word for kind in ALL for word in enums(schema_of(kind))}
    found = places(words, TABLES_OF_WORDS)
    assert found.keys() == words
    assert {word for word, names in found.items() if len(names) > 1} == ELSEWHERE_TOO
    assert {word: names for word, names in found.items() if not names[0].startswith("api/")} == {}


@pytest.mark.parametrize(("kind", "given"), [("Job", {"tasks": [{"replicas": 2}]}), ("Queue", {})])
def test_admission_fills_in_what_the_schema_does(kind: str, given: dict[str, Any]) -> None:
    """Both fill the same fields with the same values: which one comes first makes no difference."""
    spec: Any = schema_of(KINDS[kind])["properties"]["spec"]["properties"]  # type: ignore[index]
    stated = {name: field["default"] for name, field in spec.items() if "default" in field}
    whole: Any = admission.default(KINDS[kind].resource, {"metadata": {"name": "x"}, "spec": given}, WORLD)
    filled = {name: value for name, value in whole["spec"].items() if name in stated}
    assert filled == {name: value for name, value in stated.items() if name in filled}
    assert filled
