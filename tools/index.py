"""The index of the documentation: as it stands, with a line for every decision."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
_LINES = re.compile(r"(?:^  - \[[^\n]*\]\(adr/[^\n]*\)\n)+", re.MULTILINE)


def page(docs: Path = DOCS) -> str:
    """The text of ``index.md`` with the list of decisions as the pages in ``adr/`` have it."""
    text = (docs / "index.md").read_text(encoding="utf-8")
    lines = [f"  - [{_title(file)}](adr/{file.name})\n" for file in sorted((docs / "adr").glob("*.md"))]
    return _LINES.sub(lambda _: "".join(lines), text, count=1)


def _title(file: Path) -> str:
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
