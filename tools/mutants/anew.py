"""Run tests in a process in which one module has another text than its file: `python -m tools.mutants.anew ORDER`.

ORDER is a JSON file with the module's path, the text, and the tests in their order.  The name of a test that fails is
written in its place.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest


class InOrder:
    """A pytest plugin that runs the tests as they were named, and writes down the one that fails."""

    def __init__(self, tests: list[str], order: Path) -> None:
        self.order = order
        self.place = {name: number for number, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests."""
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=lambda i: self.place[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name the test that has failed."""
        if report.failed:
            self.order.write_text(json.dumps({"failed": report.nodeid}))


def main(order: Path) -> int:
    """Run the tests, up to the first that fails; pytest's exit code."""
    wanted = json.loads(order.read_text())
    given = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        path = loader.get_filename(name)
        if path != wanted["path"]:
            return given(loader, name)
        return compile(wanted["text"], path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    files = sorted({name.partition("::")[0] for name in wanted["tests"]})
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*options, *files], plugins=[InOrder(wanted["tests"], order)]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
