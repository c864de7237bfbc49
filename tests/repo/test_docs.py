"""Generated pages are written, and stale ones found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import Page, main

PAGE = Page("docs/license.md", "tests.repo.generated_page:text")


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "text", lambda page: f"made by {page.generator}\n")


@pytest.mark.usefixtures("generator")
def test_check_finds_missing_and_stale_pages_and_writing_mends_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], [PAGE], tmp_path) == 1
    assert main([], [PAGE], tmp_path) == 0
    assert main(["--check"], [PAGE], tmp_path) == 0
    (tmp_path / PAGE.path).write_text("changed by hand\n")
    assert main(["--check"], [PAGE], tmp_path) == 1
    assert "docs/license.md: stale" in capsys.readouterr().out


def test_a_generator_is_named_by_module_and_function() -> None:
    assert Page("docs/x.md", "platform:python_implementation").text() == "CPython"
