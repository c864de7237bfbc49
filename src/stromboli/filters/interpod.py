"""Pod affinity and anti-affinity: which nodes a pod may use because of the pods in their domains, and their scores.

Pods are counted by domain, and the counts follow the session's placements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from stromboli.filters.columns import Bools, Masks, picked
from stromboli.filters.pod_terms import (
    Domain,
    PodTerm,
    Surroundings,
    TermIndex,
    has_pod_affinity,
    preferred_terms,
    required_affinity,
    required_anti_affinity,
    resolve,
)
from stromboli.filters.pods_on_nodes import Event, Lane, Tally
from stromboli.model.spec import PodAffinityTerm
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import PodTemplate, Task

AFFINITY: Final = 0
"""A node is refused for the pod's own affinity."""
ANTI_AFFINITY: Final = 1
"""A node is refused for the pod's own anti-affinity."""
EXISTING: Final = 2
"""A node is refused for the anti-affinity of pods already in its domain."""

_BITS = tuple(np.uint8(1 << reason) for reason in (AFFINITY, ANTI_AFFINITY, EXISTING))

Weighted: TypeAlias = tuple[PodTerm, int]

NO_PODS: Final = Lane((), (), lambda task: None)
"""The lane of terms that no pod holds."""


class Terms:
    """The pods' own terms, resolved."""

    def __init__(self, around: Surroundings) -> None:
        self._identity, self._namespaces = around.identity, around.namespaces
        self._known: dict[Hashable, tuple[list[Weighted], list[Weighted]]] = {}

    def against(self, task: Task) -> list[Weighted]:
        """Its required anti-affinity."""
        return self._of(task)[0]

    def wishes(self, task: Task) -> list[Weighted]:
        """Its preferred terms."""
        return self._of(task)[1]

    def _of(self, task: Task) -> tuple[list[Weighted], list[Weighted]]:
        key = self._identity(task)
        terms = self._known.get(key)
        if terms is None:
            against = [(resolve(term, task, self._namespaces), 1) for term in required_anti_affinity(task.spec)]
            wishes = [(resolve(each.term, task, self._namespaces), each.weight) for each in preferred_terms(task.spec)]
            terms = self._known[key] = against, wishes
        return terms


class Held:
    """Terms that pods on nodes hold against, or for, others: their weights added up, by domain.

    Only pods on ``rows`` count, if given.
    """

    __slots__ = ("_bucket", "_counts", "_domains", "_index", "_lane", "_read", "_rows", "_terms_of")

    def __init__(
        self,
        around: Surroundings,
        holders: frozenset[PodTemplate],
        terms_of: Callable[[Task], Sequence[Weighted]],
        rows: AbstractSet[int] | None = None,
    ) -> None:
        self._rows = rows
        self._lane = around.pods.lane(lambda task: True if task.template in holders else None) if holders else NO_PODS
        self._bucket: list[Event] = self._lane.bucket(True)
        self._domains, self._terms_of = around.domains, terms_of
        self._index = TermIndex()
        self._counts: list[Ints] = []
        self._read = 0

    def on(self, task: Task) -> list[tuple[Domain, Ints]]:
        """The terms that match ``task``: their domains, and their weight by domain (a 0 at the end)."""
        self._follow()
        numbers = self._index.matching(task)
        return [(self._domains.of(self._index.terms[n].topology_key), self._counts[n]) for n in numbers]

    def near(self, task: Task, row: int, changes: Sequence[Event] = ()) -> int:
        """Weight of the terms that match ``task`` and reach ``row``, as it would be after ``changes``."""
        total = sum(int(counts[domain.groups[row]]) for domain, counts in self.on(task))
        for other, at, sign in changes:
            for term, weight in self._terms_of(other):
                groups = self._domains.of(term.topology_key).groups
                total += sign * weight * (groups[at] == groups[row] >= 0 and term.pods.takes(task))
        return total

    def _follow(self) -> None:
        self._lane.feed()
        fresh = self._bucket[self._read :]
        self._read += len(fresh)
        for task, row, sign in fresh:
            for term, weight in self._terms_of(task) if self._rows is None or row in self._rows else ():
                domain, number = self._domains.of(term.topology_key), self._index.number(term)
                if number == len(self._counts):
                    self._counts.append(np.zeros(domain.size + 1, dtype=np.int64))
                if (group := domain.groups[row]) >= 0:
                    self._counts[number][group] += sign * weight


class Own(NamedTuple):
    """What one pod's own terms count: pods by domain."""

    needs: tuple[tuple[Domain, Tally], ...]
    starts: bool
    avoids: tuple[tuple[Domain, Tally], ...]
    wishes: tuple[tuple[Domain, Tally, int], ...]


class OnceEach:
    """Pods that exclude each other: one in each domain.  See ``Limit`` of the framework."""

    __slots__ = ("_free", "_taken", "domains", "rows")

    def __init__(self, rows: Bools, domain: Domain | None) -> None:
        self.rows, self._taken = rows, set[int]()
        self.domains = np.zeros(len(rows), dtype=np.intp) if domain is None else domain.codes
        self._free = 0 if domain is None else domain.size

    def admits(self, domain: int) -> bool:
        """Whether no pod has gone there."""
        return domain not in self._taken

    def place(self, domain: int) -> bool:
        """Bar the domain, unless it stands for nodes that are in none."""
        if domain != self._free:
            self._taken.add(domain)
        return False


class InterPod:
    """Pod affinity over all nodes of a session.

    ``refusing`` says whether any pod of the session has required terms, ``scoring`` whether any has preferred ones;
    ``identity`` gives what the answers read of a pod.
    """

    def __init__(self, around: Surroundings) -> None:
        self.identity = around.identity
        self._domains, self._pods, self._namespaces = around.domains, around.pods, around.namespaces
        self._rows, self._everywhere = len(around.domains.table), around.domains.table.view()
        self._own: dict[Hashable, Own] = {}
        self._terms = terms = Terms(around)
        forbidding = [each for each in around.speakers if required_anti_affinity(each.spec)]
        preferring = [each for each in around.speakers if preferred_terms(each.spec)]
        forbidding_rows = preferring_rows = None
        if around.at_start and around.speakers:
            forbidding_rows = self._pods.rows_with(lambda task: bool(required_anti_affinity(task.spec)))
            preferring_rows = self._pods.rows_with(lambda task: has_pod_affinity(task.spec))
        self._forbidden = Held(around, _templates(forbidding), terms.against, forbidding_rows)
        self._preferred = Held(around, _templates(preferring), terms.wishes, preferring_rows)
        self._preferred_of_all = Held(around, _templates(preferring), terms.wishes)
        self._forbiddable, self._preferable = TermIndex(), TermIndex()
        self.refusing = bool(forbidding) or any(required_affinity(each.spec) for each in around.speakers)
        self.scoring = bool(preferring)
        for speaker in forbidding:
            self._note(self._forbiddable, required_anti_affinity(speaker.spec), speaker)
        for speaker in preferring:
            self._note(self._preferable, [each.term for each in preferred_terms(speaker.spec)], speaker)

    def refusals(self, task: Task, nodes: NodeRows) -> Masks:
        """Bit :data:`AFFINITY`, :data:`ANTI_AFFINITY` or :data:`EXISTING` where a row is refused.  Shape (rows,)."""
        own = self._owned(task)
        wrong = np.zeros(self._rows, dtype=np.uint8)
        for domain, counts in self._forbidden.on(task):
            wrong |= domain.by_row(counts > 0) * _BITS[EXISTING]
        for domain, tally in own.avoids:
            wrong |= domain.by_row(tally.counts() > 0) * _BITS[ANTI_AFFINITY]
        if own.needs:
            wrong |= ~self._satisfying(own) * _BITS[AFFINITY]
        first = wrong & (~wrong + np.uint8(1))
        return picked(first.astype(np.uint64), nodes)

    def limit(self, task: Task) -> OnceEach | None:
        """How pods like ``task`` exclude each other; None where they need each other, or exclude by several labels."""
        own = self._owned(task)
        mutual = [domain for domain, tally in own.avoids if tally.takes(task)]
        if own.needs or len(mutual) > 1:
            return None
        rows: Bools = self.refusals(task, self._everywhere) == 0
        return OnceEach(rows, mutual[0] if mutual else None)

    def refusal_after(self, task: Task, row: int, changes: Sequence[Event]) -> int | None:
        """The first reason against one row, as it would be after some pods have left their nodes or come to others."""
        own = self._owned(task)
        if own.needs and not self._satisfied_after(own, row, changes):
            return AFFINITY
        if any(tally.near(row, changes) > 0 for _, tally in own.avoids):
            return ANTI_AFFINITY
        return EXISTING if self._forbidden.near(task, row, changes) > 0 else None

    def _satisfied_after(self, own: Own, row: int, changes: Sequence[Event]) -> bool:
        if all(tally.near(row, changes) > 0 for _, tally in own.needs):
            return True
        alone = own.starts and not any(tally.anywhere(changes) for _, tally in own.needs)
        return alone and all(domain.there[row] for domain, _ in own.needs)

    def scores(self, task: Task, nodes: NodeRows) -> Ints:
        """The raw score of each row, see :func:`score`.  Shape (rows,)."""
        total = np.zeros(self._rows, dtype=np.int64)
        for domain, tally, weight in self._owned(task).wishes:
            total += domain.by_row(weight * tally.counts())
        held = self._preferred_of_all if self._owned(task).wishes else self._preferred
        for domain, weights in held.on(task):
            total += domain.by_row(weights)
        return picked(total, nodes)

    def may_refuse(self, task: Task) -> bool:
        """Whether any term, the pod's own or one that a pod of this session may hold, could refuse it a node."""
        own = required_affinity(task.spec) or required_anti_affinity(task.spec)
        return bool(own) or any(True for _ in self._forbiddable.matching(task))

    def may_score(self, task: Task) -> bool:
        """Whether any preferred term, the pod's own or one that a pod of this session may hold, could count."""
        return bool(preferred_terms(task.spec)) or any(True for _ in self._preferable.matching(task))

    def _note(self, index: TermIndex, terms: Iterable[PodAffinityTerm], speaker: Task) -> None:
        for term in terms:
            index.number(resolve(term, speaker, self._namespaces, loose=True))

    def _satisfying(self, own: Own) -> Bools:
        exists = np.ones(self._rows, dtype=bool)
        for domain, tally in own.needs:
            exists &= domain.by_row(tally.counts() > 0)
        if own.starts and not any(tally.total for _, tally in own.needs):
            exists = np.logical_and.reduce([domain.there for domain, _ in own.needs])
        return exists

    def _owned(self, task: Task) -> Own:
        key = self.identity(task)
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = self._count_own(task)
        return own

    def _count_own(self, task: Task) -> Own:
        needs = [resolve(term, task, self._namespaces) for term in required_affinity(task.spec)]
        keys = dict.fromkeys(term.topology_key for term in needs)
        return Own(
            tuple(self._counting(key, needs) for key in keys),
            all(term.pods.takes(task) for term in needs),
            tuple(self._counting(term.topology_key, [term]) for term, _ in self._terms.against(task)),
            tuple((*self._counting(term.topology_key, [term]), weight) for term, weight in self._terms.wishes(task)),
        )

    def _counting(self, topology_key: str, terms: Sequence[PodTerm]) -> tuple[Domain, Tally]:
        domain = self._domains.of(topology_key)
        return domain, Tally(self._pods, [term.pods for term in terms], domain.groups, domain.size)


def _templates(tasks: Iterable[Task]) -> frozenset[PodTemplate]:
    return frozenset(task.template for task in tasks)
