"""Rows of the compatibility table that a configuration meets: at each action and plugin, what is decided otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cli.linting.setup import Setup
from stromboli.framework.config.compat import DIFFERENCES
from stromboli.framework.config.difference import Difference
from stromboli.framework.config.known_names import PLUGINS

ALWAYS: Final = ("all actions",)
"""Places that every configuration meets."""


def differing(setup: Setup) -> Iterator[Spot]:
    """Rows that are met, at the line of the plugin or action that they speak of first."""
    for row in DIFFERENCES.values():
        if (line := _met(setup, row)) is not None:
            place = "compat: volcano restores it" if row.restored else "compat: volcano keeps it"
            yield Spot(f"{row.name}: {row.ours} Volcano: {row.reference} ({place})", line=line)


def _met(setup: Setup, row: Difference) -> int | None:
    """The line at which a configuration meets a row; None where it does not.

    A row that names plugins is met where one of them is configured, any other where one of its actions is.
    """
    if row.where in ALWAYS:
        return 1
    words, named, absent = _words(row)
    if absent & {entry.option.name for entry in setup.entries}:
        return None
    if not named:
        return 1 if words & set(setup.config.actions) else None
    options = (entry.option for entry in setup.entries if entry.option.name in named)
    return next((one.line for one in options if one.enable_hierarchy or "hierarchy" not in words), None)


def _words(row: Difference) -> tuple[set[str], set[str], set[str]]:
    """The words that say where a row counts, the plugins among them, and those that must not be configured."""
    words = re.findall(r"[a-z][a-z-]*", row.where)
    absent = {name for before, name in pairwise(words) if before == "without"}
    return set(words), {word for word in words if word in PLUGINS} - absent, absent


CONF_DIFFERENCES: Final[tuple[Rule[Setup], ...]] = (
    Rule(
        "decides-otherwise", "note", differing,
        "Decisions or texts may be others than before; docs/compatibility.md says why.",
        "Nothing; or write `compat: volcano` into the configuration to keep what was.",
    ),
)  # fmt: skip
