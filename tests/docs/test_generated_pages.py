"""Pages that list what the code offers say what it offers now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import PAGES, Page, chart_pages

PROJECT = Path(__file__).parents[2]
OF_TABLES = [page for page in PAGES if page.generator.startswith("stromboli.")]


@pytest.mark.parametrize("page", [*OF_TABLES, *chart_pages()], ids=lambda page: page.path)
def test_a_generated_page_is_what_its_table_makes(page: Page) -> None:
    assert (PROJECT / page.path).read_text(encoding="utf-8") == page.text()
