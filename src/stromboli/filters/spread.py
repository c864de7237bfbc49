"""Topology spread: how evenly pods that a selector takes are spread over the domains of a node label.

Pods are counted by domain, and the counts follow the session's placements.  Pods that are being deleted do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import log
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.filters import scores as kube
from stromboli.filters.columns import Bools, Floats, Masks, picked
from stromboli.filters.pod_terms import Domain, Surroundings
from stromboli.filters.pods_on_nodes import PodSelector, Tally
from stromboli.filters.selectors import Clauses, clauses, rows_suiting, takes, with_label_keys
from stromboli.filters.taints import TaintColumn, admitting_rows
from stromboli.model.spec import LabelSelector, SpreadConstraint
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task

MISSING_LABEL: Final = 0
"""A node is refused because it lacks the label of a constraint."""
SKEWED: Final = 1
"""A node is refused because its domain would hold too many of the pods."""

MUST: Final = "DoNotSchedule"
SHOULD: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
SYSTEM_DEFAULTS: Final = ((HOSTNAME, 3), (ZONE, 5))
"""(topology key, max skew) of the preferences of a pod that states no constraint but belongs to a service or owner."""


class Constraint(NamedTuple):
    """A constraint made ready.  ``wanted`` are the pods that count: None or no clauses at all mean no pod."""

    topology_key: str
    wanted: Clauses | None
    max_skew: int
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


def constraints(task: Task, action: str) -> list[Constraint]:
    """The pod's own constraints of that action (:data:`MUST` or :data:`SHOULD`)."""
    return [_ready(each, task) for each in task.spec.topology_spread_constraints if each.when_unsatisfiable == action]


def preferences(task: Task, default_selector: LabelSelector | None) -> list[Constraint]:
    """What the pod's score looks at: its own constraints, or the system's with ``default_selector`` if it has none."""
    if task.spec.topology_spread_constraints:
        return constraints(task, SHOULD)
    wanted = clauses(default_selector)
    return [Constraint(key, wanted, skew, 1, True, False) for key, skew in SYSTEM_DEFAULTS] if wanted else []


def _ready(each: SpreadConstraint, task: Task) -> Constraint:
    wanted = with_label_keys(clauses(each.label_selector), task.labels, each.match_label_keys)
    policies = each.node_affinity_policy != "Ignore", each.node_taints_policy == "Honor"
    return Constraint(each.topology_key, wanted, each.max_skew, each.min_domains or 1, *policies)


def _normalised(raw: Ints) -> Ints:
    return kube.beside_extremes(raw, int(raw.min()), int(raw.max())) if len(raw) else raw


class Counted(NamedTuple):
    """A constraint with the pods that count, by domain or, for a preference by host name, by row."""

    constraint: Constraint
    domain: Domain
    tally: Tally
    present: npt.NDArray[np.intp]
    own: bool

    def verdicts(self) -> npt.NDArray[np.uint8]:
        """What the constraint says of each row: 0, or the bit of the reason against it."""
        counts, enough = self.tally.counts(), len(self.present) >= self.constraint.min_domains
        least = int(counts[self.present].min()) if enough else 0
        skewed = counts + (int(self.own) - least) > self.constraint.max_skew
        by_domain = skewed.astype(np.uint8) * np.uint8(1 << SKEWED)
        by_domain[-1] = 1 << MISSING_LABEL
        return self.domain.by_row(by_domain)


class Evenly:
    """Pods spread over the domains of one constraint.  See ``Limit`` of the framework."""

    __slots__ = ("_counts", "_least", "_most", "_own", "_present", "_with", "domains", "rows")

    def __init__(self, counted: Counted) -> None:
        self.rows, self.domains = counted.domain.there, counted.domain.codes
        self._counts: list[int] = counted.tally.counts().tolist()
        enough = len(counted.present) >= counted.constraint.min_domains
        self._present = frozenset[int](counted.present.tolist() if enough else ())
        self._with = Counter(self._counts[domain] for domain in self._present)
        """How many domains hold so many pods."""
        self._own, self._most = int(counted.own), counted.constraint.max_skew
        self._least = min(self._with, default=0)

    def admits(self, domain: int) -> bool:
        """Whether one more pod there keeps the skew to the domain with the fewest pods within ``maxSkew``."""
        return self._counts[domain] + self._own - self._least <= self._most

    def place(self, domain: int) -> bool:
        """Count a pod; whether the domain with fewest has more than before."""
        if not self._own:
            return False
        before = self._counts[domain]
        self._counts[domain] = before + 1
        if domain not in self._present:
            return False
        self._with[before] -= 1
        self._with[before + 1] += 1
        if before > self._least or self._with[before]:
            return False
        self._least += 1  # it was the last of those with fewest, and has one more now
        return True


class Wishes(NamedTuple):
    """What a pod's score looks at, and the rows that are scored at all."""

    counted: tuple[Counted, ...]
    scored: Bools


class Spread:
    """Topology spread over all nodes of a session.

    ``default_selector`` gives the selector of the services and owners of a pod, or None.  ``refusing`` says whether any
    pod of the session has a constraint that must hold; ``identity`` gives what the refusals read of a pod.
    """

    def __init__(
        self,
        around: Surroundings,
        taints: TaintColumn,
        default_selector: Callable[[Task], LabelSelector | None] = lambda _task: None,
    ) -> None:
        self.identity = around.identity
        self.refusing = any(constraints(each, MUST) for each in around.speakers)
        self._domains, self._pods, self._taints = around.domains, around.pods, taints
        self._default_selector = default_selector
        self._everywhere = around.domains.table.view()
        self._musts: dict[Hashable, tuple[Counted, ...]] = {}
        self._wishes: dict[Hashable, Wishes | None] = {}

    def score_identity(self, task: Task) -> Hashable:
        """What the scores read of a pod."""
        own = bool(task.spec.topology_spread_constraints)
        return (self.identity(task), None if own else clauses(self._default_selector(task)))

    def wishes(self, task: Task) -> bool:
        """Whether the pod has a preference, of its own or the system's."""
        return bool(preferences(task, self._default_selector(task)))

    def refusals(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Bit :data:`MISSING_LABEL` or :data:`SKEWED` where a row is refused; None for a pod without constraints."""
        musts = self._counted_musts(task)
        if not musts:
            return None
        first, *others = musts
        masks = first.verdicts()
        for must in others:
            masks = np.where(masks == 0, must.verdicts(), masks)
        return picked(masks.astype(np.uint64), nodes)

    def limit(self, task: Task) -> Evenly | None:
        """How pods like ``task`` are spread; None where several constraints say so, or not all nodes are counted."""
        musts = self._counted_musts(task)
        return Evenly(musts[0]) if len(musts) == 1 and musts[0].tally.covers(musts[0].domain.groups) else None

    def scores(self, task: Task, candidates: NodeRows) -> Ints | None:
        """The score of each candidate, 0 to 100, shape (rows,); None for a pod without preferences."""
        wishes = self._counted_wishes(task)
        if wishes is None:
            return None
        scored = picked(wishes.scored, candidates)
        raw = np.zeros(len(candidates))
        for wish in wishes.counted:
            raw += self._part(wish, candidates, scored)
        whole = np.floor(raw)
        rounded = (whole + (raw - whole >= 0.5)).astype(np.int64)[scored]
        answer = np.zeros(len(candidates), dtype=np.int64)
        answer[scored] = _normalised(rounded)
        return answer

    def _part(self, wish: Counted, candidates: NodeRows, scored: Bools) -> Floats:
        """What one preference adds: pods in the row's domain, weighted by how many domains there are, and its skew."""
        skew = float(wish.constraint.max_skew - 1)
        if wish.constraint.topology_key == HOSTNAME:
            counts, domains = picked(wish.tally.counts()[:-1], candidates), int(np.count_nonzero(scored))
            part = counts.astype(np.float64) * log(domains + 2) + skew
            return np.where(picked(wish.domain.there, candidates), part, 0.0)
        domains = len(wish.domain.among(candidates.rows[scored]))
        by_domain = wish.tally.counts().astype(np.float64) * log(domains + 2) + skew
        by_domain[-1] = 0.0
        return wish.domain.by_row(by_domain, candidates)

    def _counted_musts(self, task: Task) -> tuple[Counted, ...]:
        if not task.spec.topology_spread_constraints:
            return ()
        key = self.identity(task)
        musts = self._musts.get(key)
        if musts is None:
            every = constraints(task, MUST)
            labelled = self._with_labels(every)
            musts = self._musts[key] = tuple(self._count(each, task, labelled) for each in every)
        return musts

    def _counted_wishes(self, task: Task) -> Wishes | None:
        key = self.score_identity(task)
        if key not in self._wishes:
            every = preferences(task, self._default_selector(task))
            labelled = self._with_labels(every if task.spec.topology_spread_constraints else [])
            counted = tuple(self._count(each, task, labelled, by_row=each.topology_key == HOSTNAME) for each in every)
            self._wishes[key] = Wishes(counted, labelled) if every else None
        return self._wishes[key]

    def _with_labels(self, every: Sequence[Constraint]) -> Bools:
        """Rows that have the labels of all constraints."""
        labelled = np.ones(len(self._everywhere), dtype=bool)
        for each in every:
            labelled &= self._domains.of(each.topology_key).there
        return labelled

    def _count(self, each: Constraint, task: Task, labelled: Bools, by_row: bool = False) -> Counted:
        domain = self._domains.of(each.topology_key)
        if by_row:
            size = len(self._everywhere)
            groups, present = list(range(size)), np.arange(size)
        else:
            there = domain.there & labelled & self._welcoming(each, task)
            groups, size, present = domain.groups, domain.size, domain.among(there)
            if not np.array_equal(there, domain.there):
                groups = np.where(there, groups, -1).tolist()
        pods = PodSelector(each.wanted or None, (task.namespace,))
        tally = Tally(self._pods, [pods], groups, size, self._pods.terminating)
        return Counted(each, domain, tally, present, takes(each.wanted, task.labels))

    def _welcoming(self, each: Constraint, task: Task) -> Bools:
        """Rows that take part, going by the constraint's policies."""
        rows = np.ones(len(self._everywhere), dtype=bool)
        if each.honor_affinity:
            rows &= rows_suiting(task.spec, self._everywhere)
        if each.honor_taints:
            rows &= admitting_rows(task.spec.tolerations, self._taints, self._everywhere)
        return rows
