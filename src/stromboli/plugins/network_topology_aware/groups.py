"""Jobs that are to lie near each other, or apart: PodGroups of one topology group, by annotations.

A group is a name within a namespace, a tier says which domains count, and a policy how the PodGroups of the group share
them: ``same`` (one domain for all) and ``apart`` (each in others) are kept whatever it costs, ``pack`` and ``spread``
where there is a choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.framework.books.domains import NOWHERE, Domains
from stromboli.framework.session.shortages import needed_at_once
from stromboli.model.job import HELD_STATUS, PENDING, Job
from stromboli.model.podgroup import asks_for_group
from stromboli.model.resources.axes import add_to
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.table import Rows
from stromboli.model.topology import ancestors
from stromboli.plugins.network_topology_aware.wishes import (
    APART,
    IGNORED,
    KEPT,
    PACK,
    Reader,
    Wish,
)

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Gradients = list[list[HyperNodeInfo]]


class _Held:
    """In which domains of a tier the jobs of a group hold something; what has moved is looked at when next asked."""

    def __init__(self, members: Iterable[str]) -> None:
        self._of: dict[str, frozenset[int]] = {}
        self._counts: Counter[int] = Counter()
        self._stale = dict.fromkeys(members)

    def forget(self, uid: str) -> None:
        """A task of a job was placed or left its node."""
        self._counts.subtract(self._of.pop(uid, ()))
        self._stale[uid] = None

    def others(self, uid: str, domains_of: Callable[[str], frozenset[int]]) -> Counter[int]:
        """How many jobs but ``uid`` hold something in each domain."""
        for one in self._stale:
            self._of[one] = domains_of(one)
            self._counts.update(self._of[one])
        self._stale.clear()
        return self._counts - Counter(self._of.get(uid, ()))


class TopologyGroups:
    """The groups of a session, and where their jobs lie; :meth:`moved` is told of every placement."""

    def __init__(self, session: ClusterView, domains: Domains) -> None:
        self._session, self._domains = session, domains
        self._wishes: dict[str, Wish] = {}
        self._members: dict[tuple[str, str], list[str]] = {}
        self._above: dict[int, Rows] = {}
        self._held: dict[tuple[str, str], dict[int, _Held]] = {}
        self._needs: dict[tuple[str, str], list[int]] = {}
        infos = session.hyper_nodes
        tiers = {info.tier for info in infos.values() if info.known and info is not infos.top}
        reader = Reader(infos.tiers, tiers)
        for job in session.jobs.peek():
            if asks_for_group(job.annotations):
                self._take(job, *reader.read(job))

    def _take(self, job: Job, wish: Wish | None, problem: str) -> None:
        if wish is not None:
            self._members.setdefault(wish.group, []).append(job.uid)
            self._wishes[job.uid] = wish
        elif PENDING in job.index:
            ignore(self._session, job, problem)

    def of(self, job: Job) -> Wish | None:
        """What ``job`` asks; None where it asks nothing that can be heeded."""
        return self._wishes.get(job.uid)

    def moved(self, job: str) -> None:
        """A task of a job was placed or left its node."""
        wish = self._wishes.get(job)
        if wish is not None:
            self._needs.pop(wish.group, None)
            for held in self._held.get(wish.group, {}).values():
                held.forget(job)

    # ------------------------------------------------------------------ where jobs lie

    def above(self, tier: int) -> Rows:
        """By domain the one of ``tier`` that it lies in, itself included; :data:`NOWHERE` for wider ones."""
        found = self._above.get(tier)
        if found is None:
            infos, index = self._session.hyper_nodes, self._domains.index
            found = np.full(len(self._domains), NOWHERE, dtype=np.intp)
            for number, info in enumerate(self._domains.infos):
                around = (name for name in ancestors(infos, info.name) if infos[name].tier == tier)
                found[number] = index.get(next(around, ""), NOWHERE)
            self._above[tier] = found
        return found

    def _others(self, job: Job, wish: Wish) -> Counter[int]:
        """How many other jobs of the group hold something in each domain of the tier."""
        by_tier = self._held.setdefault(wish.group, {})
        held = by_tier.get(wish.tier)
        if held is None:
            held = by_tier[wish.tier] = _Held(self._members[wish.group])
        return held.others(job.uid, lambda uid: self._domains_of(uid, wish.tier))

    def _domains_of(self, uid: str, tier: int) -> frozenset[int]:
        job, row, at = self._session.jobs.peek_at(uid), self._session.table.statics.row, self._domains.at_tier[tier]
        nodes = {task.node_name for task in (job.of(*HELD_STATUS) if job is not None else ())}
        return frozenset(int(at[row[name]]) for name in nodes if name in row) - {NOWHERE}

    # ------------------------------------------------------------------ domains to try

    def within(self, job: Job, gradients: Gradients, *, evicting: bool) -> tuple[Gradients, str]:
        """What of ``gradients`` the group leaves ``job``, and if that is nothing, why."""
        wish = self.of(job)
        if wish is None or wish.policy not in KEPT:
            return gradients, ""
        allowed = self._apart(job, wish) if wish.policy == APART else self._same(job, wish, evicting=evicting)
        found = [self._left(gradient, wish.tier, allowed) for gradient in self._narrow(gradients, wish.tier)]
        kept = [gradient for gradient in found if gradient]
        return kept, "" if kept or not any(gradients) else self._why(job, wish)

    def _narrow(self, gradients: Gradients, tier: int) -> Gradients:
        """``gradients``, or all domains of the tier where those are wider: parts of the job alone are close."""
        if any(info.tier <= tier for gradient in gradients for info in gradient):
            return gradients
        return [[info for info in self._domains.infos if info.tier == tier]]

    def _left(self, gradient: list[HyperNodeInfo], tier: int, allowed: Bools) -> list[HyperNodeInfo]:
        index, above = self._domains.index, self.above(tier)
        return [info for info in gradient if info.name in index and allowed[above[index[info.name]]]]

    def _apart(self, job: Job, wish: Wish) -> Bools:
        """The domains without others of the group, shape (domains + 1,): the last entry stands for wider ones."""
        allowed = np.ones(len(self._domains) + 1, dtype=bool)
        allowed[list(self._others(job, wish))] = False
        allowed[NOWHERE] = False
        return allowed

    def _same(self, job: Job, wish: Wish, *, evicting: bool) -> Bools:
        """The domain of the others, else those with room for all: now, or, if none has, were they empty."""
        others, allowed = self._others(job, wish), np.zeros(len(self._domains) + 1, dtype=bool)
        if others:
            allowed[[domain for domain, _ in others.most_common(1)]] = len(others) == 1
            return allowed
        need, domains = dict(enumerate(self._need(wish))), self._domains
        now = domains.covering(need, domains.idle) | domains.covering(need, domains.future)
        ever = domains.covering(need, domains.alloc)
        own = self.above(wish.tier) == np.arange(len(domains))
        allowed[:-1] = ever if evicting or not (now & own).any() else now
        return allowed

    def _need(self, wish: Wish) -> Sequence[int]:
        """What all jobs of the group together need to start."""
        total = self._needs.get(wish.group)
        if total is not None:
            return total
        total = self._needs[wish.group] = []
        for uid in self._members[wish.group]:
            if (job := self._session.jobs.peek_at(uid)) is not None and PENDING in job.index:
                add_to(total, needed_at_once(job, job.tasks.values()))
        return total

    def _why(self, job: Job, wish: Wish) -> str:
        others, names = self._others(job, wish), self._domains.infos
        group = f"topology group {wish.group[1]:.63}"
        places = ", ".join(names[domain].name for domain in sorted(others)[:8])
        if wish.policy == APART:
            return f"{group} keeps its PodGroups apart: no HyperNode of tier {wish.tier} is left besides {places}"
        if len(others) == 1:
            return f"{group} lies in {places}, which has no room for job {job.name}"
        if others:
            return f"{group} lies in several HyperNodes of tier {wish.tier}: {places}; job {job.name} cannot join it"
        count = len(self._members[wish.group])
        return f"no HyperNode of tier {wish.tier} has room for all {count} PodGroups of {group}, even if it were empty"

    # ------------------------------------------------------------------ the best domain

    def preference(self, job: Job) -> Floats | None:
        """By domain how well it suits, 0 to 1, for a job that packs or spreads; None for any other."""
        wish = self.of(job)
        if wish is None or wish.policy in KEPT or not (others := self._others(job, wish)):
            return None
        counts = np.zeros(len(self._domains) + 1)
        counts[list(others)] = list(others.values())
        near: Floats = counts[self.above(wish.tier)] / max(others.values())
        return near if wish.policy == PACK else 1.0 - near


def ignore(session: ClusterView, job: Job, problem: str) -> None:
    """Record an event on ``job`` that its group has no effect."""
    session.pod_groups.record_event(job, "Warning", IGNORED, problem)
