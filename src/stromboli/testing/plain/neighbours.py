"""Filters and scores that look at the pods of other nodes: pod affinity and topology spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor, log
from typing import NamedTuple

from stromboli.framework.extension.reason import Reason
from stromboli.model.spec import NodeSpec, SpreadConstraint
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.testing.plain import matching
from stromboli.testing.plain.matching import Takes, pod_term
from stromboli.testing.plain.world import PlainWorld, Site

AFFINITY = Reason("node(s) didn't match pod affinity rules", resolvable=False, plugin="InterPodAffinity")
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules", plugin="InterPodAffinity")
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules", plugin="InterPodAffinity")
SPREAD = Reason("node(s) didn't match pod topology spread constraints", plugin="PodTopologySpread")
NO_DOMAIN = Reason(f"{SPREAD.text} (missing required label)", resolvable=False, plugin="PodTopologySpread")

HOSTNAME = "kubernetes.io/hostname"

Verdict = Callable[[Site], Reason | None]
Domain = tuple[str, str]
"""A node label and its value."""


# -- Pod affinity ----------------------------------------------------------------------------------------------------


def pod_affinity(world: PlainWorld, task: Task) -> Verdict:
    """Required company must stand in the node's domain, shunned company must not, and no pod there may shun the pod.

    Company counts only if one pod matches all required terms.  The first pod of a group, which matches its own terms
    while no such pod stands anywhere, may use every node that has the labels.
    """
    lacks_company, avoided = _lacks_company(world, task), _avoided(world, task)
    forbidden = domains_against(world, task)

    def verdict(site: Site) -> Reason | None:
        if lacks_company(site.spec.labels):
            return AFFINITY
        here = set(site.spec.labels.items())
        if here & avoided:
            return ANTI_AFFINITY
        return EXISTING if here & forbidden else None

    return verdict


def _lacks_company(world: PlainWorld, task: Task) -> Callable[[Mapping[str, str]], bool]:
    """Tells from a node's labels whether the required company of ``task`` is missing there."""
    needs = [pod_term(term, task, world.namespace_labels) for term in matching.company(task.spec).required]
    keys = list(dict.fromkeys(term.topology_key for term in needs))
    company = domains(world, keys, lambda pod: all(term.takes(pod) for term in needs))
    starts = not company and all(term.takes(task) for term in needs)
    return lambda labels: any(key not in labels or not (company[key, labels[key]] or starts) for key in keys)


def _avoided(world: PlainWorld, task: Task) -> set[Domain]:
    """The domains with pods that ``task`` shuns."""
    shuns = [pod_term(term, task, world.namespace_labels) for term in matching.solitude(task.spec).required]
    return {domain for term in shuns for domain in domains(world, [term.topology_key], term.takes)}


def domains(world: PlainWorld, keys: Sequence[str], takes: Callable[[Task], bool]) -> Counter[Domain]:
    """How many pods that ``takes`` accepts stand in each domain of the node labels ``keys``."""
    found: Counter[Domain] = Counter()
    for site in world.sites:
        here = [(key, site.spec.labels[key]) for key in keys if key in site.spec.labels]
        found.update(domain for pod in site.pods if takes(pod) for domain in here)
    return found


def domains_against(world: PlainWorld, task: Task) -> set[Domain]:
    """The domains in which a pod stands that shuns ``task``.

    In compat mode only nodes count that had such pods when the session opened.
    """
    found: set[Domain] = set()
    everywhere = not world.compat.asks("placed-terms")
    for site in world.sites:
        known = everywhere or any(matching.solitude(pod.spec).required for pod in site.before)
        for pod in site.pods if known else ():
            for term in matching.solitude(pod.spec).required:
                if term.topology_key in site.spec.labels and pod_term(term, pod, world.namespace_labels).takes(task):
                    found.add((term.topology_key, site.spec.labels[term.topology_key]))
    return found


def pod_affinity_score(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """Weights of the pod's wishes met in the node's domains, and of those pods' wishes about it: 0 to 100 by extremes.

    Required affinity of pods already there counts nothing.  In compat mode tasks without wishes of their own are wished
    for only by pods on nodes that had pods with any such affinity when the session opened.
    """
    everywhere = bool(matching.wishes(task.spec)) or not world.compat.asks("placed-terms")
    worth: Counter[Domain] = Counter()
    for site in world.sites:
        if everywhere or any(matching.has_pod_affinity(pod.spec) for pod in site.before):
            met = (pair for pod in site.pods for pair in (*_met(world, task, pod), *_met(world, pod, task)))
            for key, weight in met:
                if key in site.spec.labels:
                    worth[key, site.spec.labels[key]] += weight
    return _by_extremes(worth, sites)


def _by_extremes(worth: Mapping[Domain, int], sites: Sequence[Site]) -> list[int]:
    raw = [sum(worth.get(domain, 0) for domain in site.spec.labels.items()) for site in sites]
    low, high = min(raw), max(raw)
    return [int(100.0 * (float(each - low) / float(high - low))) if high > low else 0 for each in raw]


def _met(world: PlainWorld, asker: Task, asked: Task) -> Iterator[tuple[str, int]]:
    """Topology key and weight of every wish of ``asker`` that ``asked`` meets."""
    for term, weight in matching.wishes(asker.spec):
        if pod_term(term, asker, world.namespace_labels).takes(asked):
            yield term.topology_key, weight


# -- Topology spread -------------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """One constraint, and which pods of the task's namespace it counts; an empty selector counts none."""

    constraint: SpreadConstraint
    takes: Takes
    counts: bool
    namespace: str

    def matching(self, site: Site) -> int:
        """Pods on the node that count; those that are being deleted don't."""
        there = (pod for pod in site.pods if pod.namespace == self.namespace and pod.status is not TaskStatus.Releasing)
        return sum(self.takes(pod.labels) for pod in there) if self.counts else 0

    def includes(self, task: Task, node: NodeSpec) -> bool:
        """Whether the node's pods count at all: by default it must suit the task, whatever its taints."""
        rule = self.constraint
        return (rule.node_affinity_policy == "Ignore" or matching.suits(task.spec, node)) and (
            rule.node_taints_policy != "Honor" or not matching.keeps_out(task.spec, node)
        )


def spreads(task: Task, when: str) -> list[Spread]:
    """The task's constraints of one kind."""
    found = (each for each in task.spec.topology_spread_constraints if each.when_unsatisfiable == when)
    return [_spread(each, task) for each in found]


def _spread(rule: SpreadConstraint, task: Task) -> Spread:
    takes = matching.narrowed(matching.matcher(rule.label_selector), task.labels, rule.match_label_keys)
    selector = rule.label_selector
    empty = selector is not None and not selector.match_labels and not selector.match_expressions
    merged = any(key in task.labels for key in rule.match_label_keys)
    return Spread(rule, takes, merged or not empty, task.namespace)


def has_domains(node: NodeSpec, rules: Sequence[Spread]) -> bool:
    """Whether a node has the labels of all constraints."""
    return all(each.constraint.topology_key in node.labels for each in rules)


def topology_spread(world: PlainWorld, task: Task) -> Verdict:
    """For each DoNotSchedule constraint: pods in the domain, the task included, less the emptiest domain's <= maxSkew.

    Domains are made by nodes that have the labels of all those constraints; with fewer domains than minDomains the
    emptiest counts as having none.
    """
    rules = spreads(task, "DoNotSchedule")
    counts = [_by_domain(world, task, each, rules) for each in rules]

    def verdict(site: Site) -> Reason | None:
        for each, count in zip(rules, counts, strict=True):
            rule = each.constraint
            value = site.spec.labels.get(rule.topology_key)
            if value is None:
                return NO_DOMAIN
            least = min(count.values()) if count and len(count) >= (rule.min_domains or 1) else 0
            if count.get(value, 0) + each.takes(task.labels) - least > rule.max_skew:
                return SPREAD
        return None

    return verdict


def _by_domain(world: PlainWorld, task: Task, each: Spread, rules: Sequence[Spread]) -> dict[str, int]:
    count: dict[str, int] = {}
    for site in world.sites:
        if has_domains(site.spec, rules) and each.includes(task, site.spec):
            value = site.spec.labels[each.constraint.topology_key]
            count[value] = count.get(value, 0) + each.matching(site)
    return count


def topology_spread_score(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """The fewer matching pods in the domains of the ScheduleAnyway constraints, the better: 0 to 100.

    A constraint weighs ln(domains + 2); candidates that lack one of the labels get 0.
    """
    rules = spreads(task, "ScheduleAnyway")
    if not rules:
        return [0] * len(sites)
    known = [site for site in sites if has_domains(site.spec, rules)]
    parts = [_crowding(world, task, each, rules, known) for each in rules]
    raw = {site.row: _rounded(sum(column)) for site, *column in zip(known, *parts, strict=True)}
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    best = {row: 100 * (high + low - each) // high if high else 100 for row, each in raw.items()}
    return [best.get(site.row, 0) for site in sites]


def _crowding(world: PlainWorld, task: Task, each: Spread, rules: Sequence[Spread], known: list[Site]) -> list[float]:
    """What one constraint adds to the raw score of each of the candidates ``known``."""
    rule, key = each.constraint, each.constraint.topology_key
    if key == HOSTNAME:
        found, weight = [each.matching(site) for site in known], log(len(known) + 2)
    else:
        count = _by_domain(world, task, each, rules)
        values = [site.spec.labels[key] for site in known]
        found, weight = [count.get(value, 0) for value in values], log(len(set(values)) + 2)
    return [number * weight + float(rule.max_skew - 1) for number in found]


def _rounded(value: float) -> int:
    """The nearest whole number, halves up."""
    below = floor(value)
    return below + (value - below >= 0.5)
