"""How the answers of several plugins become one.

A merge is compiled once per session.  It receives the *chain*: the enabled functions of one extension point, tier by
tier, in the order of the configuration; and it returns the callable that the actions use.  Nothing is looked up while
a task is being placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from stromboli.framework.extension.guards import Candidate, common, settled

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Chain: TypeAlias = tuple[tuple[Callable[P, R], ...], ...]
"""Tiers of functions; a tier without any function of the point is an empty tuple."""


Actor = TypeVar("Actor")

Election: TypeAlias = Callable[[Actor, Sequence[Candidate]], list[Candidate]]


class Merge(Protocol):
    """A strategy.  The table of points holds all of them side by side, so argument and answer types are open here."""

    def compile(self, chain: Chain[..., Any]) -> Callable[..., Any]:
        """The one callable that stands for the whole chain."""


def flat(chain: Chain[P, R]) -> tuple[Callable[P, R], ...]:
    """All functions of the chain in the order of the configuration, tiers forgotten."""
    return tuple(function for tier in chain for function in tier)


@dataclass(frozen=True, slots=True)
class FirstOpinion:
    """Comparison: the first answer that is not zero decides (negative: the left one comes first).

    ``tie`` is asked last, ``tie_key`` is its key form: comparing keys must equal asking ``tie``.
    """

    tie: Callable[..., int] | None = None
    tie_key: Callable[..., Any] | None = None

    def compile(self, chain: Chain[P, int]) -> Callable[P, int]:
        """The comparison with the tie-breaker at its end; 0 only where that has no opinion either."""
        return _first_opinion(flat(chain) + ((self.tie,) if self.tie else ()))

    def opinion(self, chain: Chain[P, int]) -> Callable[P, int]:
        """The plugins' comparison alone: 0 when none of them tells the two apart."""
        return _first_opinion(flat(chain))

    def compile_key(self, keys: Sequence[Callable[[T], Any]]) -> Callable[[T], tuple[Any, ...]] | None:
        """One sort key from the key forms of every function in the chain; None if the tie-breaker has no key form."""
        if self.tie is not None and self.tie_key is None:
            return None
        return _together((*keys, *((self.tie_key,) if self.tie_key else ())))


def _together(parts: tuple[Callable[[T], Any], ...]) -> Callable[[T], tuple[Any, ...]]:
    """All parts of a key; asked at every turn, so the usual numbers of parts are written out."""
    if len(parts) == 2:
        first, second = parts
        return lambda item: (first(item), second(item))
    if len(parts) == 4:
        one, two, three, four = parts
        return lambda item: (one(item), two(item), three(item), four(item))
    return lambda item: tuple([part(item) for part in parts])


def _first_opinion(functions: tuple[Callable[P, int], ...]) -> Callable[P, int]:
    def compare(*args: P.args, **kwargs: P.kwargs) -> int:
        for function in functions:
            if answer := function(*args, **kwargs):
                return answer
        return 0

    return compare


PERMITTED: Final = -1
UNDECIDED: Final = -2
"""What a vote comes to where no function rejects; else it is the place of the one that does."""


@dataclass(frozen=True, slots=True)
class Vote:
    """A reject (< 0) wins at once; a permit (> 0) wins at the end of its tier; ``silent`` if there is neither."""

    silent: bool = True

    def compile(self, chain: Chain[P, int]) -> Callable[P, bool]:
        """Ask tier after tier; tiers below a permit are not asked."""
        verdict = self.verdict(chain)

        def vote(*args: P.args, **kwargs: P.kwargs) -> bool:
            found = verdict(*args, **kwargs)
            return self.silent if found == UNDECIDED else found == PERMITTED

        return vote

    def verdict(self, chain: Chain[P, int]) -> Callable[P, int]:
        """The place of the function that rejects, counted over all tiers; PERMITTED or UNDECIDED where none does."""
        tiers = [tier for tier in chain if tier]

        def ask(*args: P.args, **kwargs: P.kwargs) -> int:
            place = 0
            for tier in tiers:
                permitted = False
                for function in tier:
                    answer = function(*args, **kwargs)
                    if answer < 0:
                        return place
                    place += 1
                    permitted |= answer > 0
                if permitted:
                    return PERMITTED
            return UNDECIDED

        return ask


@dataclass(frozen=True, slots=True)
class Agree:
    """Victims: those that every voting plugin of the first deciding tier names, in the order of its first voter.

    A function receives (actor, candidates) and returns a list, its vote, or None, which abstains.  An empty list ends
    its tier without victims, and the next tier is asked; so does an empty intersection.  With ``restart``
    (the reference's way) the plugin after an empty intersection starts afresh with its own list.
    """

    restart: bool = False

    def compile(
        self,
        chain: Chain[[Actor, Sequence[Candidate]], Sequence[Candidate] | None],
        guards: Sequence[Callable[[Actor, Sequence[Candidate]], Sequence[Candidate] | None]] = (),
    ) -> Callable[[Actor, Sequence[Candidate]], list[Candidate]]:
        """The question ``(actor, candidates) -> victims``; the full candidate list goes to every function.

        ``guards`` are functions of the chain whose refusal is absolute
        (:func:`~stromboli.framework.extension.guards.settled`).
        """
        if not guards:
            return self._election(chain)

        @cache
        def elections() -> tuple[Election[Actor, Candidate], Election[Actor, Candidate]]:
            """With the guards' votes, and without; most sessions never ask for victims."""
            kept = tuple(tuple(_for_everybody(f) if f in guards else f for f in tier) for tier in chain)
            return self._election(kept), self._election(
                tuple(tuple(_all_of_them if f in guards else f for f in tier) for tier in chain)
            )

        def agree(actor: Actor, candidates: Sequence[Candidate]) -> list[Candidate]:
            elect, unguarded = elections()
            for guard in guards:
                if guard(actor, candidates) != candidates:
                    return settled(guards, partial(elect, actor), candidates, actor)
            # mostly guards permit every candidate; then none of them has abstained, and none is asked again
            return unguarded(actor, candidates)

        return agree

    def _election(
        self, tiers: Chain[[Actor, Sequence[Candidate]], Sequence[Candidate] | None]
    ) -> Callable[[Actor, Sequence[Candidate]], list[Candidate]]:
        def elect(actor: Actor, candidates: Sequence[Candidate]) -> list[Candidate]:
            for tier in tiers if candidates else ():
                if victims := self._in_tier(tier, actor, candidates):
                    return victims
            return []

        return elect

    def _in_tier(
        self,
        tier: tuple[Callable[[Actor, Sequence[Candidate]], Sequence[Candidate] | None], ...],
        actor: Actor,
        candidates: Sequence[Candidate],
    ) -> list[Candidate]:
        victims: list[Candidate] = []
        fresh = True
        for function in tier:
            named = function(actor, candidates)
            if named is None:
                continue
            victims = list(named) if fresh else common(victims, named)
            fresh = not victims
            if not named or (fresh and not self.restart):
                return []
        return victims


def _all_of_them(_actor: object, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    return candidates


def _for_everybody(
    guard: Callable[[Actor, Sequence[Candidate]], Sequence[Candidate] | None],
) -> Callable[[Actor, Sequence[Candidate]], Sequence[Candidate] | None]:
    """How a guard votes in its tier, besides filtering before and after: for all candidates, unless it abstains."""

    def vote(actor: Actor, candidates: Sequence[Candidate]) -> Sequence[Candidate] | None:
        return None if guard(actor, candidates[:1]) is None else candidates

    return vote


@dataclass(frozen=True, slots=True)
class All:
    """All functions must say yes; ``silent`` where none is asked.

    With ``by_tier`` only the first tier that has any function of the point is asked.
    """

    silent: bool = True
    by_tier: bool = False

    def compile(self, chain: Chain[P, bool]) -> Callable[P, bool]:
        """Ask in order, stop at the first no."""
        functions = next((tier for tier in chain if tier), ()) if self.by_tier else flat(chain)
        silent = self.silent

        def all_agree(*args: P.args, **kwargs: P.kwargs) -> bool:
            for function in functions:
                if not function(*args, **kwargs):
                    return False
            return True if functions else silent

        return all_agree


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One yes is enough; without functions the answer is no."""

    def compile(self, chain: Chain[P, bool]) -> Callable[P, bool]:
        """Ask in order, stop at the first yes."""
        functions = flat(chain)
        if len(functions) == 1:
            return functions[0]

        def any_agrees(*args: P.args, **kwargs: P.kwargs) -> bool:
            for function in functions:  # noqa: SIM110 - asked at every turn, and any() takes twice as long
                if function(*args, **kwargs):
                    return True
            return False

        return any_agrees


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """The first answer that is not None counts: a reason, a failed check, a node."""

    def compile(self, chain: Chain[P, R | None]) -> Callable[P, R | None]:
        """Ask in order, stop at the first answer."""
        functions = flat(chain)
        if len(functions) == 1:
            return functions[0]

        def first(*args: P.args, **kwargs: P.kwargs) -> R | None:
            for function in functions:
                if (answer := function(*args, **kwargs)) is not None:
                    return answer
            return None

        return first


@dataclass(frozen=True, slots=True)
class Only(Generic[R]):
    """The first plugin that has the point answers alone; ``silent`` answers where no plugin has it."""

    silent: Callable[..., R]

    def compile(self, chain: Chain[P, R]) -> Callable[P, R]:
        """That plugin's function itself."""
        return next(iter(flat(chain)), self.silent)


@dataclass(frozen=True, slots=True)
class Sum:
    """Numbers add up in the order of the configuration; an exception stops."""

    def compile(self, chain: Chain[P, float]) -> Callable[P, float]:
        """The sum; 0.0 where no function answers."""
        functions = flat(chain)

        def total(*args: P.args, **kwargs: P.kwargs) -> float:
            return sum([function(*args, **kwargs) for function in functions], 0.0)

        return total


@dataclass(frozen=True, slots=True)
class SumByName:
    """Scores by name (of a node, a hypernode) add up name by name; a name that a plugin leaves out gets 0 from it."""

    def compile(self, chain: Chain[P, dict[str, float]]) -> Callable[P, dict[str, float]]:
        """The sums, names in the order in which they were first met."""
        functions = flat(chain)

        def total(*args: P.args, **kwargs: P.kwargs) -> dict[str, float]:
            sums = dict(functions[0](*args, **kwargs)) if functions else {}
            for function in functions[1:]:
                for name, score in function(*args, **kwargs).items():
                    sums[name] = sums.get(name, 0.0) + score
            return sums

        return total


@dataclass(frozen=True, slots=True)
class Union:
    """The first tier that names a candidate decides; the lists of its plugins are joined, each uid once."""

    def compile(
        self,
        chain: Chain[[Sequence[Candidate]], Sequence[Candidate]],
        guards: Sequence[Callable[[Sequence[Candidate]], Sequence[Candidate]]] = (),
    ) -> Callable[[Sequence[Candidate]], list[Candidate]]:
        """The joined list, in the order in which the tasks were first named.

        ``guards`` name no victims: a task that one of them refuses is no candidate, and of the tasks that the rest of a
        tier names they may permit only some (:func:`~stromboli.framework.extension.guards.settled`).
        """
        namers = tuple(tuple(f for f in tier if not any(f is guard for guard in guards)) for tier in chain)

        def union(candidates: Sequence[Candidate]) -> list[Candidate]:
            for tier in namers:
                if named := settled(guards, partial(_named_by, tier, candidates), candidates):
                    return named
            return []

        return union


def _named_by(
    tier: Sequence[Callable[[Sequence[Candidate]], Sequence[Candidate]]],
    candidates: Sequence[Candidate],
    standing: Sequence[Candidate],
) -> list[Candidate]:
    """The tasks that the functions name, without dropped ``candidates``: some functions ignore the list."""
    named = _joined(function(standing) for function in tier)
    if len(standing) == len(candidates):
        return named
    out = {task.uid for task in candidates} - {task.uid for task in standing}
    return [task for task in named if task.uid not in out]


def _joined(lists: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    named: dict[str, Candidate] = {}
    for tasks in lists:
        for task in tasks:
            named.setdefault(task.uid, task)
    return list(named.values())


@dataclass(frozen=True, slots=True)
class Tell:
    """Every function is called, in order; what they return is dropped."""

    def compile(self, chain: Chain[P, object]) -> Callable[P, None]:
        """Call every function, drop what it returns."""
        functions = flat(chain)

        def tell(*args: P.args, **kwargs: P.kwargs) -> None:
            for function in functions:
                function(*args, **kwargs)

        return tell
