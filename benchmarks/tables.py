"""Tables of figures as Markdown, and what was measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path


def head(columns: Sequence[str]) -> str:
    """The two lines above a table."""
    return row(columns) + "\n" + row(["---"] * len(columns))


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """The machine, in one line; how busy it is belongs to it, for a busy one is slower."""
    load = os.getloadavg()[0]
    return f"{_processor()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().split("\n") if known.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def figure(value: float | None, digits: int = 2) -> str:
    """A number with ``digits`` digits after the point; ``-`` when there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"
