"""Compiled expressions.  Their length, depth and cost are bounded: tenants write them, or what they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from stromboli.cel.functions import FUNCTIONS
from stromboli.errors import PatternError, QuantityError, StromboliError

LONGEST: Final = 10 * 1024
"""Characters of an expression; an API server stores no longer ones."""
MOST_STEPS: Final = 10_000
"""Steps that macros may take over lists that the expression itself states: such a list has at most half as many entries
as the expression has characters."""
MOST_READ: Final = 1_000_000_000
"""Steps that macros may at worst take over lists that the expression is given, each over the longest."""
DEEPEST: Final = 100
"""Brackets within brackets."""

_MARKS: Final = re.compile(r"\.(all|exists|exists_one|map|filter)\s*\(|[(\[{]|[)\]}]")
_FAULTS: Final = (
    ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AttributeError, QuantityError, PatternError,
)  # fmt: skip
"""What an evaluation raises, our functions' errors among them."""


class CelError(StromboliError):
    """An expression cannot be compiled, or not be evaluated on what it is given."""


class Program:
    """One compiled expression; ``problem`` says why it cannot be used, ``depth`` how many macros lie in each other."""

    def __init__(self, text: str, most_steps: int = MOST_STEPS) -> None:
        """``most_steps`` is how many its macros may take over lists that it states itself."""
        self.text = text
        self.depth, self.problem = _cost(text, most_steps)
        if not self.problem:
            import cel  # only where there is an expression: it takes a quarter of a second

            self._context: Callable[..., Any] = cel.Context
            try:
                self._program = cel.compile(text)
            except ValueError as error:
                self.problem = f"CEL compile error: {first_line(error)}"

    def value(self, given: Mapping[str, Any]) -> Any:
        """What the expression yields where the names in ``given`` are known.  Raises CelError."""
        if self.problem:
            raise CelError(self.problem)
        try:
            return self._program.execute(self._context({**given}, functions=FUNCTIONS))
        except KeyError as error:
            raise CelError(f"CEL runtime error: no such key: {error.args[0]}") from error
        except _FAULTS as error:
            raise CelError(f"CEL runtime error: {first_line(error)}") from error

    def bounded(self, given: Mapping[str, Any]) -> Any:
        """:meth:`value`, unless lists and maps in ``given`` are so long that it may take too many steps."""
        if self.depth and longest_in(given) ** self.depth > MOST_READ:
            raise CelError(f"CEL runtime error: it may take more than {MOST_READ} steps over lists (cost budget)")
        return self.value(given)


@lru_cache(maxsize=4096)
def program(text: str, most_steps: int = MOST_STEPS) -> Program:
    """The program of ``text``, compiled when it is first asked for."""
    return Program(text, most_steps)


def longest_in(value: object) -> int:
    """The number of entries of the longest list or map within a value."""
    most, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            most = max(most, len(one))
            left.extend(one.values())
        elif isinstance(one, Sequence) and not isinstance(one, str | bytes):
            most = max(most, len(one))
            left.extend(one)
    return most


def first_line(error: Exception) -> str:
    """The first line of what an error says, or its kind."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _cost(text: str, most_steps: int) -> tuple[int, str]:
    """How many macros lie in each other, and why that may take too long, or is too deep; empty if it may not."""
    if len(text) > LONGEST:
        return 0, f"CEL compile error: the expression has {len(text)} characters, more than {LONGEST}"
    opened: list[bool] = []
    maps = deepest = 0
    for mark in _MARKS.finditer(text):
        if mark[0] in (")", "]", "}"):
            if opened:
                opened.pop()
            continue
        opened.append(mark[1] is not None)
        maps += mark[1] == "map"  # lists that one map made longer are the next one's input, wherever it stands
        deepest = max(deepest, sum(opened), maps)
        if len(opened) > DEEPEST:
            return deepest, f"CEL compile error: the expression has more than {DEEPEST} brackets within each other"
    if deepest > 1 and max(32, len(text) // 2) ** deepest > most_steps:
        return deepest, f"CEL compile error: the expression may take more than {most_steps} steps over lists"
    return deepest, ""


__all__ = ["CelError", "Program", "first_line", "longest_in", "program"]
