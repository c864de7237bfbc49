"""A sample of mutants tried one after the other, within a pytest run that has collected all tests."""

from __future__ import annotations

import linecache
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import CodeType

import pytest

from tools.mutants.mutations import Mutation, called_at_import, mutations
from tools.mutants.recording import Record, last_line
from tools.mutants.trial import FAILED, PASSED, UNFIT, Functions, Limits, Verdict, run, run_anew

GUESS = 2.0
"""CPU seconds that a test is taken to need if it was not recorded."""
BY_ONE = (b"<", b"<=", b">", b">=")
"""Comparisons that become each other: what is compared with is reached one earlier or later."""
FIRST = 30
"""How many tests are asked before the rest, where each process has to import and collect them."""


@dataclass(frozen=True)
class Known:
    """A mutation that is known to change nothing: its path, the line before and after, and why it is none.

    ``function`` is the name of the outermost function around it, where the same line stands in several; ``nth`` says
    which of the equal lines of that function it is, the first being 1.
    """

    path: str
    line: str
    mutated: str
    reason: str
    function: str = ""
    nth: int = 0

    def is_meant(self, mutation: Mutation) -> bool:
        """Whether this is the mutation."""
        if mutation.path != self.path:
            return False
        same = [line[1:].strip() for line in mutation.diff.splitlines()] == [self.line, self.mutated]
        return same and self.function in ("", mutation.function_name) and self.nth in (0, mutation.nth)


@dataclass(frozen=True)
class Measure:
    """A constant of which one more changes no answer: a pause, or how much is done or remembered at once.

    To compare with it by ``>`` instead of ``>=``, or the other way, is one more or one less, too.
    """

    path: str
    name: str

    def is_meant(self, mutation: Mutation) -> bool:
        """Whether this is what the mutation makes one more."""
        if mutation.path != self.path:
            return False
        if mutation.edit.new.strip() in BY_ONE:
            compared = re.compile(rb"\s*" + re.escape(self.name.encode()) + rb"\b")
            return compared.match(mutation.text.encode(), mutation.edit.end) is not None
        one_more = re.fullmatch(rb"\d[\d.e+-]*", mutation.edit.new) is not None
        return one_more and not mutation.function and mutation.names == (self.name,)


def known_in(path: Path) -> list[Known | Measure]:
    """What a list says: mutations that change nothing, and constants that are measures."""
    found = tomllib.loads(path.read_text())
    measures = [Measure(where, name) for where, names in found.get("measures", {}).items() for name in names]
    return [*(Known(**entry) for entry in found.get("equivalent", [])), *measures]


def sample(texts: dict[str, str], count: int, seed: int, known: Sequence[Known | Measure]) -> Iterator[Mutation]:
    """One mutation each of so many lines, drawn by a seed, whatever order files are read in.

    Each line and each of its mutations has a lot of its own, so what changes elsewhere changes nothing for them, and
    survivors of a sample are met again when they are to be caught.
    """
    lines: dict[bytes, list[Mutation]] = {}
    for path in sorted(texts):
        seen, written = Counter[str](), texts[path].splitlines()
        for line, some in groupby(mutations(path, texts[path]), key=attrgetter("line")):
            text = written[line - 1].strip()
            seen[text] += 1
            lines.setdefault(_lot(seed, path, text, seen[text]), []).extend(some)
    for lot in sorted(lines):
        if not count:
            return
        for each in sorted(lines[lot], key=lambda one: _lot(seed, one.diff)):
            if each.compiles and not any(one.is_meant(each) for one in known):
                count -= 1
                yield each
                break


def _lot(*what: object) -> bytes:
    return sha256(repr(what).encode()).digest()


def at(texts: dict[str, str], places: list[str], known: Sequence[Known | Measure]) -> Iterator[Mutation]:
    """All mutations of lines given as path:line."""
    for path, text in texts.items():
        for mutation in mutations(path, text) if any(place.startswith(f"{path}:") for place in places) else ():
            if mutation.where in places and mutation.compiles and not any(one.is_meant(mutation) for one in known):
                yield mutation


@dataclass
class Campaign:
    """A pytest plugin that, instead of running the tests, runs for each mutant those that may notice it."""

    record: Record
    project: Path
    mutants: list[Mutation]
    seconds: float
    verdicts: dict[Mutation, Verdict] = field(default_factory=dict)
    sound: dict[str, bool] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions = Functions(self.project)
        self.at_import = set[str]().union(*map(called_at_import, self.record.texts.values()))
        for number, mutation in enumerate(self.mutants, 1):
            started = time.monotonic()
            verdict = self.verdicts[mutation] = self.tried(mutation)
            took, word = time.monotonic() - started, "caught" if verdict.caught else "SURVIVED"
            print(f"{number}/{len(self.mutants)} {word} {mutation.where} {took:.1f}s {verdict.by}", file=sys.__stderr__)
        return True

    def tests_of(self, mutation: Mutation) -> list[str]:
        """The tests that may notice a mutation, as many as fit into the time.

        Those whose files name it take half of the time.  Of those that execute it the quickest come first; in the last
        quarter of the time come those that execute the most of its module.
        """
        left, chosen = self.seconds, dict[str, None]()
        found = self.record.tests_of(mutation)
        broadest = sorted(found, key=lambda name: -self.record.tests[name].lines.get(mutation.path, 0).bit_count())
        for names, least in ((self.naming(mutation), 1 / 2), (found, 1 / 4), (broadest, 0)):
            for name in names:
                if name in self.items and name not in chosen and self.sound.get(name, True):
                    if left - self.record.tests[name].seconds < least * self.seconds and chosen:
                        break
                    left -= self.record.tests[name].seconds
                    chosen[name] = None
        return list(chosen)

    def naming(self, mutation: Mutation) -> list[str]:
        """The recorded tests that name what a statement binds that runs at import, be it in a module not recorded.

        The first are those that name it in their function, then those whose files name the most of it: what it binds,
        texts that stand in its line, and its module.
        """
        if mutation.function:
            return []
        words = [*filter(None, map(_any_of, (mutation.names, mutation.words, mutation.module.split(".")[-1:])))]
        counts: dict[Path, int] = {}
        found: dict[str, tuple[int, float]] = {}
        for name, item in self.items.items():
            if name in self.record.tests:
                if item.path not in counts:
                    text = "".join(linecache.getlines(str(item.path)))
                    counts[item.path] = sum(word.search(text) is not None for word in words)
                named = any(word.search(source_of(item)) for word in words[:-1]) if counts[item.path] else False
                if named or counts[item.path] > 1:
                    found[name] = -counts[item.path] - 3 * named, self.seconds_of(name)
        return sorted(found, key=found.__getitem__)

    def using(self, mutation: Mutation) -> list[str]:
        """Recorded tests whose file uses what the mutated module defines, then such as execute any of it."""
        used = [name for name, item in self.items.items() if name in self.record.tests and _uses(item, mutation.module)]
        executing = self.record.executing(mutation.path, range(1, last_line(mutation.text)))
        rest = executing.intersection(self.items).difference(used)
        return [*sorted(used, key=self.seconds_of)[:FIRST], *sorted(rest, key=self.seconds_of)[:FIRST]]

    def near(self, mutation: Mutation) -> list[str]:
        """Tests without a record whose file uses what the mutated module defines, or is named like it."""
        stem = Path(mutation.path).stem
        unknown = [item for name, item in self.items.items() if name not in self.record.tests]
        found = [item.nodeid for item in unknown if stem in item.path.stem or _uses(item, mutation.module)]
        return found[: max(1, int(self.seconds / GUESS))]

    def tried(self, mutation: Mutation) -> Verdict:
        """Try one mutant by the tests that execute it, then by those without a record that may.

        What none executes, and what modules call when they are imported, is tried anew by the tests that use
        the module: then its answers of that time are others, too.
        """
        verdict = self.tried_by(mutation, self.tests_of(mutation))
        may_be_import = not verdict.tests or (not verdict.caught and mutation.function_name in self.at_import)
        if may_be_import and (users := self.using(mutation)):
            anew = self.tried_anew(mutation, users)
            verdict = anew if anew.caught else verdict
        if verdict.caught or not (near := self.near(mutation)):
            return verdict
        second = self.tried_by(mutation, near)
        return second if second.caught and second.by != "time-out" else verdict  # how long they take is not known

    def tried_by(self, mutation: Mutation, tests: list[str]) -> Verdict:
        """Try one mutant; a test that fails by itself has noticed nothing, and is asked no more."""
        tests = [name for name in tests if self.sound.get(name, True)]
        if not tests:
            return Verdict(caught=False, by="no test executes it", tests=0)
        limits = Limits.of(sum(map(self.seconds_of, tests)))
        if mutation.function:
            items = [self.items[name] for name in tests]
            status, by = run(items, limits, lambda: self.functions.replace(mutation))
            if status == FAILED and by in self.items and not self.is_sound(by):
                return self.tried_by(mutation, tests)
            if status != UNFIT:
                return verdict_of(status, by, len(tests))
        return self.tried_anew(mutation, tests)

    def tried_anew(self, mutation: Mutation, tests: list[str]) -> Verdict:
        """Try a mutant in processes of its own, each with limits for its tests; what fails by itself does not count."""
        for some in filter(None, (tests[:FIRST], tests[FIRST:])):
            status, by = run_anew(mutation, some, Limits.of(sum(map(self.seconds_of, some))), self.project)
            if by in self.items and not self.is_sound(by):
                return self.tried_anew(mutation, [name for name in tests if name != by])
            if status != PASSED:
                break
        return verdict_of(status, f"a process of its own {by}".rstrip(), len(tests))

    def seconds_of(self, name: str) -> float:
        """How long a test takes when nothing is broken; a guess for one without a record."""
        found = self.record.tests.get(name)
        return GUESS if found is None else found.seconds

    def is_sound(self, name: str) -> bool:
        """Whether a test passes by itself when nothing is broken."""
        if name not in self.sound:
            status, _ = run([self.items[name]], Limits.of(self.seconds_of(name)))
            self.sound[name] = status == PASSED
        return self.sound[name]


def _uses(item: pytest.Item, module: str) -> bool:
    """Whether a test's file has something of a module."""
    names = vars(getattr(item, "module", object))
    return any(getattr(value, "__module__", None) == module for value in names.values())


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds any of the words; None where there are none."""
    each = [re.escape(word) for word in words]
    return re.compile(rf"(?<!\w)(?:{'|'.join(each)})(?!\w)") if each else None


def source_of(item: pytest.Item) -> str:
    """The text of a test's function; empty if it has none."""
    code: CodeType | None = getattr(getattr(item, "function", None), "__code__", None)
    if code is None:
        return ""
    last = max(line for _, _, line in code.co_lines() if line is not None)
    return "".join(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last])


def verdict_of(status: int, by: str, tests: int) -> Verdict:
    """What the end of a process means."""
    if status == -1:
        return Verdict(caught=True, by="time-out", tests=tests)
    return Verdict(caught=status != PASSED, by=by if status != PASSED else f"passed by {tests} tests", tests=tests)
