"""Compiled expressions.  Their length, depth, cost and results are bounded: tenants write them, or what they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from stromboli.cel.cost import MACROS, copies, growth, plain, products, reads, stated_steps, sums, walks
from stromboli.cel.functions import DEVICE_FUNCTIONS, FUNCTIONS, LONGEST_OF_DEVICES, LONGEST_TEXT, MOST_PARTS
from stromboli.errors import CelError, PatternError, QuantityError

LONGEST: Final = 10 * 1024
"""Characters of an expression; an API server stores no longer ones."""
MOST_STEPS: Final = 10_000
"""Steps that macros may take over lists that the expression itself states, or splits texts into."""
_FEW: Final = 32
"""Entries that lists are thought to have at least."""
MOST_READ: Final = 4_000_000
"""Steps that macros may take over lists that the expression is given; a microsecond each."""
MOST_COPIED: Final = 1 << 30
"""Characters and entries that additions of texts and lists may copy."""
MOST_MADE: Final = 200_000
"""Values in a list or a map that an expression makes."""
_PER_STEP: Final = 64
"""Characters of a text that are gone through in the time of a step."""
_COPIES_PER_STEP: Final = 20
"""Values that the library copies in that time."""
LONGEST_MESSAGE: Final = 5 * 1024
"""Characters of a message that an expression makes."""
DEEPEST: Final = 100
"""Brackets within brackets."""

_BRACKETS: Final = re.compile(r"[(\[{]|[)\]}]")
_FAULTS: Final = (
    ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AttributeError, QuantityError, PatternError,
)  # fmt: skip
"""What an evaluation raises, our functions' errors among them."""

_TYPES: Final = frozenset({"int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration", "list", "map"})
_OWN: Final = MACROS | _TYPES | {"size", "has", "contains", "startsWith", "endsWith", "matches", "type", "dyn"} | {
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes",
    "getSeconds", "getMilliseconds",
}  # fmt: skip
"""What the library calls by itself."""


class Program:
    """One compiled expression, which may call ``functions``; ``problem`` says why it cannot be used.

    ``is_unsupported`` says that this is for what the library lacks, rather than for a mistake.
    """

    def __init__(self, text: str, functions: Mapping[str, Callable[..., Any]] = DEVICE_FUNCTIONS) -> None:
        self.text, self._functions = text, functions
        self.problem = too_costly(text) if functions is DEVICE_FUNCTIONS else too_long(text)
        self.is_unsupported = False
        if not self.problem:
            import cel  # only where there is an expression: it takes a quarter of a second

            self._context: Callable[..., Any] = cel.Context
            try:
                self._program = cel.compile(text)
            except ValueError as error:
                self.problem = f"CEL compile error: {first_line(error)}"
                self.is_unsupported = "unsupported syntax" in self.problem

    @property
    def names(self) -> set[str]:
        """What it takes from outside; variables that its macros bind are left out."""
        return {*self._program.variables()} - {walk.variable for walk in walks(self.text)}

    @property
    def called(self) -> set[str]:
        """The functions that it calls, operators left out."""
        return {name for name in self._program.functions() if name.isidentifier()}

    def value(self, given: Mapping[str, Any]) -> Any:
        """What the expression yields where the names in ``given`` are known.  Raises CelError."""
        if self.problem:
            raise CelError(self.problem)
        try:
            return self._program.execute(self._context({**given}, functions=self._functions))
        except KeyError as error:
            raise CelError(f"CEL runtime error: no such key: {error.args[0]}") from error
        except _FAULTS as error:
            raise CelError(f"CEL runtime error: {first_line(error)}") from error

    @cached_property
    def cost(self) -> Cost:
        """What it costs, by what it is given."""
        return Cost(self.text)

    def bounded(self, given: Mapping[str, Any]) -> Any:
        """:meth:`value`, unless it may take too many steps with what is ``given``, or makes too much."""
        if told := self.cost.too_high(given):
            raise CelError(f"CEL runtime error: {told} (cost budget)")
        found = self.value(given)
        if isinstance(found, str) and len(found) > LONGEST_TEXT:
            raise CelError(f"CEL runtime error: a text of {len(found)} characters is made, more than {LONGEST_TEXT}")
        if isinstance(found, list | dict) and (made := sizes(found).values) > MOST_MADE:
            raise CelError(f"CEL runtime error: {made} values are made, more than {MOST_MADE}")
        return found


class Sizes(NamedTuple):
    """Of a value: entries of its longest list or map, characters of its longest text and of all, and its parts."""

    entries: int
    text: int
    texts: int
    values: int


class Cost:
    """What an expression may cost."""

    def __init__(self, text: str) -> None:
        bare = plain(text)
        self._products, self._growth, self._reads = products(text), growth(text), frozenset(reads(text))
        self._copies, self._sums = frozenset(copies(text)), sums(text)
        self._stated = max(bare.count(",") + 1, MOST_PARTS if "split" in bare else 0)
        self._longest = len(text)
        self._is_low = self._products + self._growth < 3 and not (self._reads or self._copies or any(self._sums))

    def too_high(self, given: Mapping[str, Any]) -> str:
        """Why what is ``given`` makes it too high; empty if it does not."""
        if self._is_low:  # one walk at most
            return ""
        found = sizes(given)
        entries = max(found.entries, self._stated)
        outer = max((_taken(given, path, entries) for _, path in self._reads), default=0)
        walked = max((entries**depth * _taken(given, path, entries) for depth, path in self._reads), default=0)
        copied = max((self._copied(found, entries, outer, *one) for one in self._copies), default=0)
        if max(entries**self._products * self._growth, walked, copied) > MOST_READ:
            return f"for lists of {entries} entries it may take more than {MOST_READ} steps"
        if self._added(found, entries, outer) > MOST_COPIED:
            return f"for texts of {found.text} characters it may copy more than {MOST_COPIED}"
        return ""

    def _copied(self, found: Sizes, entries: int, outer: int, depth: int, reads_more: bool, makes: bool) -> int:
        """Steps in which the library copies the list that a macro makes, once for each entry."""
        more = outer * reads_more + self._stated * makes
        return int(entries**depth * (found.values + entries * more) // _COPIES_PER_STEP)

    def _added(self, found: Sizes, entries: int, outer: int) -> int:
        """Characters and entries that additions copy: outside of walks, and within, where all parts have their turn."""
        outside, within = self._sums
        once = max(entries, found.text, self._longest)
        in_turn = found.texts + found.values + entries * (outer * _PER_STEP + self._longest)
        steps = int(entries ** max(self._products - 1, 0))
        return self._growth * (outside**2 * once + within**2 * steps * in_turn)


def _taken(given: Mapping[str, Any], path: tuple[str, ...], otherwise: int) -> int:
    """The steps that it takes to take the value at ``path`` whole; ``otherwise`` where there is no telling."""
    value: Any = given
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not path:
        return otherwise
    return len(value) // (_PER_STEP if isinstance(value, str) else 1) + 1 if hasattr(value, "__len__") else 1


@lru_cache(maxsize=4096)
def program(text: str) -> Program:
    """The program of ``text`` with all functions, compiled when it is first asked for."""
    return Program(text, FUNCTIONS)


@lru_cache(maxsize=4096)
def unsupported(text: str, known: frozenset[str]) -> str:
    """What of an expression nothing here can evaluate: syntax, a function, or a name that is not ``known``.

    Empty where all of it can be, and for a mistake, which is its program's ``problem``.
    """
    found = program(text)
    if found.problem:
        return found.problem if found.is_unsupported else ""
    strange = sorted(found.names - _TYPES - known) or sorted(found.called - _OWN - FUNCTIONS.keys())
    return f"{strange[0]} is not known here" if strange else ""


def mistake(text: str) -> str:
    """Why a text is no expression; empty for one, even if nothing here can evaluate it."""
    found = program(text)
    return "" if found.is_unsupported else found.problem


def message(written: str, given: Mapping[str, Any], otherwise: str) -> str:
    """What a ``messageExpression`` makes, if that is a line of at most 5 KiB; else, as in Kubernetes, ``otherwise``."""
    with suppress(CelError):
        text = program(written).bounded(given) if written else ""
        if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= LONGEST_MESSAGE:
            return text.strip()
    return otherwise


def sizes(value: object) -> Sizes:
    """How large a value is."""
    entries = text = texts = values = 0
    left = [value]
    while left:
        one = left.pop()
        values += 1
        if isinstance(one, str | bytes):
            text, texts = max(text, len(one)), texts + len(one)
        elif isinstance(one, Mapping | Sequence):
            entries = max(entries, len(one))
            left.extend(one.values() if isinstance(one, Mapping) else one)
    return Sizes(entries, text, texts, values)


def first_line(error: Exception) -> str:
    """The first line of what an error says, or its kind."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def too_long(text: str) -> str:
    """Why an expression is too long, or too deep, to be compiled; empty if it is not."""
    if len(text) > LONGEST:
        return f"CEL compile error: the expression has {len(text)} characters, more than {LONGEST}"
    depth = 0
    for mark in _BRACKETS.finditer(text):
        depth = max(depth - 1, 0) if mark[0] in (")", "]", "}") else depth + 1
        if depth > DEEPEST:
            return f"CEL compile error: the expression has more than {DEEPEST} brackets within each other"
    return ""


def too_costly(text: str) -> str:
    """Why an expression over lists that it states itself may take too long; empty if it may not."""
    if problem := too_long(text):
        return problem
    bare = plain(text)
    entries = max(_FEW, bare.count(",") + 1, LONGEST_OF_DEVICES if "split" in bare else 0)
    if stated_steps(text, entries) > MOST_STEPS:
        return f"CEL compile error: the expression may take more than {MOST_STEPS} steps over lists"
    return ""


__all__ = ["CelError", "Program", "message", "mistake", "program", "unsupported"]
