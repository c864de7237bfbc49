"""Write the pages of docs/ that derive from tables in the code; with --check, tell which are stale.

A page is a row of PAGES: its path, and the function that answers its whole text.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Page:
    """A generated page: its path relative to the project, and its generator as "module:function"."""

    path: str
    generator: str

    def text(self) -> str:
        """Make the page's text."""
        module, _, function = self.generator.partition(":")
        generate: Callable[[], str] = getattr(importlib.import_module(module), function)
        return generate()


PAGES: tuple[Page, ...] = (
    Page("docs/extension-points.md", "stromboli.framework.extension.points_page:generate_page"),
    Page("docs/compatibility.md", "stromboli.framework.config.compat:generate_page"),
    Page("docs/logs.md", "stromboli.narration.catalogue:generate_page"),
    Page("docs/metrics.md", "stromboli.metrics.prometheus:generate_page"),
    Page("docs/operators/alerts.md", "stromboli.metrics.boards.alerts:page"),
    Page("docs/acceptance.md", "tools.acceptance:page"),
    Page("docs/fields.md", "tools.fields:page"),
    Page("docs/integrations.md", "tools.integrations:page"),
    Page("docs/index.md", "tools.index:page"),
    Page("docs/fidelity.md", "tools.fidelity:page"),
)


def stale(pages: Iterable[Page], project: Path) -> list[Page]:
    """Answer the pages whose file is missing or differs from what their generator says now."""
    return [page for page in pages if not is_current(project / page.path, page.text())]


def is_current(path: Path, text: str) -> bool:
    """Tell whether a file holds exactly this text."""
    return path.is_file() and path.read_text(encoding="utf-8") == text


def write(pages: Iterable[Page], project: Path) -> None:
    """Write the pages, and name each."""
    for page in pages:
        (project / page.path).parent.mkdir(parents=True, exist_ok=True)
        (project / page.path).write_text(page.text(), encoding="utf-8")
        print(f"{page.path}: written")


def main(arguments: list[str], pages: Iterable[Page] = PAGES, project: Path = PROJECT) -> int:
    """Write the stale pages, or with --check name them and answer 1 if there are any."""
    outdated = stale(pages, project)
    if "--check" not in arguments:
        write(outdated, project)
        return 0
    for page in outdated:
        print(f"{page.path}: stale; `make docs` writes it anew from {page.generator}")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
