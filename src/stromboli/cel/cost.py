"""What an expression costs, read from its text: lists that it goes through within others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
"""What goes through a list or a map, binding a variable."""

_TEXT: Final = re.compile(
    r"""[rR]?(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*""", re.DOTALL
)
"""A text, or a comment."""
_MACRO: Final = re.compile(rf"\.\s*({'|'.join(sorted(MACROS))})\s*\(\s*(\w+)\s*,")
_NAME: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\s*\()")
"""A name that is neither a field nor called."""


class Macro(NamedTuple):
    """A walk through a list: the variable that it binds, the text of what it goes through, and the macros around it."""

    variable: str
    target: str
    around: tuple[str, ...]


def plain(text: str) -> str:
    """The expression with its texts and comments empty, so that nothing in them counts."""
    return _TEXT.sub('""', text)


def walks(text: str) -> Iterator[Macro]:
    """The macros of an expression from left to right."""
    text = plain(text)
    open_until: list[tuple[int, str]] = []
    for found in _MACRO.finditer(text):
        open_until = [(end, name) for end, name in open_until if end > found.start()]
        around = tuple(name for _, name in open_until)
        yield Macro(found[2], _target(text, found.start()), around)
        open_until.append((_closing(text, text.index("(", found.start())), found[2]))


def products(text: str) -> int:
    """How many lists are gone through once for each entry of another: 2 for all pairs of two lists.

    Going through what an entry itself holds, and nothing else, is no product: all entries of all entries are the parts
    of one value.
    """
    depth: dict[tuple[str, ...], int] = {(): 0}
    most = 0
    for walk in walks(text):
        here = depth.get(walk.around, len(walk.around))
        is_part = bool(walk.around) and set(_NAME.findall(walk.target)) == {walk.around[-1]}
        mine = here if is_part else here + 1
        depth[(*walk.around, walk.variable)] = max(mine, depth.get((*walk.around, walk.variable), 0))
        most = max(most, mine)
    return most


def _target(text: str, end: int) -> str:
    """What stands before the dot of a macro: names, calls and indices, and what is in brackets."""
    start = end
    while start > 0:
        sign = text[start - 1]
        if sign in ")]":
            start = _opening(text, start - 1)
        elif sign.isalnum() or sign in "_.":
            start -= 1
        else:
            break
    return text[start:end]


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    return len(text)


def _opening(text: str, end: int) -> int:
    depth = 0
    for place in range(end, -1, -1):
        depth += (text[place] in ")]}") - (text[place] in "([{")
        if depth == 0:
            return place
    return 0
