"""From the functions of the plugins to the questions of a session: every point's chain merged into one callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stromboli.framework.merge import Agree, Chain, FirstOpinion
from stromboli.framework.points import POINTS


def compile_points(chains: Mapping[str, Chain[..., Any]], *, restart: bool = False) -> dict[str, Callable[..., Any]]:
    """One callable a point, merged from the chains; a point without a chain gives its default.

    ``restart`` merges victims in the reference's way (see :class:`Agree`).  Reversed defaults are wired up here.
    """
    asked: dict[str, Callable[..., Any]] = {}
    for row in sorted(POINTS.values(), key=lambda point: bool(point.reverse_of)):
        merge = row.merge
        if row.reverse_of:
            merge = FirstOpinion(_reversed(asked[row.reverse_of]))
        elif isinstance(merge, Agree):
            merge = replace(merge, restart=restart)
        asked[row.name] = merge.compile(chains.get(row.name, ()))
    return asked


def _reversed(compare: Callable[..., int]) -> Callable[..., int]:
    return lambda left, right, *_others: -compare(left, right)
