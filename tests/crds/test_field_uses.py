"""The page of fields leaves none out, and the tests that it names exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stromboli.api.kinds import KINDS
from tests.crds.field_uses import ELSEWHERE, USES
from tools.fields import PAGED, fields_of, use_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", PAGED)
def test_every_field_is_acted_on_by_a_test_or_has_a_reason(kind: str) -> None:
    paths = {field.path for field in fields_of(KINDS[kind])}
    assert [path for path in sorted(paths) if use_of(kind, path) == ("", "")] == []
    assert (USES[kind].keys() | ELSEWHERE[kind].keys()) - paths == set(), "no row is about a field that is not there"
    assert USES[kind].keys() & ELSEWHERE[kind].keys() == set()


def test_the_tests_exist() -> None:
    wanted = {test for uses in USES.values() for test in uses.values()}
    for file in {test.partition("::")[0] for test in wanted}:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {test.partition("::")[2] for test in wanted if test.startswith(f"{file}::")} <= names, file
