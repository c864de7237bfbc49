"""A pytest plugin that notes which keys of the catalogue the package itself tells while tests run.

``-p tests.support.told_lines --told-lines=FILE`` writes them as JSON: ``told``, and ``unknown``, those that the package
asks for and the catalogue lacks.  Every line is wanted, as by a log at its highest level; what tests tell by hand does
not count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import stromboli
from stromboli.narration import observe
from stromboli.narration.catalogue import LINES, METRIC_KEYS, WORK_KEYS
from stromboli.narration.observe import Columns, Observer

PACKAGE = str(Path(stromboli.__file__).parent)
KNOWN = {*LINES, *METRIC_KEYS, *WORK_KEYS}


class Noting:
    """Wants every line, and notes the keys that it hears."""

    def __init__(self) -> None:
        self.told: set[str] = set()

    def wants(self, key: str) -> bool:
        return key in LINES

    def tell(self, key: str, _fields: Mapping[str, object]) -> None:
        self.told.add(key)

    def tell_all(self, key: str, _count: int, _columns: Columns) -> None:
        self.told.add(key)

    def started(self, kind: str, name: str) -> None:
        pass

    def ended(self, kind: str, name: str) -> None:
        pass


NOTING = pytest.StashKey[tuple[Noting, set[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--told-lines", metavar="FILE", required=True, help="where to write which lines were told")


def pytest_configure(config: pytest.Config) -> None:
    noting, unknown, wanting = Noting(), set[str](), observe.wanting

    def noted(observer: Observer, key: str) -> list[Observer]:
        ends = wanting(observer, key)
        if not sys._getframe(2).f_code.co_filename.startswith(PACKAGE):  # the code that asked for the teller
            return ends
        if key not in KNOWN:
            unknown.add(key)
        return [*ends, noting] if noting.wants(key) else ends

    observe.wanting = noted
    config.stash[NOTING] = noting, unknown


def pytest_sessionfinish(session: pytest.Session) -> None:
    noting, unknown = session.config.stash[NOTING]
    found = {"told": sorted(noting.told), "unknown": sorted(unknown)}
    Path(session.config.getoption("told_lines")).write_text(json.dumps(found), encoding="utf-8")
