"""Where another scheduler decides otherwise than our plans would: pure bookkeeping over both.

Our plans come cycle by cycle, the other's decisions one by one as the cluster shows them.  As the time of the other's
cycle is unknown, a decision counts as the same if one of our last :data:`RECENT` plans has it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from stromboli.framework.books.plan import Plan

RECENT: Final = 5
"""Plans that the other's decision is held against."""

KEPT: Final = 1000
"""Differences that are kept to be read."""

AGREED: Final = "agreed"
UNSEEN: Final = "unseen"
"""Counts besides those of differences: decided alike, and decided before a plan of ours had looked at the pod."""


class What(StrEnum):
    """How two decisions differ."""

    elsewhere = "bound elsewhere"
    bound_there = "bound only there"
    bound_here = "bound only here"
    evicted_there = "evicted only there"
    evicted_here = "evicted only here"


class Difference(msgspec.Struct, frozen=True):
    """What the two schedulers do with ``pod`` of ``job``: ``there`` the one that runs, ``here`` ours, and ``why``.

    ``time`` is in seconds since 1970; ``cycle`` is the number of our plan that was compared.
    """

    what: What
    uid: str
    pod: str
    job: str
    there: str
    here: str
    time: float
    cycle: int
    why: str = ""


class Pod(NamedTuple):
    """The pod that a decision is about."""

    uid: str
    key: str
    job: str


class Decided(NamedTuple):
    """One plan of ours: the pods to bind, the victims with reasons, and what the other pending pods lack.

    ``waiting`` are all pods that waited in its snapshot, the bound ones included.
    """

    cycle: int
    time: float
    binds: Mapping[str, str]
    evictions: Mapping[str, str]
    waiting: Mapping[str, Pod]
    lacks: Mapping[str, str]
    running: Mapping[str, Pod]

    @classmethod
    def of(cls, plan: Plan, cycle: int, time: float, waiting: Iterable[Pod]) -> Decided:
        """What a plan says; uids are the keys."""
        groups = {one.key: one.conditions[-1].message for one in plan.pod_groups if one.conditions}
        waits = {pod.uid: pod for pod in waiting}
        lacks = {one.uid: one.message for one in plan.pod_conditions}
        lacks |= {uid: groups[pod.job] for uid, pod in waits.items() if pod.job in groups}
        return cls(
            cycle,
            time,
            {one.uid: one.node for one in plan.binds},
            {one.uid: one.reason for one in plan.evictions},
            waits,
            lacks,
            {one.uid: Pod(one.uid, one.key, one.job) for one in plan.evictions},
        )


class Comparison:
    """Holds plans and decisions against each other; ``counts`` by :class:`What`, agreed and unseen.

    ``patience`` is how many seconds our plans may want something that the other does not do, before it is a difference.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._plans: deque[Decided] = deque(maxlen=RECENT)
        self._wanted: dict[tuple[str, What], float] = {}
        self._told: set[tuple[str, What]] = set()
        self.counts: Counter[str] = Counter()
        self.found: deque[Difference] = deque(maxlen=KEPT)

    # ------------------------------------------------------------------ ours

    def decided(self, plan: Decided) -> None:
        """A plan of ours; what it no longer wants has no age any more."""
        self._plans.append(plan)
        wants = {(uid, What.bound_here) for uid in plan.binds} | {(uid, What.evicted_here) for uid in plan.evictions}
        self._wanted = {want: self._wanted.get(want, plan.time) for want in wants}
        self._told &= wants

    def overdue(self, now: float, says: Mapping[str, str]) -> Iterator[Difference]:
        """What our plans have wanted for longer than ``patience`` and the other has not done, each once.

        ``says`` is what pods' conditions say of why they wait, by uid.
        """
        if not self._plans:
            return
        plan = self._plans[-1]
        for (uid, what), since in self._wanted.items():
            if now - since >= self._patience and (uid, what) not in self._told:
                self._told.add((uid, what))
                yield self._note(self._not_done(plan, uid, what, now, says))

    def _not_done(self, plan: Decided, uid: str, what: What, now: float, says: Mapping[str, str]) -> Difference:
        if what is What.bound_here:
            pod, here, there = plan.waiting[uid], plan.binds[uid], says.get(uid, "") or "waits"
        else:
            pod, here, there = plan.running[uid], f"evicted: {plan.evictions[uid]}", "runs"
        return Difference(what, *pod, there, here, now, plan.cycle)

    # ------------------------------------------------------------------ the other's

    def bound(self, pod: Pod, node: str, now: float) -> Difference | None:
        """The other has bound ``pod`` to ``node``."""
        plans = [plan for plan in self._plans if pod.uid in plan.waiting]
        if not plans or any(plan.binds.get(pod.uid) == node for plan in plans):
            self.counts[AGREED if plans else UNSEEN] += 1
            return None
        choosing = [plan for plan in plans if pod.uid in plan.binds]
        plan = (choosing or plans)[-1]
        what = What.elsewhere if choosing else What.bound_there
        here = plan.binds.get(pod.uid) or f"waits: {plan.lacks.get(pod.uid, 'its gang or queue')}"
        return self._note(Difference(what, *pod, node, here, now, plan.cycle))

    def evicted(self, pod: Pod, reason: str, now: float) -> Difference | None:
        """The other has evicted ``pod`` for ``reason``."""
        if not self._plans or any(pod.uid in plan.evictions for plan in self._plans):
            self.counts[AGREED if self._plans else UNSEEN] += 1
            return None
        plan = self._plans[-1]
        return self._note(Difference(What.evicted_there, *pod, reason, "runs", now, plan.cycle))

    def _note(self, found: Difference) -> Difference:
        self.counts[found.what] += 1
        self.found.append(found)
        return found

    def explained(self, found: Difference, why: str) -> Difference:
        """The same with its reason, in its place among those that are kept."""
        known = msgspec.structs.replace(found, why=why)
        for index, one in enumerate(self.found):
            if one is found:
                self.found[index] = known
        return known
