"""`make check` runs the tests that a change touches, and only those."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tools.touched import touched

GRAPH = {
    "stromboli.a": frozenset[str](),
    "stromboli.b": frozenset({"stromboli.a"}),
    "tests.support.world": frozenset({"stromboli.a"}),
    "tests.test_a": frozenset[str](),
    "tests.test_story": frozenset({"tests.support.world"}),
    "tests.test_b": frozenset({"stromboli.b"}),
    "tests.test_other": frozenset[str](),
    "tests.cli.test_words": frozenset[str](),
}
PATHS = {name: PurePath(name.replace(".", "/") + ".py") for name in GRAPH}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/stromboli/a.py", ["tests/test_a.py", "tests/test_story.py"]),
        ("src/stromboli/b.py", ["tests/test_b.py"]),
        ("tests/support/world.py", ["tests/test_story.py"]),
        ("tests/test_other.py", ["tests/test_other.py"]),
        ("docs/a.md", []),
        ("tests/cli/conftest.py", ["tests/cli/test_words.py"]),
        ("tests/cli/transcripts/plan.txt", ["tests/cli/test_words.py"]),
        ("tests/cli/words.json", ["tests/cli/test_words.py"]),
        ("tests/conftest.py", [str(path) for path in sorted(PATHS.values()) if path.name.startswith("test_")]),
    ],
)
def test_a_change_touches_the_tests_that_import_it_or_bear_its_name(changed: str, expected: list[str]) -> None:
    assert [str(path) for path in touched([PurePath(changed)], GRAPH, PATHS)] == expected
