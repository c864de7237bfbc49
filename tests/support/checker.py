"""An independent judge of plans: Kubernetes' and Volcano's laws, written down once more from their definitions.

It imports nothing of the package under test and computes with exact fractions. It assumes a configuration with the
plugins gang and predicates, and judges one cycle; what the laws leave to policy (which job first, which node is best)
is not its business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from tests.support.checker_objects import Obj, Pod, static_refusal
from tests.support.checker_reasons import missing_reasons, untrue_reasons
from tests.support.checker_topology import affinity_broken, anti_affinity_broken, port_conflicts, spread_broken
from tests.support.checker_world import World, total, world_of

Law = Callable[[World], Iterator[str]]


def check_plan(manifests: Sequence[Obj], plan: Obj, *, scheduler: str = "volcano", compat: bool = False) -> list[str]:
    """Judge what `plan -o json` answered for these manifests.

    `manifests` are Kubernetes objects with their `kind` (Node, Pod, PodGroup; Namespace for namespace selectors; other
    kinds are ignored); `plan` is `{"outcome": {"binds": …, "pipelined": …, "evictions": …, "podConditions": …, …},
    "reasons": …}`. `compat` forgives what the reference itself does: a pod placed in this cycle does not yet repel
    others by its anti-affinity. Returns the broken laws as sentences, in a fixed order; none means the plan is lawful.
    """
    world = world_of(manifests, plan, scheduler, compat=compat)
    return [sentence for law in LAWS for sentence in law(world)]


def unknown_names(world: World) -> Iterator[str]:
    """Every pod and node of the plan exists."""
    for verb, field in (("bound", "binds"), ("pipelined", "pipelined"), ("allocated", "allocatedNotBound")):
        for key, node in (world.outcome.get(field) or {}).items():
            if key not in world.pods:
                yield f"{key} is {verb} but there is no such pod"
            if node not in world.nodes:
                yield f"{key} is {verb} to {node} but there is no such node"
    for key in world.outcome.get("evictions") or ():
        if key not in world.pods:
            yield f"{key} is evicted but there is no such pod"


def not_bindable(pod: Pod, world: World) -> str | None:
    """Why the pod was not to be bound, the weightiest first."""
    why = (
        (pod.node, f"already runs on {pod.node}"),
        (pod.finished, f"is {pod.phase}"),
        (pod.terminating, "is being deleted"),
        (pod.gated, "is held by a scheduling gate"),
        (pod.evicted, "is evicted by the same plan"),
        (pod.key in (world.outcome.get("pipelined") or {}), "is pipelined by the same plan"),
        (not world.is_ours(pod), "belongs to another scheduler or to a PodGroup that is missing"),
    )
    return next((text for true, text in why if true), None)


def wrongly_bound(world: World) -> Iterator[str]:
    """Only waiting pods of this scheduler are bound, each once."""
    for pod in world.fresh:
        why = not_bindable(pod, world)
        if why:
            yield f"{pod.key} is bound to {pod.bound} but {why}"


def wrongly_evicted(world: World) -> Iterator[str]:
    """Only a pod that stands on a node can be evicted."""
    for pod in world.pods.values():
        if pod.evicted and not pod.place:
            yield f"{pod.key} is evicted but stands on no node"


def over_capacity(world: World) -> Iterator[str]:
    """A bound pod finds room now: every pod that is still on the node counts, terminating ones too. Only resources that
    a newly bound pod asks for are judged; a node may have been too full before."""
    for name, pods in world.by_place().items():
        wanted = total(pod for pod in pods if pod.bound)
        taken = total(pods)
        room = world.nodes[name].room if name in world.nodes else {}
        for resource in wanted:
            if wanted[resource] and taken[resource] > room.get(resource, Fraction(0)):
                yield over(name, resource, taken[resource], room.get(resource, Fraction(0)))


def over(node: str, resource: str, taken: Fraction, room: Fraction) -> str:
    """The sentence about a node that is too full."""
    return f"{node} is over capacity: {resource} {float(taken):g} of {float(room):g}"


def over_promised(world: World) -> Iterator[str]:
    """A reserved place must be there once those on their way out have gone."""
    standing = world.by_place()
    for name, promised in world.by_promise().items():
        stay = [pod for pod in standing.get(name, ()) if not pod.terminating and not pod.evicted]
        taken = total([*promised, *stay])
        room = world.nodes[name].room
        for resource, amount in total(promised).items():
            if amount and taken[resource] > room.get(resource, Fraction(0)):
                yield "promised: " + over(name, resource, taken[resource], room.get(resource, Fraction(0)))


def is_ready(pod: Pod) -> bool:
    """Whether a pod counts for its gang before the plan: on a node or done, not failed, not leaving."""
    return (bool(pod.node) or pod.phase == "Succeeded") and pod.phase != "Failed" and not pod.terminating


def counts_for_gang(pod: Pod) -> bool:
    """Whether it counts once the plan is carried out: also when bound, or pending without any request."""
    pending_best_effort = pod.best_effort and not pod.finished and not pod.terminating
    return is_ready(pod) or bool(pod.bound) or pending_best_effort


def roles_required(group: Obj, least: int) -> dict[str, int]:
    """minTaskMember, which rules only while minMember is not below its sum."""
    roles = {role: int(count) for role, count in (group["spec"].get("minTaskMember") or {}).items()}
    return roles if least >= sum(roles.values()) else {}


def broken_gangs(world: World) -> Iterator[str]:
    """A gang is bound whole or not at all; pods without a request go by themselves and start no gang."""
    gangs = world.by_group()
    for key, group in world.groups.items():
        members = gangs.get(key, [])
        if not any(pod.bound and not pod.best_effort for pod in members):
            continue
        least = int(group["spec"].get("minMember") or 0)
        have = Counter(pod.role for pod in members if counts_for_gang(pod))
        if have.total() < least:
            yield f"gang {key} is bound in part: {have.total()} of at least {least}"
        for role, count in roles_required(group, least).items():
            if have[role] < count:
                yield f"gang {key} is bound with {have[role]} of at least {count} in the role {role}"


def wrong_nodes(world: World) -> Iterator[str]:
    """Selector, required node affinity, taints and cordons hold for every place given, reserved ones included: no
    eviction cures them."""
    for pod in world.pods.values():
        place = pod.bound or pod.reserved
        refusal = static_refusal(pod, world.nodes[place]) if place else None
        if refusal:
            yield f"{pod.key} is placed on {place} against: {refusal}"


LAWS: tuple[Law, ...] = (
    unknown_names,
    wrongly_bound,
    wrongly_evicted,
    over_capacity,
    over_promised,
    broken_gangs,
    wrong_nodes,
    port_conflicts,
    anti_affinity_broken,
    affinity_broken,
    spread_broken,
    missing_reasons,
    untrue_reasons,
)
