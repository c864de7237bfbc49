"""Laws about what a plan says of the pods it leaves waiting: every one has a reason, and the reason is true.

A reason of the form `0/N nodes are unavailable: a Reason, b Reason.` was written when the pod was tried. Within a cycle
room only shrinks, except that a gang which failed gives its tentative places back. So the claims are checked against
the state at the end of the plan, with the pod's own gang-mates put back where their conditions say they could have gone
and with the pods that the plan evicts still in their places; what was full when the pod was tried is full in it too.
Where the gang was tried once more (a member waits for room to be released), its conditions come from the last attempt
and the reason perhaps from an earlier one: then only what no placement changes is checked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from tests.support.checker_objects import AFFINITY, TAINTED, UNSCHEDULABLE, Amounts, Node, Obj, Pod, static_refusal
from tests.support.checker_topology import hard_spreads, host_ports, ports_collide, repels, terms_of
from tests.support.checker_world import World, total

CLAIM = re.compile(
    r"(?:Origin reason is (?P<task>[^:\s]+): )?(?:In hyperNode (?P<hyper>[^:]+): )?"
    r"0/(?P<nodes>\d+) nodes are unavailable: (?P<histogram>.+?)\.(?=\s|$)"
)
PART = re.compile(r"(\d+) (.+)")
TENTATIVE = re.compile(r"Pod \S+ can possibly be assigned to (?P<node>\S+), once (?P<later>resource is released)?")
INSUFFICIENT = "Insufficient "
STATIC = (UNSCHEDULABLE, AFFINITY, TAINTED)
POD_NUMBER = "node(s) pod number exceeded"
PORTS = "node(s) didn't have free ports for the requested pod ports"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
CHANGEABLE = (
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
"""Refusals that later placements may lift, so the end of the plan says nothing about them."""


@dataclass(frozen=True)
class Claim:
    """One `0/N nodes are unavailable` of a text: the pod or job it is about, N, and nodes per reason."""

    subject: str
    nodes: int
    reasons: dict[str, int]
    text: str
    within_hyper_node: bool


def histogram(text: str) -> dict[str, int]:
    """`2 Insufficient cpu, 1 node(s) were unschedulable` as counts; equal reasons are added up."""
    counts: Counter[str] = Counter()
    for part in re.split(r", (?=\d+ )", text):
        found = PART.fullmatch(part)
        if found:
            counts[found[2]] += int(found[1])
    return dict(counts)


def claims_of(text: str, key: str) -> Iterator[Claim]:
    """The claims in the text that a pod (or job) namespace/name is given."""
    namespace = key.partition("/")[0]
    for found in CLAIM.finditer(text):
        subject = f"{namespace}/{found['task']}" if found["task"] else key
        yield Claim(subject, int(found["nodes"]), histogram(found["histogram"]), found[0], bool(found["hyper"]))


def texts_in(value: object) -> Iterator[str]:
    """Every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


@dataclass(frozen=True)
class Scene:
    """The end of the plan as a waiting pod may have seen it: the pods on each node, and what every node has left."""

    world: World
    placed: dict[str, list[Pod]]
    free: dict[str, Amounts]

    @cached_property
    def others(self) -> list[tuple[Pod, str]]:
        """Every placed pod with its node."""
        return [(pod, node) for node, pods in self.placed.items() for pod in pods]

    @cached_property
    def repelling(self) -> list[tuple[Pod, str]]:
        """Those with required anti-affinity."""
        return [(pod, node) for pod, node in self.others if terms_of(pod, "podAntiAffinity")]

    def with_mates(self, mates: list[tuple[Pod, str]]) -> Scene:
        """The scene with more pods put in."""
        if not mates:
            return self
        placed = {node: [*pods, *(pod for pod, at in mates if at == node)] for node, pods in self.placed.items()}
        return scene_from(self.world, placed)


def scene_from(world: World, placed: dict[str, list[Pod]]) -> Scene:
    """Work out what is left: terminating pods' room counts as free, as a scheduler may promise it."""
    free = {}
    for name, pods in placed.items():
        taken = total(pod for pod in pods if not (pod.terminating and not pod.evicted))
        room = world.nodes[name].room
        free[name] = {each: room.get(each, Fraction(0)) - taken.get(each, Fraction(0)) for each in (*room, *taken)}
    return Scene(world, placed, free)


def final_scene(world: World) -> Scene:
    """The end of the plan: every pod that is placed, bound or promised a place."""
    placed: dict[str, list[Pod]] = {name: [] for name in world.nodes}
    for pod in world.pods.values():
        where = pod.place or (None if pod.finished else pod.reserved)
        if where in placed:
            placed[where].append(pod)
    return scene_from(world, placed)


# ---------------------------------------------------------------- which nodes refuse


def lacks(pod: Pod, node: Node, scene: Scene, resource: str) -> bool:
    """Whether the node has too little of the resource left."""
    return pod.footprint.get(resource, 0) > scene.free[node.name].get(resource, 0)


def too_many_pods(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether every place of the node is taken, by those on their way out too."""
    return len(scene.placed[node.name]) >= node.room.get("pods", Fraction(0))


def no_free_port(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether a pod on the node holds a port that the pod wants."""
    return bool(host_ports(pod)) and any(ports_collide(pod, other) for other in scene.placed[node.name])


def repelled_by_own(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether the pod's own anti-affinity keeps it from the node."""
    carries = bool(terms_of(pod, "podAntiAffinity"))
    return carries and any(repels(pod, other, node.name, at, scene.world) for other, at in scene.others)


def repelled_by_others(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether another pod's anti-affinity keeps it from the node."""
    return any(repels(other, pod, at, node.name, scene.world) for other, at in scene.repelling)


GROWING: dict[str, Callable[[Pod, Node, Scene], bool]] = {
    POD_NUMBER: too_many_pods,
    PORTS: no_free_port,
    ANTI_AFFINITY: repelled_by_own,
    EXISTING_ANTI_AFFINITY: repelled_by_others,
}
"""Refusals that, once true, stay true until the end of the cycle."""


def refusing(reason: str, pod: Pod, scene: Scene) -> int | None:
    """On how many nodes the reason holds at the end; None where the end does not tell."""
    nodes = scene.world.nodes.values()
    if reason.startswith(INSUFFICIENT):
        return sum(lacks(pod, node, scene, reason.removeprefix(INSUFFICIENT)) for node in nodes)
    if reason in STATIC:
        return sum(static_refusal(pod, node) == reason for node in nodes)
    test = GROWING.get(reason)
    return None if test is None else sum(test(pod, node, scene) for node in nodes)


def has_room(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether the pod's whole request fits the node."""
    return not any(lacks(pod, node, scene, resource) for resource in pod.footprint)


def takes(pod: Pod, node: Node, scene: Scene) -> bool:
    """Whether the node would take the pod now, as far as filters go whose refusals last."""
    if not has_room(pod, node, scene) or static_refusal(pod, node):
        return False
    return not any(test(pod, node, scene) for test in GROWING.values())


# ---------------------------------------------------------------- claims against the scene


def counts_plausible(claim: Claim, world: World) -> Iterator[str]:
    """N is the number of nodes, no reason counts more nodes than that, and every node has one."""
    if claim.within_hyper_node and claim.nodes > len(world.nodes):
        yield f"speaks of {claim.nodes} nodes in a hypernode; the cluster has {len(world.nodes)}"
    if not claim.within_hyper_node and claim.nodes != len(world.nodes):
        yield f"speaks of {claim.nodes} nodes; the cluster has {len(world.nodes)}"
    if sum(claim.reasons.values()) < claim.nodes:
        yield f"gives reasons for {sum(claim.reasons.values())} of {claim.nodes} nodes"
    for reason, count in claim.reasons.items():
        if count > claim.nodes:
            yield f"counts {count} of {claim.nodes} nodes for {reason!r}"


def counts_true(claim: Claim, pod: Pod, scene: Scene) -> Iterator[str]:
    """No reason is claimed of more nodes than it holds for at the end."""
    for reason, count in claim.reasons.items():
        holds = refusing(reason, pod, scene)
        if holds is not None and count > holds:
            yield f"claims {reason!r} of {count} nodes; it holds for {holds}"


def statics_complete(claim: Claim, pod: Pod, scene: Scene) -> Iterator[str]:
    """A node with room refuses by its first filter, so static reasons have a lower bound too. Not so when filters that
    the checker does not know were at work: they may have spoken first."""
    if claim.within_hyper_node or unexplained(claim):
        return
    for reason in STATIC:
        nodes = [node for node in scene.world.nodes.values() if static_refusal(pod, node) == reason]
        least = sum(has_room(pod, node, scene) for node in nodes)
        if claim.reasons.get(reason, 0) < least:
            yield f"claims {reason!r} of {claim.reasons.get(reason, 0)} nodes; it is what refuses {least}"


def unexplained(claim: Claim) -> int:
    """Nodes refused for reasons that the checker does not know."""
    known = (*STATIC, *GROWING, *CHANGEABLE)
    return sum(n for reason, n in claim.reasons.items() if reason not in known and not reason.startswith(INSUFFICIENT))


def nobody_would_take(claim: Claim, pod: Pod, scene: Scene) -> Iterator[str]:
    """A text that claims no node fits must not leave one that does. Pod affinity and spread are left out, since a
    placement after the pod's turn may have made a node fit."""
    if claim.within_hyper_node or terms_of(pod, "podAffinity") or hard_spreads(pod):
        return
    takers = [node.name for node in scene.world.nodes.values() if takes(pod, node, scene)]
    if len(takers) > unexplained(claim):
        yield f"claims no node fits, but {takers[0]} would take it"


def claim_faults(claim: Claim, pod: Pod, scene: Scene) -> list[str]:
    """What is wrong with a claim about a known pod."""
    checks = (counts_true, statics_complete, nobody_would_take)
    return [fault for check in checks for fault in check(claim, pod, scene)]


def static_only(claim: Claim) -> Claim:
    """The part of a claim that holds whatever was placed where."""
    static = {reason: count for reason, count in claim.reasons.items() if reason in STATIC}
    return replace(claim, reasons=static)


class Judge:
    """Checks claims; equal pods with equal claims and no gang-mates in between are judged once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.scene = final_scene(world)
        self.known: dict[str, list[str]] = {}
        self.tentative = tentative_places(world)
        self.retried = retried_groups(world)

    def faults(self, claim: Claim) -> list[str]:
        """What is wrong with the claim, as parts of sentences."""
        general = list(counts_plausible(claim, self.world))
        pod = self.world.pods.get(claim.subject)
        return general if pod is None else [*general, *self.about(claim, pod)]

    def about(self, claim: Claim, pod: Pod) -> list[str]:
        """What is wrong with what the claim says of its pod."""
        if pod.group in self.retried:
            return list(counts_true(static_only(claim), pod, self.scene))
        mates = [(mate, at) for mate, at in self.tentative if mate.group == pod.group and mate.key != pod.key]
        if mates:
            return claim_faults(claim, pod, self.scene.with_mates(mates))
        alike = json.dumps([pod.namespace, pod.labels, dict(pod.spec), claim.text], sort_keys=True)
        if alike not in self.known:
            self.known[alike] = claim_faults(claim, pod, self.scene)
        return self.known[alike]


def tentative_places(world: World) -> list[tuple[Pod, str]]:
    """Waiting pods that were given a place and lost it with their gang, as their conditions say."""
    found = []
    for key, condition in conditions(world).items():
        told = TENTATIVE.match(str(condition.get("message") or ""))
        pod = world.pods.get(key)
        if told and pod and not pod.place and not pod.reserved and told["node"] in world.nodes:
            found.append((pod, told["node"]))
    return found


def retried_groups(world: World) -> set[str | None]:
    """Gangs with a member that holds, or last tried, a place whose room is yet to be released."""
    later = (key for key, one in conditions(world).items() if is_later(str(one.get("message") or "")))
    waiting = {world.pods[key].group for key in later if key in world.pods}
    return waiting | {pod.group for pod in world.pods.values() if pod.reserved}


def is_later(message: str) -> bool:
    """Whether a condition speaks of room that others must leave first."""
    told = TENTATIVE.match(message)
    return bool(told and told["later"])


def conditions(world: World) -> Obj:
    """podConditions of the outcome."""
    written: Obj = world.outcome.get("podConditions") or {}
    return written


def sayings(world: World) -> Iterator[tuple[str, str]]:
    """Every text of the plan with the pod or job it is given for."""
    for about in (conditions(world), world.reasons):
        for key, value in about.items():
            yield from ((key, text) for text in texts_in(value))


def distinct(claims: Iterable[Claim]) -> list[Claim]:
    """Each claim about a subject once, however many texts repeat it."""
    return list({(claim.subject, claim.text): claim for claim in claims}.values())


def untrue_reasons(world: World) -> Iterator[str]:
    """Claims of the plan that its own end contradicts."""
    judge = Judge(world)
    for claim in distinct(one for key, text in sayings(world) for one in claims_of(text, key)):
        for fault in judge.faults(claim):
            yield f"reason of {claim.subject} {fault}"


def missing_reasons(world: World) -> Iterator[str]:
    """Waiting pods of which the plan says nothing, and bound ones that it says wait."""
    told = conditions(world)
    for pod in world.waiting:
        condition = told.get(pod.key) or {}
        if not condition.get("message") and not any(texts_in(world.reasons.get(pod.group or ""))):
            yield f"{pod.key} waits without a reason"
    for pod in world.fresh:
        if pod.key in told:
            yield f"{pod.key} is bound and yet has the condition {told[pod.key].get('reason')}"
