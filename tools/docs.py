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
    """A generated page: its path relative to the project, and its generator as "module:function" or, for one of
    several files, "module:function:file".
    """

    path: str
    generator: str

    def text(self) -> str:
        """Make the page's text."""
        module, function, *arguments = self.generator.split(":")
        generate: Callable[..., str] = getattr(importlib.import_module(module), function)
        return generate(*arguments)


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


CHART = "charts/volcano"
"""Where the chart of Helm lies, which is generated, too."""


def chart_pages() -> tuple[Page, ...]:
    """The files of the chart."""
    from stromboli.live.installation.chart import chart

    return tuple(Page(f"{CHART}/{name}", f"stromboli.live.installation.chart:file:{name}") for name in chart())


def left_over(pages: Iterable[Page], project: Path) -> list[Path]:
    """Answer files of the chart that nothing generates any more: Helm would go on to apply them."""
    known = {project / page.path for page in pages}
    return sorted(path for path in (project / CHART).rglob("*") if path.is_file() and path not in known)


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


def main(arguments: list[str], pages: Iterable[Page] = (), project: Path = PROJECT) -> int:
    """Write the stale pages, or with --check name them and answer 1 if there are any."""
    pages = list(pages) or [*PAGES, *chart_pages()]
    outdated, extra = stale(pages, project), left_over(pages, project)
    if "--check" not in arguments:
        write(outdated, project)
        for path in extra:
            path.unlink()
        return 0
    for page in outdated:
        print(f"{page.path}: stale; `make docs` rewrites it from {page.generator}")
    for path in extra:
        print(f"{path.relative_to(project)}: left over; `make docs` removes it")
    return 1 if outdated or extra else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
