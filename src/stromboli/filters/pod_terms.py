"""What pods say of other pods: terms of affinity and spread, made ready for matching."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from stromboli.filters.columns import Bools, Entry, picked
from stromboli.filters.pods_on_nodes import Event, PodSelector, PodsOnNodes
from stromboli.filters.selectors import clauses, clue, takes, with_label_keys
from stromboli.model.spec import PodAffinity, PodAffinityTerm, PodSpec, WeightedTerm
from stromboli.model.table import NodeRows, NodeTable
from stromboli.model.task import PodTemplate, Task

NamespaceLabels: TypeAlias = Mapping[str, Mapping[str, str]]
"""Labels by name of namespace."""


class PodTerm(NamedTuple):
    """Pods, and the node label whose values make domains."""

    topology_key: str
    pods: PodSelector


# -- As written ------------------------------------------------------------------------------------------------------


def required_affinity(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Terms of which each needs a pod in the node's domain."""
    return _affinity(spec).required


def required_anti_affinity(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Terms that allow no pod in the node's domain."""
    return _anti_affinity(spec).required


def preferred_terms(spec: PodSpec) -> list[WeightedTerm]:
    """Preferred terms; those of the anti-affinity with their weights negated."""
    against = (WeightedTerm(-each.weight, each.term) for each in _anti_affinity(spec).preferred)
    return [*_affinity(spec).preferred, *against]


def has_pod_affinity(spec: PodSpec) -> bool:
    """Whether the pod states any affinity or anti-affinity to pods, be it empty."""
    return spec.affinity is not None and bool(spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity)


def label_keys(specs: Iterable[PodSpec]) -> tuple[str, ...]:
    """All label keys of pods that the specs' terms of affinity and spread look at, in the order of their mention."""
    keys: dict[str, None] = {}
    for spec in specs:
        keys.update(dict.fromkeys(_keys(spec)))
    return tuple(keys)


# -- Ready for matching ----------------------------------------------------------------------------------------------


def resolve(term: PodAffinityTerm, task: Task, namespaces: NamespaceLabels, *, loose: bool = False) -> PodTerm:
    """The term of a pod, with its namespaces by name and its label keys merged into its selector.

    Neither namespaces nor a namespace selector means the pod's own; an empty namespace selector means all.  ``loose``
    leaves the label keys out, which makes a term that matches at least as many pods.
    """
    wanted = clauses(term.label_selector)
    if not loose:
        wanted = with_label_keys(wanted, task.labels, term.match_label_keys, term.mismatch_label_keys)
    return PodTerm(term.topology_key, PodSelector(wanted, _namespaces(term, task.namespace, namespaces)))


def _namespaces(term: PodAffinityTerm, own: str, known: NamespaceLabels) -> tuple[str, ...] | None:
    if term.namespace_selector is None:
        return term.namespaces or (own,)
    wanted = clauses(term.namespace_selector)
    if wanted == ():
        return None
    selected = (name for name, labels in known.items() if takes(wanted, labels))
    return tuple(dict.fromkeys((*term.namespaces, *selected)))


class TermIndex:
    """Terms, numbered, and found by the pods that they match."""

    __slots__ = ("_by_clue", "_numbers", "terms")

    def __init__(self) -> None:
        self.terms: list[PodTerm] = []
        self._numbers: dict[PodTerm, int] = {}
        self._by_clue: dict[tuple[str, str] | None, list[int]] = {}

    def number(self, term: PodTerm) -> int:
        """The number of ``term``, a new one at the first time."""
        found = self._numbers.get(term)
        if found is None:
            found = self._numbers[term] = len(self.terms)
            self.terms.append(term)
            self._by_clue.setdefault(clue(term.pods.wanted), []).append(found)
        return found

    def matching(self, task: Task) -> Iterator[int]:
        """Numbers of the terms that match the pod."""
        for label in (None, *task.labels.items()):
            for number in self._by_clue.get(label, ()):
                if self.terms[number].pods.takes(task):
                    yield number


# -- Domains ---------------------------------------------------------------------------------------------------------


class Domain:
    """The domains that one node label makes.  ``codes`` are the numbers of the rows' domains, :attr:`size` without one.

    ``groups[row]`` numbers the row's domain from 0 to ``size - 1``, -1 where the node lacks the label.  Arrays
    by domain have ``size + 1`` entries; the last one stands for rows without the label.
    """

    __slots__ = ("codes", "groups", "size", "there")

    def __init__(self, codes: npt.NDArray[np.int32], size: int) -> None:
        self.size = size
        self.there = codes >= 0
        self.groups: list[int] = codes.tolist()
        self.codes = np.where(self.there, codes, size).astype(np.intp)

    def by_row(self, by_domain: npt.NDArray[Entry], nodes: NodeRows | None = None) -> npt.NDArray[Entry]:
        """Each row's entry of an array by domain; for all nodes, or for ``nodes``."""
        return by_domain.take(self.codes if nodes is None else picked(self.codes, nodes))

    def among(self, rows: npt.NDArray[np.intp] | Bools) -> npt.NDArray[np.intp]:
        """The different domains of ``rows``, ascending; :attr:`size` among them if some row lacks the label."""
        present = np.zeros(self.size + 1, dtype=bool)
        present[self.codes[rows]] = True
        return np.flatnonzero(present)


class Domains:
    """The domains of a table's nodes, by label, made when first asked for."""

    __slots__ = ("_made", "table")

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self._made: dict[str, Domain] = {}

    def of(self, topology_key: str) -> Domain:
        """The domains of label ``topology_key``."""
        domain = self._made.get(topology_key)
        if domain is None:
            column = self.table.statics.label(topology_key)
            domain = self._made[topology_key] = Domain(column.codes, len(column.values))
        return domain


class Surroundings:
    """What rules about other pods need to know in one session.

    ``speakers`` holds one task for each template and namespace, of all pods that say something of other pods and are on
    nodes or may come there; ``keys`` the pod labels that they look at.  With ``at_start`` the terms of a pod count for
    others only on nodes where such a pod stood when the session opened, as in the reference.
    """

    __slots__ = ("at_start", "domains", "keys", "namespaces", "pods", "speakers")

    def __init__(
        self,
        domains: Domains,
        pods: PodsOnNodes,
        namespaces: NamespaceLabels,
        speakers: list[Task],
        at_start: bool = False,
    ) -> None:
        self.domains, self.pods, self.namespaces, self.speakers = domains, pods, namespaces, speakers
        self.at_start = at_start
        self.keys = label_keys(speaker.spec for speaker in speakers)

    @classmethod
    def of(
        cls,
        table: NodeTable,
        pods: Callable[[], Iterable[tuple[Task, int]]],
        log: Sequence[Event],
        pending: Callable[[], Iterable[Task]],
        namespaces: NamespaceLabels,
        at_start: bool = False,
        templates: Iterable[PodTemplate] | None = None,
    ) -> Self:
        """The surroundings of a session: ``pods`` gives those on nodes at its start, ``pending`` those that wait.

        ``templates`` are all of theirs, where they are known beforehand.
        """
        found = _speakers(lambda: chain(pending(), (task for task, _ in pods())), templates)
        return cls(Domains(table), PodsOnNodes(pods, log), namespaces, found, at_start)

    def identity(self, task: Task) -> Hashable:
        """What tells pods apart to which terms may speak differently."""
        return (task.template, task.namespace, *[task.labels.get(key) for key in self.keys])


# -- Parts -----------------------------------------------------------------------------------------------------------

_NOTHING = PodAffinity()


def _affinity(spec: PodSpec) -> PodAffinity:
    return (spec.affinity and spec.affinity.pod_affinity) or _NOTHING


def _anti_affinity(spec: PodSpec) -> PodAffinity:
    return (spec.affinity and spec.affinity.pod_anti_affinity) or _NOTHING


def _speakers(tasks: Callable[[], Iterable[Task]], templates: Iterable[PodTemplate] | None) -> list[Task]:
    if templates is None:
        templates = dict.fromkeys(task.template for task in tasks())
    vocal = {template for template in templates if _speaks(template.spec)}
    if not vocal:
        return []
    return list({(task.template, task.namespace): task for task in tasks() if task.template in vocal}.values())


def _speaks(spec: PodSpec) -> bool:
    affinity = spec.affinity
    return bool(
        spec.topology_spread_constraints or (affinity and (affinity.pod_affinity or affinity.pod_anti_affinity))
    )


def _keys(spec: PodSpec) -> Iterator[str]:
    weighted = (each.term for each in preferred_terms(spec))
    for term in (*required_affinity(spec), *required_anti_affinity(spec), *weighted):
        yield from (want.key for want in clauses(term.label_selector) or ())
        yield from (*term.match_label_keys, *term.mismatch_label_keys)
    for constraint in spec.topology_spread_constraints:
        yield from (want.key for want in clauses(constraint.label_selector) or ())
        yield from constraint.match_label_keys
