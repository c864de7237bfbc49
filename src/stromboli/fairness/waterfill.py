"""Water filling: what each queue deserves of the cluster when weights share it out round by round.

Each round gives every queue that is not satisfied yet its weight's part of what remains, cut to what it may have and
what it asks for, raised to what is guaranteed to it; what the round did not use up is shared out in the next one.
Amounts are floats by column (see :data:`~stromboli.model.resources.axes.Vector`), all vectors of one length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stromboli.model.resources.amounts import MIN, le
from stromboli.model.resources.axes import PODS

Floats = Sequence[float]


@dataclass(slots=True)
class Claim:
    """The claim of the queue ``name``.

    ``limit`` is the most it may get (infinite: no limit), ``request`` what it asks for; ``guarantee`` comes to it
    whatever it asks for, even beyond the limit.  ``deserved`` is what it has been given so far.
    """

    name: str
    weight: int
    request: Floats
    limit: Floats
    guarantee: Floats
    deserved: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deserved = self.deserved or [0.0] * len(self.request)

    def after(self, offered: Floats, part: float) -> list[float]:
        """What it would deserve with ``part`` of ``offered`` more."""
        rows = zip(self.deserved, offered, self.limit, self.request, self.guarantee, strict=True)
        return [max(min(have + more * part, limit, asked), sure) for have, more, limit, asked, sure in rows]

    def satisfied(self) -> bool:
        """Whether it deserves all that it asks for, within the tolerance."""
        return all(map(le, self.request, self.deserved))


@dataclass(slots=True)
class Round:
    """What one round did.

    ``weight`` is that of all claims in ``raised``; ``capped`` are those that it could not raise any more although they
    ask for more; ``remaining`` is left for the next round.  A round without weight raises no claim.
    """

    weight: int
    remaining: list[float]
    raised: list[Claim] = field(default_factory=list)
    satisfied: list[Claim] = field(default_factory=list)
    capped: list[Claim] = field(default_factory=list)


def pour(total: Floats, claims: Sequence[Claim]) -> Iterator[Round]:
    """Share ``total`` out, changing the claims' ``deserved``; yields every round.

    It ends when nothing is left, when a round changes nothing, or when no weight is left to share by.
    """
    unmet, remaining = list(claims), [float(amount) for amount in total]
    first = True
    while weight := sum(claim.weight for claim in unmet):
        done = _share_out(unmet, weight, remaining, first)
        yield done
        if _is_empty(done.remaining) or done.remaining == remaining:
            return
        met = {claim.name for claim in (*done.satisfied, *done.capped)}
        unmet = [claim for claim in unmet if claim.name not in met]
        remaining, first = done.remaining, False
    yield Round(0, remaining)


def _share_out(unmet: Sequence[Claim], weight: int, offered: Floats, first: bool) -> Round:
    grown, shrunk = [0.0] * len(offered), [0.0] * len(offered)
    result = Round(weight, [], list(unmet))
    for claim in unmet:
        before, claim.deserved = claim.deserved, claim.after(offered, claim.weight / weight)
        for column, (new, old) in enumerate(zip(claim.deserved, before, strict=True)):
            (grown if new > old else shrunk)[column] += abs(new - old)
        if claim.satisfied():
            result.satisfied.append(claim)
        elif not first and claim.deserved == before:
            # In the first round even nothing is a change: before it, the claim had not been looked at.
            result.capped.append(claim)
    rows = zip(offered, shrunk, grown, strict=True)
    result.remaining = [max(left + back - out, 0.0) for left, back, out in rows]
    return result


def _is_empty(amounts: Floats) -> bool:
    """Whether nothing is left; pods are not looked at."""
    return all(amount < MIN for column, amount in enumerate(amounts) if column != PODS)
