"""Laws about pods that may share a node or domain: host ports, pod affinity and anti-affinity, topology spread.

All are asked about the final state. Each comment says why that is sound though the scheduler placed one pod after
another and judged the state it saw at that moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.support.checker_objects import Node, Obj, Pod, affinity_matches, selects, taints_tolerated
from tests.support.checker_world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


# ---------------------------------------------------------------- host ports


class HostPort(NamedTuple):
    """A port of the node that a pod claims."""

    port: int
    protocol: str
    address: str

    def collides(self, other: HostPort) -> bool:
        """Same port and protocol, and addresses that overlap (0.0.0.0 overlaps with all)."""
        same = (self.port, self.protocol) == (other.port, other.protocol)
        return same and (self.address == other.address or "0.0.0.0" in (self.address, other.address))


def host_ports(pod: Pod) -> list[HostPort]:
    """All host ports of the pod's containers and sidecars."""
    sidecars = [one for one in pod.spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    ports = [port for one in (*(pod.spec.get("containers") or ()), *sidecars) for port in one.get("ports") or ()]
    return [
        HostPort(int(port["hostPort"]), port.get("protocol") or "TCP", port.get("hostIP") or "0.0.0.0")
        for port in ports
        if port.get("hostPort")
    ]


def ports_collide(left: Pod, right: Pod) -> bool:
    """Whether the two pods cannot share a node."""
    return any(mine.collides(other) for mine in host_ports(left) for other in host_ports(right))


def port_conflicts(world: World) -> Iterator[str]:
    """A port is taken until its pod is gone, so order does not matter: no newly bound pod may share one."""
    for node, pods in world.by_place().items():
        holders = [pod for pod in pods if host_ports(pod) and not pod.evicted]
        for at, left in enumerate(holders):
            for right in holders[at + 1 :]:
                if (left.bound or right.bound) and ports_collide(left, right):
                    yield f"{left.key} and {right.key} claim the same host port on {node}"


# ---------------------------------------------------------------- pod affinity and anti-affinity


def terms_of(pod: Pod, kind: str) -> list[Obj]:
    """Required terms of podAffinity or podAntiAffinity."""
    stated = (pod.spec.get("affinity") or {}).get(kind) or {}
    return list(stated.get(REQUIRED) or ())


def covers_namespace(term: Obj, owner: Pod, other: Pod, world: World) -> bool:
    """Whether a term looks at the other pod's namespace; without any choice it looks at its owner's own."""
    listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not listed and selector is None:
        return owner.namespace == other.namespace
    return other.namespace in listed or selects(selector, world.namespace_labels(other.namespace))


def keys_agree(term: Obj, owner: Pod, other: Pod) -> bool:
    """matchLabelKeys and mismatchLabelKeys: labels the owner has must be equal (or unequal) on the other pod."""
    mine, theirs = owner.labels, other.labels
    same = all(theirs.get(key) == mine[key] for key in term.get("matchLabelKeys") or () if key in mine)
    return same and all(theirs.get(key) != mine[key] for key in term.get("mismatchLabelKeys") or () if key in mine)


def term_matches(term: Obj, owner: Pod, other: Pod, world: World) -> bool:
    """Whether the other pod is one of those the term speaks of."""
    chosen = selects(term.get("labelSelector"), other.labels) and keys_agree(term, owner, other)
    return chosen and covers_namespace(term, owner, other, world)


def same_domain(world: World, key: str, left: str, right: str) -> bool:
    """Whether both nodes carry the topology key with one value."""
    value = world.nodes[left].labels.get(key) if left in world.nodes else None
    return value is not None and right in world.nodes and world.nodes[right].labels.get(key) == value


def repels(owner: Pod, other: Pod, at: str, there: str, world: World) -> bool:
    """Whether a required anti-affinity term of the owner (on node `at`) forbids the other pod (on node `there`)."""
    terms = terms_of(owner, "podAntiAffinity")
    return any(
        term_matches(term, owner, other, world) and same_domain(world, term["topologyKey"], at, there) for term in terms
    )


def places(left: Pod, right: Pod) -> tuple[str, str]:
    """The nodes of two placed pods."""
    return str(left.place), str(right.place)


def anti_affinity_broken(world: World) -> Iterator[str]:
    """Kubernetes tests both directions, so the later pod of a pair was refused: the final state decides. Pods
    that the plan evicts are left out, as a pod may be placed in the belief that they are gone. In compat mode a pair
    placed in this cycle must repel one another both ways, as the reference tests then only the later one's terms."""
    settled = [pod for pod in world.pods.values() if pod.place and not pod.evicted]
    for owner in (pod for pod in settled if terms_of(pod, "podAntiAffinity")):
        for other in settled:
            if other.key == owner.key or not (owner.bound or other.bound):
                continue
            if world.compat and owner.bound and other.bound and not repels(other, owner, *places(other, owner), world):
                continue
            if repels(owner, other, *places(owner, other), world):
                yield f"{other.key} on {other.place} breaks the anti-affinity of {owner.key} on {owner.place}"


def matches_all(terms: list[Obj], owner: Pod, other: Pod, world: World) -> bool:
    """Kubernetes counts for affinity only pods that match all terms together."""
    return all(term_matches(term, owner, other, world) for term in terms)


def has_company(pod: Pod, terms: list[Obj], others: Iterable[Pod], world: World) -> bool:
    """Whether every term's domain of the pod holds another pod that matches all terms."""
    near = [other for other in others if matches_all(terms, pod, other, world)]
    placed = [place for other in near for place in (other.place or other.reserved, other.held) if place]
    return all(
        any(same_domain(world, term["topologyKey"], str(pod.place), str(place)) for place in placed) for term in terms
    )


def affinity_broken(world: World) -> Iterator[str]:
    """Other pods only arrive, so a pod whose domains are empty of company at the end found none when it was placed
    either. It may then only be a founder: one that matches its own terms while no other pod did. Pods there before the
    cycle rule that out, and of two founders that match one another the later one was wrong. Reserved and evicted
    pods count as company, and so does a place that an earlier cycle held: the pod may have seen them there before they
    moved, as in the reference."""
    founders: list[Pod] = []
    for pod in world.fresh:
        terms = terms_of(pod, "podAffinity")
        if not terms:
            continue
        others = [one for one in world.pods.values() if one.key != pod.key and (one.place or one.reserved or one.held)]
        if has_company(pod, terms, others, world):
            continue
        matching = (one for one in others if matches_all(terms, pod, one, world) and not one.bound and one.place)
        rivals = [one for one in matching if in_some_domain(one, terms, world)]
        keyed = all(term["topologyKey"] in world.nodes[str(pod.bound)].labels for term in terms)
        if rivals or not keyed or not matches_all(terms, pod, pod, world):
            yield f"{pod.key} on {pod.bound} has no pod near that its affinity requires"
        elif any(mutual(pod, one, world) for one in founders):
            yield f"{pod.key} on {pod.bound} is apart from the first pod of its affinity"
        founders.append(pod)


def in_some_domain(pod: Pod, terms: list[Obj], world: World) -> bool:
    """Whether the pod stands in a domain of any of the terms; one whose node lacks all their keys counts nowhere."""
    node = world.nodes.get(str(pod.place))
    return node is not None and any(term["topologyKey"] in node.labels for term in terms)


def mutual(left: Pod, right: Pod, world: World) -> bool:
    """Whether each of two pods matches the other's affinity terms."""
    both = ((left, right), (right, left))
    return all(matches_all(terms_of(owner, "podAffinity"), owner, other, world) for owner, other in both)


# ---------------------------------------------------------------- topology spread


def hard_spreads(pod: Pod) -> list[Obj]:
    """Constraints that refuse nodes (DoNotSchedule, the default)."""
    stated = pod.spec.get("topologySpreadConstraints") or ()
    return [one for one in stated if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]


def spread_matches(constraint: Obj, owner: Pod, other: Pod) -> bool:
    """Whether the other pod is counted: same namespace, selector (an empty one counts no pod) and label keys."""
    selector = constraint.get("labelSelector") or {}
    named = bool(selector.get("matchLabels") or selector.get("matchExpressions"))
    agree = keys_agree({"matchLabelKeys": constraint.get("matchLabelKeys")}, owner, other)
    return named and agree and owner.namespace == other.namespace and selects(selector, other.labels)


def counted_nodes(constraint: Obj, pod: Pod, world: World) -> list[Node]:
    """Nodes whose domains take part: all keys of the pod's constraints there, inclusion policies honoured."""
    keys = [one["topologyKey"] for one in hard_spreads(pod)]

    def takes_part(node: Node) -> bool:
        if any(key not in node.labels for key in keys):
            return False
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not affinity_matches(pod, node):
            return False
        return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or taints_tolerated(pod, node)

    return [node for node in world.nodes.values() if takes_part(node)]


def judged_alike(constraint: Obj, pod: Pod, world: World) -> bool:
    """Whether every newly placed pod that counts obeys the same constraint over the same domains (see below)."""
    arrived = [one for one in world.pods.values() if (one.bound or one.reserved) and not one.finished]
    fields = ("topologySpreadConstraints", "nodeSelector", "affinity", "tolerations")
    return all(
        [one.spec.get(name) for name in fields] == [pod.spec.get(name) for name in fields]
        for one in arrived
        if spread_matches(constraint, pod, one)
    )


def domain_counts(constraint: Obj, pod: Pod, world: World, *, generous: bool) -> dict[str, int]:
    """Matching pods per domain; a generous count adds those evicted or only reserved, which others may have seen."""
    nodes = {node.name: node.labels[constraint["topologyKey"]] for node in counted_nodes(constraint, pod, world)}
    counts: Counter[str] = Counter(dict.fromkeys(nodes.values(), 0))
    for other in world.pods.values():
        place = other.place or (other.reserved if generous else None)
        gone = other.terminating or (other.evicted and not generous)
        if place in nodes and not gone and spread_matches(constraint, pod, other):
            counts[nodes[place]] += 1
    return dict(counts)


def skew_left(constraint: Obj, counts: Mapping[str, int], seen: Mapping[str, int], domain: str) -> int:
    """How many pods the domain holds beyond what the constraint allows (zero or less: fine)."""
    least = min(seen.values()) if len(seen) >= int(constraint.get("minDomains") or 1) else 0
    return counts[domain] - least - int(constraint["maxSkew"])


def spread_broken(world: World) -> Iterator[str]:
    """The last pod to enter a domain saw `count <= maxSkew + least`; later the least-filled domain only gains pods, so
    the bound holds at the end for every domain that a new pod entered. This is so only when all new pods that count
    obey this very constraint over the same domains, which `judged_alike` asks; a domain may be filled beyond the bound
    by pods without the constraint, and such plans are not judged. Nor are pods outside their own selector."""
    for pod in world.fresh:
        for constraint in hard_spreads(pod):
            key = constraint["topologyKey"]
            domain = world.nodes[str(pod.bound)].labels.get(key)
            if domain is None:
                yield f"{pod.key} on {pod.bound}, which lacks the topology key {key}"
            elif spread_matches(constraint, pod, pod) and judged_alike(constraint, pod, world):
                counts = domain_counts(constraint, pod, world, generous=False)
                seen = domain_counts(constraint, pod, world, generous=True)
                if domain in counts and skew_left(constraint, counts, seen, domain) > 0:
                    yield f"{pod.key} on {pod.bound}: {counts[domain]} pods in {key}={domain} break the topology spread"
