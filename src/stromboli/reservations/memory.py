"""What the scheduler remembers of reservations between cycles: records, and the numbers by key that are stored.

Keys consist of a kind and a name: that of a job, or those of a pod and a node.  Unknown keys are ignored, and dropped
when the memory is stored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

MEMORY: Final = "stromboli/reservations"
"""The name under which snapshots and plans carry the memory."""


class PodOnNode(NamedTuple):
    """A reservation: the uid of a pod, and the name of the node on which it holds room."""

    uid: str
    node: str


class Hold(NamedTuple):
    """Since when a pod has held its room, in seconds since 1970.

    Its age is counted from ``ages_from``, which is later by the time that terminating pods were given on the node;
    that time is taken off up to ``excluded_until``.  Both are None until the age is first computed.
    """

    since: float
    ages_from: float | None = None
    excluded_until: float | None = None

    def age(self, now: float) -> float:
        """How long the room has been held, in seconds, without what was taken off."""
        return now - (self.since if self.ages_from is None else self.ages_from)

    def exclude(self, now: float, ends: float) -> Self:
        """Take off the time in which pods may still terminate on the node, which is until ``ends``.

        Pods that terminate at the first look have had that time since the room was held, later ones from now on.  Each
        time is taken off once, and given back where pods leave early.  A clock that goes back restarts the count.
        """
        since = min(self.since, now)
        if self.ages_from is None or self.excluded_until is None:
            begin = until = max(since, ends)
        else:
            until, latest = self.excluded_until, max(ends, now)
            more = latest - max(until, now)
            begin = min(max(self.ages_from + more, since), latest)
            until = latest if more else until
        return self._replace(since=since, ages_from=begin, excluded_until=until)


class Delay(NamedTuple):
    """Since when a job has been about to evict pods, and by how many seconds its slowest victim exceeds the usual.

    ``since`` is None where that is not known, ``excess`` where the job has not postponed an eviction.
    """

    since: float | None = None
    excess: float | None = None

    def updated(self, later: Delay) -> Delay:
        """This record with what ``later`` knows in its place."""
        return Delay(
            self.since if later.since is None else later.since, self.excess if later.excess is None else later.excess
        )


@dataclass(slots=True)
class Memory:
    """The memory of one scheduler.

    ``holds`` are reservations, ``cooldown`` says by uid until when jobs may not hold anything new, ``delays`` are those
    of evictions by uid of the job.  ``stated`` says since when pods state reservations that others found; no session
    writes it or decides by it.
    """

    holds: dict[PodOnNode, Hold] = field(default_factory=dict)
    cooldown: dict[str, float] = field(default_factory=dict)
    delays: dict[str, Delay] = field(default_factory=dict)
    stated: dict[PodOnNode, float] = field(default_factory=dict)


_HELD: Final = "held"
_AGES_FROM: Final = "aging"
_EXCLUDED: Final = "ending"
_COOLDOWN: Final = "cooling"
_DELAYED: Final = "asking"
_EXCESS: Final = "excess"
_STATED: Final = "stated"
KINDS: Final = (_HELD, _AGES_FROM, _EXCLUDED, _COOLDOWN, _DELAYED, _EXCESS, _STATED)


def decode(stored: Mapping[str, float]) -> Memory:
    """The records of ``stored``."""
    values: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for key, value in stored.items():
        kind, _, name = key.partition(" ")
        if kind in values:
            values[kind][name] = value
    ages, excluded = values[_AGES_FROM], values[_EXCLUDED]
    since, excess = values[_DELAYED], values[_EXCESS]
    return Memory(
        {_pod(name): Hold(when, ages.get(name), excluded.get(name)) for name, when in values[_HELD].items()},
        values[_COOLDOWN],
        {uid: Delay(since.get(uid), excess.get(uid)) for uid in since | excess},
        {_pod(name): when for name, when in values[_STATED].items()},
    )


def encode(memory: Memory) -> dict[str, float]:
    """``memory`` as it is stored; :func:`decode` reads it."""
    return {key: value for key, value in _entries(memory) if value is not None}


def _entries(memory: Memory) -> Iterator[tuple[str, float | None]]:
    for (uid, node), hold in memory.holds.items():
        yield f"{_HELD} {uid} {node}", hold.since
    for (uid, node), hold in memory.holds.items():
        yield f"{_AGES_FROM} {uid} {node}", hold.ages_from
        yield f"{_EXCLUDED} {uid} {node}", hold.excluded_until
    for uid, until in memory.cooldown.items():
        yield f"{_COOLDOWN} {uid}", until
    for uid, delay in memory.delays.items():
        yield f"{_DELAYED} {uid}", delay.since
        yield f"{_EXCESS} {uid}", delay.excess
    for (uid, node), when in memory.stated.items():
        yield f"{_STATED} {uid} {node}", when


def _pod(name: str) -> PodOnNode:
    uid, _, node = name.rpartition(" ")
    return PodOnNode(uid, node)
