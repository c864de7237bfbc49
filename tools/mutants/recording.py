"""Which tests execute which lines, and how long each takes: recorded once, and brought up to date as files change."""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path

import pytest

from tools.mutants.mutations import Mutation
from tools.mutants.notes import Notes

KEEP_EVERY = 120.0
"""Seconds after which what was recorded is written."""


@dataclass
class Ran:
    """One test: its CPU seconds, a digest of its file, and the lines it executed as bits of a number, by path."""

    seconds: float
    digest: str
    lines: dict[str, int]


@dataclass
class Record:
    """What was recorded of all tests, and the source texts that the line numbers are of."""

    tests: dict[str, Ran] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a record; an empty one where none was written."""
        if not path.exists():
            return cls()
        found = json.loads(gzip.decompress(path.read_bytes()))
        tests = {
            name: Ran(ran["seconds"], ran["digest"], {file: int(bits, 16) for file, bits in ran["lines"].items()})
            for name, ran in found["tests"].items()
        }
        return cls(tests, found["texts"])

    def write(self, path: Path) -> None:
        """Write the record."""
        tests = {
            name: {"seconds": round(ran.seconds, 4), "digest": ran.digest,
                   "lines": {file: f"{bits:x}" for file, bits in ran.lines.items()}}
            for name, ran in self.tests.items()
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps({"tests": tests, "texts": self.texts}).encode(), 6))

    def renew(self, texts: dict[str, str]) -> None:
        """Let the line numbers be of ``texts``; a line that is new counts as executed where the one above it is."""
        for path, text in texts.items():
            old = self.texts.get(path, text)
            if old != text:
                moved = list(moves(old.splitlines(), text.splitlines()))
                for ran in self.tests.values():
                    if path in ran.lines:
                        ran.lines[path] = sum(1 << new for new, was in moved if ran.lines[path] >> was & 1)
        self.texts = dict(texts)

    def executing(self, path: str, lines: Iterable[int]) -> set[str]:
        """The tests that execute any of the lines."""
        mask = sum(1 << line for line in lines)
        return {name for name, ran in self.tests.items() if ran.lines.get(path, 0) & mask}

    def tests_of(self, mutation: Mutation) -> list[str]:
        """The tests that may notice a mutation, the quickest first.

        For a line that runs when its module is imported these are the tests of lines that speak of what it binds; first
        those of lines in the module itself, and in modules that import it.
        """
        first, last = mutation.lines
        near: set[str] = set()
        if mutation.function:
            found = self.executing(mutation.path, range(first, last + 1))
        elif found := self.speaking_of(mutation, self.texts):
            users = [path for path, text in self.texts.items() if path == mutation.path or mutation.module in text]
            near = self.speaking_of(mutation, users)
        else:
            found = self.executing(mutation.path, range(1, last_line(mutation.text)))
        return sorted(found, key=lambda name: (name not in near, self.tests[name].seconds, name))

    def speaking_of(self, mutation: Mutation, paths: Iterable[str]) -> set[str]:
        """The tests that execute a line with one of the names that a statement binds, in any of the modules."""
        if not mutation.names:
            return set()
        name = re.compile(r"\b(" + "|".join(map(re.escape, mutation.names)) + r")\b")
        found: set[str] = set()
        for path in paths:
            lines = [number for number, line in enumerate(self.texts[path].splitlines(), 1) if name.search(line)]
            found |= self.executing(path, lines)
        return found


def last_line(text: str) -> int:
    """The number behind the last line of a text."""
    return text.count("\n") + 2


def moves(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """Each line number of the new text with the one in the old text that it stands for, both from 1."""
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for number in range(start, end):
            was = first + number - start if tag == "equal" else min(first + number - start, max(last - 1, first - 1, 0))
            yield number + 1, was + 1


def digest_of(path: Path) -> str:
    """A short name of what a file holds."""
    return sha256(path.read_bytes()).hexdigest()[:16]


class Recorder:
    """A pytest plugin that runs the tests whose file has changed since they were recorded, and records them."""

    def __init__(self, record: Record, file: Path, notes: Notes) -> None:
        self.record, self.file, self.notes = record, file, notes
        self.kept = time.monotonic()
        self.failed: set[str] = set()
        self.digests: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what must be recorded, and forget tests that are no more."""
        self.digests = {str(path): digest_of(path) for path in {item.path for item in items}}
        known = {name: ran for name, ran in self.record.tests.items() if name in {item.nodeid for item in items}}
        self.record.tests = known
        kept = [item for item in items if not self._is_known(item)]
        config.hook.pytest_deselected(items=[item for item in items if self._is_known(item)])
        items[:] = kept

    def _is_known(self, item: pytest.Item) -> bool:
        ran = self.record.tests.get(item.nodeid)
        return ran is not None and ran.digest == self.digests[str(item.path)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Watch one test, with nothing remembered of those before it: what it asks for it has to work out."""
        self.forget()
        self.notes.taken()
        started = time.process_time()
        found = yield
        seconds = time.process_time() - started
        self.record.tests[item.nodeid] = Ran(seconds, self.digests[str(item.path)], self.notes.taken())
        if time.monotonic() > self.kept + KEEP_EVERY:
            self.keep()
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what does not pass: it cannot notice anything."""
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Keep the rest."""
        self.keep()

    def keep(self) -> None:
        """Write what was watched by now; a run that is ended goes on from there."""
        for name in self.failed:
            self.record.tests.pop(name, None)
        self.record.write(self.file)
        self.kept = time.monotonic()

    def forget(self) -> None:
        """Clear what functions of the modules watched remember of their answers."""
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) in self.notes.files:
                for value in vars(module).values():
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()
