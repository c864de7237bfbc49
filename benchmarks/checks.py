"""Holds an answer against its workload by counting, without any of the scheduler's own code.

A figure for a cycle that decided the wrong thing is worth nothing, so every measured answer goes through here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from benchmarks.device_workloads import KINDS as DEVICE_KINDS
from benchmarks.plugin_workloads import MORE
from benchmarks.workloads import EVICTING, POOLS, ZONES, Batch, Json, Workload, node_name, pool, resource_name

_MOST_PODS: Final = 110
_APP: Final = 100
_Place = tuple[int, int]


def wrong(workload: Workload, answer: Json) -> list[str]:
    """What is wrong with an answer to a workload, as sentences; empty when all is right."""
    outcome = answer["outcome"]
    found = [f"error: {text}" for text in outcome.get("errors", ())]
    found += [f"problem: {text}" for text in answer.get("problems", ())]
    if workload.kind in {"default", "hetero", *MORE, *DEVICE_KINDS}:
        return [*found, *_placed(workload, outcome["binds"])]
    if outcome["binds"]:
        found.append(f"{len(outcome['binds'])} pods were bound, though nothing can be")
    if workload.kind == "names":
        found += _named(workload, outcome["podGroups"])
    if workload.kind == "full":
        found += _reasons(workload, outcome["podGroups"])
    if workload.kind == "running":
        found += _ended(workload, outcome["podGroups"])
    if workload.kind in EVICTING:
        found += _made_room(workload, outcome)
    return found


def _placed(workload: Workload, binds: dict[str, str]) -> Iterator[str]:
    """Every pod is bound to a node that exists, so every gang is whole; no node holds more than it has."""
    batch = workload.batches()[0]
    nodes = {node_name(i): i for i in range(workload.nodes)}
    places = [(r, nodes[binds[key]]) for r, key in enumerate(keys(batch)) if binds.get(key) in nodes]
    if len(places) != batch.pods or len(binds) != batch.pods:
        yield f"{len(places)} of {batch.pods} pods are bound to a node that exists, in {len(binds)} binds"
    cores: Counter[int] = Counter()
    for r, i in places:
        cores[i] += batch.cores(r // batch.size)
    pods = Counter(i for _, i in places)
    over = [i for i in pods if cores[i] > workload.node_cores or pods[i] > _MOST_PODS]
    if over:
        yield f"{len(over)} nodes hold more than they have, such as {node_name(over[0])}"
    if workload.kind == "hetero":
        yield from _obeyed(places)
    homes = {(r // batch.size, i // (8 * workload.rack)) for r, i in places}
    if workload.kind == "topology" and len(homes) > workload.jobs:
        yield f"{len(homes) - workload.jobs} gangs lie in more than one domain of tier 2"


def keys(batch: Batch) -> Iterator[str]:
    """``namespace/name`` of every pod of a batch, in their order."""
    for r in range(batch.pods):
        yield f"default/{batch.pod_name(r)}"


def _ended(workload: Workload, groups: Json) -> Iterator[str]:
    """PodGroups count the pods that have succeeded."""
    ended = sum(group.get("succeeded", 0) for group in groups.values())
    if ended != workload.changed:
        yield f"PodGroups say that {ended} pods have succeeded, but {workload.changed} have"


def _obeyed(places: list[_Place]) -> Iterator[str]:
    """What pods of kind ``hetero`` ask of their nodes: pool and taint alone, the others with the rest of the app."""
    lost = [r for r, i in places if not _may_stand(r // _APP, i)]
    if lost:
        yield f"{len(lost)} pods are on a node of a pool that is not for them, such as pod {lost[0]}"
    neighbours = Counter((r // _APP, i) for r, i in places if r // _APP % 5 == 2)
    if any(count > 1 for count in neighbours.values()):
        yield "pods that keep apart share a node"
    zones = Counter((r // _APP, i % ZONES) for r, i in places if r // _APP % 5 == 3)
    for app in {app: None for app, _ in zones}:
        counts = [zones[app, zone] for zone in range(ZONES)]
        if max(counts) - min(counts) > 1:
            yield f"app {app} is spread unevenly over the zones: {counts}"


def _may_stand(app: int, i: int) -> bool:
    if app % 5 == 0:
        return pool(i) == app // 5 % POOLS
    return app % 5 == 1 or pool(i) != POOLS - 1


def _reasons(workload: Workload, groups: Json) -> Iterator[str]:
    """Every job that waits says that no node has room for it."""
    batch = workload.batches()[1]
    for j in range(-(-batch.pods // batch.size)):
        conditions = groups[f"default/{batch.name(j)}"].get("conditions", ())
        if not any(f"0/{workload.nodes} nodes are unavailable" in found["message"] for found in conditions):
            yield f"{batch.name(j)} has no reason why it waits"
            return


def _named(workload: Workload, groups: Json) -> Iterator[str]:
    """Every pod is refused by all nodes for want of what it alone asks for."""
    batch = workload.batches()[0]
    for r in range(batch.pods):
        conditions = groups[f"default/{batch.name(r // batch.size)}"].get("conditions", ())
        told = f"Insufficient {resource_name(r)}"
        if not any(told in found["message"] for found in conditions):
            yield f"pod {r} is not told that nodes lack {resource_name(r)}"
            return


def _made_room(workload: Workload, outcome: Json) -> Iterator[str]:
    """Each waiting pod has a place held for it, and one pod of its size has gone for each."""
    evicted, held = len(set(outcome["evictions"])), len(outcome["pipelined"])
    if (evicted, held) != (workload.waiting, workload.waiting):
        yield f"{evicted} pods were evicted and {held} places are held, for {workload.waiting} pods"
