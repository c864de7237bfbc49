"""The pages that the code itself generates say what it offers now; lint compares those that `tools` makes, too."""

from __future__ import annotations

import pytest

from tools.docs import PAGES, PROJECT, Page, stale

OF_THE_CODE = [page for page in PAGES if page.generator.startswith("stromboli.")]


@pytest.mark.parametrize("page", OF_THE_CODE, ids=lambda page: page.path)
def test_a_generated_page_is_what_its_table_makes(page: Page) -> None:
    assert stale([page], PROJECT) == []


def test_tables_of_differences_and_log_lines_are_among_them() -> None:
    assert {"docs/compatibility.md", "docs/logs.md"} <= {page.path for page in OF_THE_CODE}
