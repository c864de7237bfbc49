"""How the answers of several plugins become one.

A merge is compiled once per session.  It receives the *chain*: the enabled functions of one extension point, tier by
tier, in the order of the configuration; and it returns the callable that the actions use.  Nothing is looked up while
a task is being placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Chain: TypeAlias = tuple[tuple[Callable[P, R], ...], ...]
"""Tiers of functions; a tier without any function of the point is an empty tuple."""


class HasUid(Protocol):
    """What can be told apart by its uid: tasks, above all."""

    @property
    def uid(self) -> str:
        """The identity."""


Actor = TypeVar("Actor")
Candidate = TypeVar("Candidate", bound=HasUid)


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
        parts = (*keys, *((self.tie_key,) if self.tie_key else ()))
        return lambda item: tuple([part(item) for part in parts])


def _first_opinion(functions: tuple[Callable[P, int], ...]) -> Callable[P, int]:
    def compare(*args: P.args, **kwargs: P.kwargs) -> int:
        for function in functions:
            if answer := function(*args, **kwargs):
                return answer
        return 0

    return compare


@dataclass(frozen=True, slots=True)
class Vote:
    """A reject (< 0) wins at once; a permit (> 0) wins at the end of its tier; nobody for or against: ``silent``."""

    silent: bool = True

    def compile(self, chain: Chain[P, int]) -> Callable[P, bool]:
        """Ask tier after tier; tiers below a permit are not asked."""

        def vote(*args: P.args, **kwargs: P.kwargs) -> bool:
            for tier in chain:
                permitted = False
                for function in tier:
                    answer = function(*args, **kwargs)
                    if answer < 0:
                        return False
                    permitted |= answer > 0
                if permitted:
                    return True
            return self.silent

        return vote


@dataclass(frozen=True, slots=True)
class Agree:
    """Victims: those that every voting plugin of the first deciding tier names, in the order of its first voter.

    A function receives (actor, candidates) and returns a list, its vote, or None, which abstains.  An empty list ends
    its tier with nobody, and the next tier is asked; so does an intersection that comes out empty.  With ``restart``
    (the reference's way) the plugin after an empty intersection starts afresh with its own list.
    """

    restart: bool = False

    def compile(
        self,
        chain: Chain[[Actor, Sequence[Candidate]], Sequence[Candidate] | None],
        guards: Sequence[Callable[[Actor, Sequence[Candidate]], Sequence[Candidate] | None]] = (),
    ) -> Callable[[Actor, Sequence[Candidate]], list[Candidate]]:
        """The question ``(actor, candidates) -> victims``; the full candidate list goes to every function.

        ``guards`` are functions whose refusal is absolute: what one of them leaves out is no candidate for anybody.
        """

        def agree(actor: Actor, candidates: Sequence[Candidate]) -> list[Candidate]:
            for guard in guards:
                spared = guard(actor, candidates)
                candidates = candidates if spared is None else _common(candidates, spared)
            for tier in chain if candidates else ():
                if victims := self._in_tier(tier, actor, candidates):
                    return victims
            return []

        return agree

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
            victims = list(named) if fresh else _common(victims, named)
            fresh = not victims
            if not named or (fresh and not self.restart):
                return []
        return victims


def _common(victims: Iterable[Candidate], named: Sequence[Candidate]) -> list[Candidate]:
    uids = {task.uid for task in named}
    return [task for task in victims if task.uid in uids]


@dataclass(frozen=True, slots=True)
class All:
    """Everybody must say yes; ``silent`` where nobody is asked.

    With ``by_tier`` only the first tier that has any function of the point is asked.
    """

    silent: bool = True
    by_tier: bool = False

    def compile(self, chain: Chain[P, bool]) -> Callable[P, bool]:
        """Ask in order, stop at the first no."""
        functions = next((tier for tier in chain if tier), ()) if self.by_tier else flat(chain)
        silent = self.silent

        def everybody(*args: P.args, **kwargs: P.kwargs) -> bool:
            for function in functions:
                if not function(*args, **kwargs):
                    return False
            return True if functions else silent

        return everybody


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One yes is enough; nobody asked is a no."""

    def compile(self, chain: Chain[P, bool]) -> Callable[P, bool]:
        """Ask in order, stop at the first yes."""
        functions = flat(chain)

        def anybody(*args: P.args, **kwargs: P.kwargs) -> bool:
            return any(function(*args, **kwargs) for function in functions)

        return anybody


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """The first answer that is not None counts: a reason, a failed check, a node."""

    def compile(self, chain: Chain[P, R | None]) -> Callable[P, R | None]:
        """Ask in order, stop at the first answer."""
        functions = flat(chain)

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
        """The sum; 0.0 where nobody answers."""
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
            sums: dict[str, float] = {}
            for function in functions:
                for name, score in function(*args, **kwargs).items():
                    sums[name] = sums.get(name, 0.0) + score
            return sums

        return total


@dataclass(frozen=True, slots=True)
class Union:
    """The first tier that names anybody decides; the lists of its plugins are joined, each uid once."""

    def compile(self, chain: Chain[P, Sequence[Candidate]]) -> Callable[P, list[Candidate]]:
        """The joined list, in the order in which the tasks were first named."""

        def union(*args: P.args, **kwargs: P.kwargs) -> list[Candidate]:
            for tier in chain:
                named: dict[str, Candidate] = {}
                for function in tier:
                    for task in function(*args, **kwargs):
                        named.setdefault(task.uid, task)
                if named:
                    return list(named.values())
            return []

        return union


@dataclass(frozen=True, slots=True)
class Tell:
    """Everybody is told, in order; nobody answers."""

    def compile(self, chain: Chain[P, object]) -> Callable[P, None]:
        """Call every function, drop what it returns."""
        functions = flat(chain)

        def tell(*args: P.args, **kwargs: P.kwargs) -> None:
            for function in functions:
                function(*args, **kwargs)

        return tell
