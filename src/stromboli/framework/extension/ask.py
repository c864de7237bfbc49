"""From the functions of the plugins to the questions of a session: every point's chain merged into one callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from stromboli.framework.extension.merge import Agree, Chain, FirstOpinion, Union
from stromboli.framework.extension.points import POINTS

OPINION = "opinion"
"""Attribute of a comparison: the plugins' comparison alone, 0 where none of them tells the two apart."""


def compile_points(
    chains: Mapping[str, Chain[..., Any]],
    *,
    restart: bool = False,
    guards: Mapping[str, Sequence[Callable[..., Any]]] = MappingProxyType({}),
) -> dict[str, Callable[..., Any]]:
    """One callable a point, merged from the chains; a point without a chain gives its default.

    ``restart`` merges victims in the reference's way, ``guards`` are by point the functions whose refusal is absolute
    (for both see :class:`Agree`; for guards :class:`Union`, too).  Reversed defaults are wired up here.
    """
    asked: dict[str, Callable[..., Any]] = {}
    for row in sorted(POINTS.values(), key=lambda point: bool(point.reverse_of)):
        merge = row.merge
        if row.reverse_of:
            merge = FirstOpinion(_reversed(asked[row.reverse_of]))
        chain = chains.get(row.name, ())
        if isinstance(merge, Agree):
            asked[row.name] = replace(merge, restart=restart).compile(chain, guards.get(row.name, ()))
        elif isinstance(merge, Union):
            asked[row.name] = merge.compile(chain, guards.get(row.name, ()))
        else:
            asked[row.name] = merge.compile(chain)
        if isinstance(merge, FirstOpinion):
            setattr(asked[row.name], OPINION, merge.opinion(chain))
    for row in POINTS.values():
        if row.unsplit:
            asked[row.name] = _of_part(asked[row.name], asked[row.unsplit])
    return asked


def _of_part(of_part: Callable[[Any], Any], of_job: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda job, part: of_part(part) if job.has_sub_group_policy else of_job(job)


def _reversed(compare: Callable[..., int]) -> Callable[..., int]:
    return lambda left, right, *_others: -compare(left, right)
