"""The pages that list what the code offers say what it offers now.

Pages about the tests themselves are compared by lint, as they say nothing of the code; the chart has tests of its own.
"""

from __future__ import annotations

from tools.docs import PAGES, PROJECT, stale

OF_THE_CODE = [page for page in PAGES if page.generator.startswith("stromboli.")]


def test_generated_pages_are_what_their_tables_make() -> None:
    assert len(OF_THE_CODE) == 5
    assert [page.path for page in stale(OF_THE_CODE, PROJECT)] == []
