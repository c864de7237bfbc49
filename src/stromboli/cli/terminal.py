"""Where output goes: results to standard output, everything else to standard error; colours on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from stromboli.cluster.reader import Progress

PIPE_WIDTH = 100
"""Columns where standard output is no terminal and COLUMNS says nothing."""


def console() -> Console:
    """Standard output.  Colours only on a terminal, and none with NO_COLOR."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(highlight=False, width=width, emoji=False, markup=False)


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
