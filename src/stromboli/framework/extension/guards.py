"""Protections that no vote can overrule, and how a vote comes to an agreement with them.

A guard is a hook with ``protects=True``: given candidates, it returns whom it lets go.  Whom it lets go among others it
must let go among fewer, too; so it may count (a disruption budget) or judge each for itself (system pods).
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
"""``(*actor, candidates)`` -> whom it lets go; None lets everybody go."""


def settled(
    guards: Sequence[Guard],
    vote: Callable[[Sequence[Candidate]], list[Candidate]],
    candidates: Sequence[Candidate],
    *actor: object,
) -> list[Candidate]:
    """Whom ``vote`` names and all guards let go together.

    Whom a guard refuses by himself does not stand at all.  Of those who are named guards may still let go only some:
    the others stand no longer and the vote is held anew, until nobody is refused.  So nothing of a budget is kept for
    somebody whom the vote spares, and whoever is spared for a budget's sake leaves his place to another.
    """
    standing, counting = _by_themselves(guards, candidates, actor) if candidates else ((), [])
    while standing:
        named = vote(standing)
        refused = _refused(counting, named, actor)
        if not refused:
            return named
        left = [task for task in standing if task.uid not in refused]
        if len(left) == len(standing):  # a vote that names others than those who stand
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
    """Whom every guard would let go alone, and the guards that would not let all of these go together."""
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
    """Whom the last guard refuses that refuses anybody: earlier ones counted these, and have to count anew."""
    refused: set[str] = set()
    for guard in guards:
        together = guard(*actor, named)
        left = named if together is None else common(named, together)
        if len(left) < len(named):
            refused, named = {task.uid for task in named} - {task.uid for task in left}, left
    return refused
