"""Regular expressions that stand in objects: Go's syntax, searched in time linear in the text.

Python's ``re`` backtracks: a short pattern such as ``(a+)+$`` can keep it busy for years.  HyperNodes and
CustomResourceDefinitions bring patterns along, so all patterns from objects are compiled here, by RE2, whose syntax and
semantics are those of Go's ``regexp`` (https://github.com/google/re2/wiki/Syntax).  ADR 17 compares the libraries.

The library is imported with the first pattern: it takes 3 MiB, and most clusters have no HyperNodes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from stromboli.errors import PatternError

LONGEST: Final = 4096
"""Most bytes of a pattern."""
MOST_WORK: Final = 1_000_000_000
"""Most steps of a search at worst: instructions of the compiled pattern times bytes of the text; a few seconds."""
_PROGRAM_MEMORY: Final = 256 << 10
"""Bytes that a compiled pattern may take: some 10,000 instructions."""
_SEARCH_MEMORY: Final = 2 << 20
"""Bytes that a compiled pattern and what searches keep with it may take."""
_KEPT: Final = 64
"""Patterns that stay compiled: as many as re2 keeps by itself, in two forms each; all at their worst take 144 MiB."""

_GO_TEXTS: Final = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
}
"""What Go's regexp/syntax calls the errors of RE2."""
_TOO_LARGE: Final = f"the compiled pattern takes more than {_PROGRAM_MEMORY >> 10} KiB"


class Pattern:
    """A compiled pattern; :func:`pattern` makes it."""

    __slots__ = ("_compiled", "_longest")

    def __init__(self, text: str) -> None:
        raw = _bytes(text)
        if len(raw) > LONGEST:
            raise PatternError(f"the pattern has {len(raw)} bytes, more than {LONGEST}")
        _compiled(raw, _PROGRAM_MEMORY)
        if any(token == rb"\C" for token in _TOKENS.findall(raw)):
            # RE2 reads it as any byte; Go does not know it.
            raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
        self._compiled = _compiled(raw, _SEARCH_MEMORY)
        self._longest = MOST_WORK // self._compiled.programsize

    def found_in(self, text: str) -> bool:
        """Whether any part of ``text`` matches.  Raises PatternError if to look might take more than MOST_WORK."""
        raw = _bytes(text)
        if len(raw) > self._longest:
            raise PatternError(f"a text of {len(raw)} bytes is too long for it: at most {self._longest}")
        return self._compiled.search(raw) is not None


def pattern(text: str) -> Pattern:
    """The compiled form of ``text``.  Raises PatternError for what Go would not compile, or what is too large."""
    found = _kept(text)
    if isinstance(found, str):
        raise PatternError(found)
    return found


def problem(text: str) -> str:
    """What is wrong with a pattern, in Go's words; empty when it is sound."""
    found = _kept(text)
    return found if isinstance(found, str) else ""


@lru_cache(_KEPT)
def _kept(text: str) -> Pattern | str:
    """The compiled pattern, or what is wrong with it: bad ones are kept as well, as they are asked for as often."""
    try:
        return Pattern(text)
    except PatternError as error:
        return error.message


def _bytes(text: str) -> bytes:
    """UTF-8 of a text; halves of surrogate pairs, which JSON can name but UTF-8 cannot hold, as Go decodes them."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _compiled(raw: bytes, memory: int) -> Any:
    import re2  # see above

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.never_capture = True  # whether there is a match is all that is asked, and the fastest to find
    try:
        return re2.compile(raw, options)
    except re2.error as error:
        raise PatternError(_in_go_words(error.args[0].decode("utf-8", "replace"))) from None


def _in_go_words(told: str) -> str:
    code, _, argument = told.partition(": ")
    if code not in _GO_TEXTS:
        return _TOO_LARGE if code.startswith("pattern too large") else told
    return f"error parsing regexp: {_GO_TEXTS[code]}" + (f": `{argument}`" if argument else "")


_TOKENS: Final = re.compile(rb"(?s)\\Q.*?(?:\\E|\Z)|\\.")
"""Quoted stretches and escapes of a pattern."""


__all__ = ["LONGEST", "MOST_WORK", "Pattern", "pattern", "problem"]
