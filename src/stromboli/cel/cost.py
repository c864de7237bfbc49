"""What an expression costs, read from its text: lists that it goes through, or takes whole, within others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
"""What goes through a list or a map, binding a variable."""

_TEXT: Final = re.compile(
    r"""\b[bB]?[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"]*"|'[^']*')"""
    r"""|\"\"\"(?:\\.|.)*?\"\"\"|'''(?:\\.|.)*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//[^\n]*""",
    re.DOTALL,
)
"""A text without escapes, one with them, or a comment."""
_MAKES: Final = re.compile(r"(?<![\w\])])\s*\[|\.\s*split\s*\(")
"""What makes a list: brackets that are no index, and a text that is split."""
COPYING: Final = frozenset({"map", "filter"})
"""Macros that make a list, which the library copies for each entry that it adds."""
_MACRO: Final = re.compile(rf"\.\s*({'|'.join(sorted(MACROS))})\s*\(\s*(\w+)\s*,")
_NAME: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\s*\()")
"""A name that is neither a field nor called."""
_PATH: Final = re.compile(rf"{_NAME.pattern}((?:\s*\.\s*[A-Za-z_]\w*\b(?!\s*\())*)(\s*\[)?")
"""A name, the fields of it that are read, and whether an index follows."""
_CONSTANTS: Final = frozenset({"true", "false", "null", "in"})


class Macro(NamedTuple):
    """A walk through a list: the variable that it binds, the text of what it goes through, and the macros around it.

    ``head`` and ``body`` are the places in the :func:`plain` text of what it binds and of what each entry is put into;
    ``makes`` says that the latter makes lists.
    """

    name: str
    variable: str
    target: str
    around: tuple[str, ...]
    head: range
    body: range
    makes: bool


class Read(NamedTuple):
    """A value that is read once for each step of ``depth`` walks through lists within each other.

    ``path`` has its names from the outside; it is empty where they cannot be followed.
    """

    depth: int
    path: tuple[str, ...]


@lru_cache(maxsize=64)
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
        end = _closing(text, text.index("(", found.start()))
        head, body = range(*found.span()), range(found.end(), end)
        makes = _MAKES.search(text, found.end(), end) is not None
        yield Macro(found[1], found[2], _target(text, found.start()), around, head, body, makes)
        open_until.append((end, found[2]))


def products(text: str) -> int:
    """How many lists are gone through once for each entry of another: 2 for all pairs of two lists.

    Going through what an entry itself holds, and nothing else, is no product: all entries of all entries are the parts
    of one value.
    """
    return max((depth for _, depth in _scopes(text)), default=0)


def reads(text: str) -> Iterator[Read]:
    """What is read within walks and is no part of the entry at hand: a list among it is taken whole at each step."""
    for found in _paths(text):
        name = found[1]
        around = {walk.variable: depth for walk, depth in _scopes(text) if found.start() in walk.body}
        if around and name != [*around][-1]:
            path = () if name in around or found[3] else (name, *found[2].replace(".", " ").split())
            yield Read([*around.values()][-1], path)


def growth(text: str) -> int:
    """How many times what it is given a row of ``map`` may make: each adds or lists as often as its body says."""
    bare = plain(text)
    bodies = (bare[walk.body.start : walk.body.stop] for walk, _ in _scopes(text) if walk.name == "map")
    return prod(1 + body.count("+") + body.count(",") for body in bodies)


def sums(text: str) -> tuple[int, int]:
    """How many signs of addition stand outside walks, and within: texts and lists are copied by each."""
    places = [place for place, sign in enumerate(plain(text)) if sign == "+"]
    within = sum(any(place in walk.body for walk, _ in _scopes(text)) for place in places)
    return len(places) - within, within


def copies(text: str) -> Iterator[tuple[int, bool, bool]]:
    """Of each macro that copies what it makes: its depth, whether it reads from outside, whether it makes lists."""
    for walk, depth in _scopes(text):
        if walk.name in COPYING:
            names = {found[1] for found in _paths(text) if found.start() in walk.body}
            yield depth, bool(names - {walk.variable}), walk.makes


def stated_steps(text: str, entries: int) -> int:
    """The steps that an expression takes over lists which it states itself, of so many entries; 0 for few."""
    found = [walk for walk, _ in _scopes(text)]
    depths = [len(walk.around) + 1 + walk.makes + (walk.name in COPYING) for walk in found]
    # what one map makes longer is the next one's input, wherever that stands
    maps = sum(walk.name == "map" for walk in found)
    return int(sum(entries**depth for depth in (*depths, maps) if depth > 1))


@lru_cache(maxsize=64)
def _scopes(text: str) -> tuple[tuple[Macro, int], ...]:
    """The macros of an expression, and how many lists each goes through for each entry of another, itself included."""
    found: list[tuple[Macro, int]] = []
    depth: dict[tuple[str, ...], int] = {(): 0}
    for walk in walks(text):
        here = depth.get(walk.around, len(walk.around))
        is_part = bool(walk.around) and set(_NAME.findall(walk.target)) == {walk.around[-1]}
        mine = here if is_part else here + 1
        depth[(*walk.around, walk.variable)] = max(mine, depth.get((*walk.around, walk.variable), 0))
        found.append((walk, mine))
    return tuple(found)


def _paths(text: str) -> Iterator[re.Match[str]]:
    """The names that an expression reads, with their fields; constants and what macros bind are left out."""
    heads = {place for walk, _ in _scopes(text) for place in walk.head}
    for found in _PATH.finditer(plain(text)):
        if found[1] not in _CONSTANTS and found.start() not in heads:
            yield found


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
