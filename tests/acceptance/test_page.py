"""Every row has a test or a reason, and the page finds them by reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.later import LATER, PARTLY
from tools import acceptance

TESTS = acceptance.rows_with_tests()
ROWS = [statement.row for statement in acceptance.statements()]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_test_or_a_reason(row: str) -> None:
    assert bool(TESTS.get(row)) != (row in LATER)


def test_reasons_are_for_rows_that_exist_and_what_is_partly_open_has_a_test() -> None:
    assert {*LATER, *PARTLY} <= set(ROWS)
    assert all(TESTS[row] for row in PARTLY)


def test_the_checklist_is_complete() -> None:
    counts = [sum(row.startswith(chapter) for row in ROWS) for chapter in acceptance.CHAPTERS]
    assert counts == [46, 40, 65, 68, 38]


def test_the_named_cases_of_the_fast_path_exist() -> None:
    """Nine of them, and the fast path itself."""
    assert len(TESTS["S4-37"]) == 1 + 9


SOURCE = '''
TABLE = [pytest.param(1, id="S0-30-first"), pytest.param(2, id="other")]
LONGER: list = [*TABLE, pytest.param(3, id="S1-07 second")]

@pytest.mark.parametrize("one", LONGER)
def test_of_a_table(one): ...

@pytest.mark.parametrize("one", [1, 2], ids=["S3-10-a", "b"])
def test_S0_11_S0_12_of_a_name(one):
    """S1-20: and a docstring."""

class TestOthers:
    def test_of_a_comment(self):  # S0-01
        "S9"

def helper_S0_05(): ...
'''


def test_rows_are_found_by_reading() -> None:
    assert dict(acceptance.rows_of_module(SOURCE)) == {
        "test_of_a_table": ["S0-30", "S1-07"],
        "test_S0_11_S0_12_of_a_name": ["S0-11", "S0-12", "S1-20", "S3-10"],
        "test_of_a_comment": ["S0-01"],
    }


def test_without_the_checklist_the_page_itself_is_read(tmp_path: Path) -> None:
    text = acceptance.page()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/acceptance.md").write_text(text, encoding="utf-8")
    assert acceptance.statements(tmp_path) == acceptance.statements()
