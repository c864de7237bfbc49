"""Where output goes: results to standard output, everything else to standard error; colours on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from stromboli.cluster.files.reader import Progress

PIPE_WIDTH = 100
"""Columns of running text where standard output is no terminal and COLUMNS says nothing."""
WHOLE_WIDTH = 1000
"""Columns that a table has at most there; longer entries are folded."""


def console() -> Console:
    """Standard output.  Colours only on a terminal, and none with NO_COLOR."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(highlight=False, width=width, emoji=False, markup=False)


def table(*columns: str, title: str = "") -> Table:
    """An empty table in the manner of kubectl; a column whose name begins with ``>`` is aligned to the right."""
    from rich.table import Table

    view = Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", title=title or None, title_style="bold",
        title_justify="left",
    )  # fmt: skip
    for column in columns:
        view.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return view


def print_table(console: Console, view: RenderableType) -> None:
    """Print ``view``, which is not folded for a pipe: where no terminal and no COLUMNS give a width it has its own."""
    from rich.measure import Measurement

    width = console.width
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = WHOLE_WIDTH
        console.width = max(width, Measurement.get(console, console.options, view).maximum)
    console.print(view)
    console.width = width


def indented(console: Console, text: Text | str, indent: int, style: str = "") -> None:
    """Print ``text`` wrapped, every line ``indent`` columns in."""
    from rich.text import Text

    whole = Text(text, style=style) if isinstance(text, str) else text
    for line in whole.wrap(console, max(console.width - indent, 20)):
        line.rstrip()
        console.print(Text.assemble(" " * indent, line))


def counted(number: int, noun: str) -> str:
    """``1 Queue``, ``2 Queues``, ``2 PriorityClasses``."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def say(text: str) -> None:
    """A line on standard error."""
    print(f"stromboli: {text}", file=sys.stderr)


def say_some(kind: str, texts: list[str], most: int = 10) -> None:
    """The first ``most`` of ``texts`` on standard error, and how many there are beyond."""
    for text in texts[:most]:
        say(f"{kind}: {text}")
    if len(texts) > most:
        say(f"{kind}: ... and {len(texts) - most} more (-o json lists all)")


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A line on the terminal that follows the reading of files; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda file, count: status.update(f"reading {file}: {count:,} objects")


def dump(value: object, form: str) -> None:
    """Print ``value`` as ``json`` or ``yaml``."""
    if form == "json":
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    else:
        import yaml

        text = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).rstrip("\n")
    print(text)
