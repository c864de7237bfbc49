"""From the functions of the plugins to the questions of a session: every point's chain merged into one callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from stromboli.framework.extension.merge import Agree, Chain, FirstOpinion, Merge, Union
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
    asked = _DEFAULTS.copy()
    for row in _IN_ORDER:
        merge: Merge = FirstOpinion(_reversed(asked[row.reverse_of])) if row.reverse_of else row.merge
        if row.name in chains or row.reverse_of:
            merge = replace(merge, restart=True) if restart and isinstance(merge, Agree) else merge
            asked[row.name] = _compiled(merge, chains.get(row.name, ()), guards.get(row.name, ()))
    for row in _BY_PART:
        asked[row.name] = _of_part(asked[row.name], asked[row.unsplit])
    return asked


def _compiled(merge: Merge, chain: Chain[..., Any], guards: Sequence[Callable[..., Any]] = ()) -> Callable[..., Any]:
    question = merge.compile(chain, guards) if isinstance(merge, (Agree, Union)) else merge.compile(chain)
    if isinstance(merge, FirstOpinion):
        setattr(question, OPINION, merge.opinion(chain))
    return question


def _of_part(of_part: Callable[[Any], Any], of_job: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda job, part: of_part(part) if job.has_sub_group_policy else of_job(job)


def _reversed(compare: Callable[..., int]) -> Callable[..., int]:
    return lambda left, right, *_others: -compare(left, right)


_IN_ORDER: Final = sorted(POINTS.values(), key=lambda point: bool(point.reverse_of))
_BY_PART: Final = [point for point in POINTS.values() if point.unsplit]
_DEFAULTS: Final = {point.name: _compiled(point.merge, ()) for point in _IN_ORDER}
"""The questions that no plugin answers: the same in every session."""
