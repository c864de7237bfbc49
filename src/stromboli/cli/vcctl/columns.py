"""Tables as vcctl prints them, and ages as kubectl does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

NOTHING: Final = "No resources found"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 31_536_000


class Column(NamedTuple):
    """A column: its title, and its width; 0 for as wide as its longest entry and ``spare`` more."""

    title: str
    width: int = 0
    spare: int = 3


def plain(text: str) -> str:
    r"""The text with ``\x1b``, ``\n`` and the like for what is not printable, so that no text steers a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> str:
    """All rows under the titles, each entry :func:`plain` and filled up to its column's width."""
    texts = [[plain(str(entry)) for entry in row] for row in rows]
    widths = [
        column.width or max([len(column.title), *(len(row[place]) for row in texts)]) + column.spare
        for place, column in enumerate(columns)
    ]
    lines = [[column.title for column in columns], *texts]
    return "\n".join(
        "".join(f"{entry:<{width}}" for entry, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def age(seconds: float) -> str:
    """How long something has been there, in at most two units: ``90s``, ``5m3s``, ``45m``, ``5h3m``, ``3d4h``."""
    whole = int(seconds)
    if whole < 0:
        return "0s"
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    return _two(whole, YEAR, "y", DAY, "d") if whole < 8 * YEAR else f"{whole // YEAR}y"


def _two(whole: int, large: int, name: str, small: int, less: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{name}{rest}{less}" if rest else f"{whole // large}{name}"
