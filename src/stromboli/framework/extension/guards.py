"""Protections that no vote can overrule, and how a vote comes to an agreement with them.

A guard is a hook with ``protects=True``: given candidates, it returns those that may be evicted.  A task that it
permits among others it must also permit among fewer; so it may count (a disruption budget) or judge each task alone
(system pods).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar


class HasUid(Protocol):
    """What can be told apart by its uid: tasks, above all."""

    @property
    def uid(self) -> str:
        """The identity."""


Candidate = TypeVar("Candidate", bound=HasUid)

Guard: TypeAlias = Callable[..., Sequence[Any] | None]
"""``(*actor, candidates)`` -> the candidates that may be evicted; None permits all."""


def settled(
    guards: Sequence[Guard],
    vote: Callable[[Sequence[Candidate]], list[Candidate]],
    candidates: Sequence[Candidate],
    *actor: object,
) -> list[Candidate]:
    """The victims that ``vote`` names and all guards permit together.

    A task that a guard refuses on its own is no candidate at all.  Of the named tasks guards may permit only some:
    the others are dropped and the vote is repeated until no task is refused.  So no part of a budget is kept for a task
    that the vote spares, and a task that is spared for a budget makes way for another candidate.
    """
    standing, counting = _by_themselves(guards, candidates, actor) if candidates else ((), [])
    while standing:
        named = vote(standing)
        refused = _refused(counting, named, actor)
        if not refused:
            return named
        left = [task for task in standing if task.uid not in refused]
        if len(left) == len(standing):  # a vote that names tasks other than the candidates
            return [task for task in named if task.uid not in refused]
        standing = left
    return []


def common(tasks: Iterable[Candidate], named: Sequence[Candidate]) -> list[Candidate]:
    """Those of ``tasks`` that are in ``named``, too."""
    uids = {task.uid for task in named}
    return [task for task in tasks if task.uid in uids]


def _by_themselves(
    guards: Sequence[Guard], candidates: Sequence[Candidate], actor: tuple[object, ...]
) -> tuple[Sequence[Candidate], list[Guard]]:
    """The candidates that every guard permits alone, and the guards that do not permit all of these together."""
    counting: list[Guard] = []
    for guard in guards:
        together = guard(*actor, candidates)
        if together is None or together == candidates:
            continue
        uids = {task.uid for task in together}
        alone = {task.uid for task in candidates if task.uid not in uids and _passes(guard, task, actor)}
        if alone:
            counting.append(guard)
        candidates = [task for task in candidates if task.uid in uids or task.uid in alone]
    return candidates, counting


def _passes(guard: Guard, task: HasUid, actor: tuple[object, ...]) -> bool:
    let_go = guard(*actor, [task])
    return let_go is None or any(one.uid == task.uid for one in let_go)


def _refused(guards: Iterable[Guard], named: Sequence[Candidate], actor: tuple[object, ...]) -> set[str]:
    """The tasks that the last refusing guard refuses: earlier guards have counted them, and must count again."""
    refused: set[str] = set()
    for guard in guards:
        together = guard(*actor, named)
        left = named if together is None else common(named, together)
        if len(left) < len(named):
            refused, named = {task.uid for task in named} - {task.uid for task in left}, left
    return refused
