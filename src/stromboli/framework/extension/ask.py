"""From the functions of the plugins to the questions of a session: every point's chain merged into one callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from stromboli.framework.extension.merge import Agree, Chain, FirstOpinion, Merge, Union
from stromboli.framework.extension.points import POINTS, Point

OPINION = "opinion"
"""Attribute of a comparison: the plugins' comparison alone, 0 where none of them tells the two apart."""


def unguarded(_point: str) -> Sequence[Callable[..., Any]]:
    """No guards."""
    return ()


class Questions:
    """One callable a point as attributes, merged from its chain; a point without functions gives its default.

    Each is merged when it is first asked for: most sessions ask few of them.  ``restart`` merges victims in the
    reference's way, ``guards_of`` gives the functions of a point whose refusal is absolute (for both see
    :class:`Agree`; for guards :class:`Union`, too).  Reversed defaults are wired up here.
    """

    def __init__(
        self,
        chain_of: Callable[[str], Chain[..., Any]],
        *,
        restart: bool = False,
        guards_of: Callable[[str], Sequence[Callable[..., Any]]] = unguarded,
    ) -> None:
        self._chain_of, self._restart, self._guards_of = chain_of, restart, guards_of

    def __getattr__(self, name: str) -> Callable[..., Any]:
        point = POINTS.get(name)
        if point is None:
            raise AttributeError(name)
        found = self._whole(point)
        if point.unsplit:
            found = _of_part(found, getattr(self, point.unsplit))
        self.__dict__[name] = found
        return found

    def _whole(self, point: Point) -> Callable[..., Any]:
        chain = self._chain_of(point.name)
        if point.reverse_of:
            return _compiled(FirstOpinion(_reversed(getattr(self, point.reverse_of))), chain)
        if not any(chain):
            return _DEFAULTS[point.name]
        merge = point.merge
        if isinstance(merge, (Agree, Union)):
            merge = replace(merge, restart=True) if self._restart and isinstance(merge, Agree) else merge
            return _compiled(merge, chain, self._guards_of(point.name))
        return _compiled(merge, chain)


def _compiled(merge: Merge, chain: Chain[..., Any], guards: Sequence[Callable[..., Any]] = ()) -> Callable[..., Any]:
    question = merge.compile(chain, guards) if isinstance(merge, (Agree, Union)) else merge.compile(chain)
    if isinstance(merge, FirstOpinion):
        setattr(question, OPINION, merge.opinion(chain))
    return question


def _of_part(of_part: Callable[[Any], Any], of_job: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda job, part: of_part(part) if job.facts.is_split else of_job(job)


def _reversed(compare: Callable[..., int]) -> Callable[..., int]:
    return lambda left, right, *_others: -compare(left, right)


_DEFAULTS: Final = {point.name: _compiled(point.merge, ()) for point in POINTS.values()}
"""The questions that no plugin answers: the same in every session."""
