"""What the hand-written pages show is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=page_id)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named
    assert named <= targets


def test_the_index_lists_every_decision_by_its_title() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    found = re.findall(r"^  - \[(.+)\]\(adr/(.+\.md)\)$", index, re.MULTILINE)
    pages = sorted((ROOT / "docs/adr").glob("*.md"))
    titles = [page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in pages]
    assert found == list(zip(titles, [page.name for page in pages], strict=True))


def test_no_table_of_the_command_line_lists_an_option_twice() -> None:
    tables = re.split(r"\n(?!\|)", (ROOT / "docs/cli.md").read_text(encoding="utf-8"))
    for table in tables:
        options = re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)
        assert len(options) == len(set(options)), options
