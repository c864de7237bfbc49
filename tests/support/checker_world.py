"""The cluster with a plan laid over it: the state that the laws of the checker are asked about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.support.checker_objects import (
    Amounts,
    Node,
    Obj,
    Pod,
    added,
    key_of,
    labels_of,
    name_of,
    node_from,
    pod_request,
)


@dataclass(frozen=True)
class World:
    """Nodes by name, pods and PodGroups by namespace/name, labels of namespaces, and the plan's outcome."""

    nodes: dict[str, Node]
    pods: dict[str, Pod]
    groups: dict[str, Obj]
    namespaces: dict[str, dict[str, str]]
    outcome: Obj
    reasons: Obj
    scheduler: str
    compat: bool

    @property
    def fresh(self) -> Iterator[Pod]:
        """The pods that the plan binds."""
        return (pod for pod in self.pods.values() if pod.bound)

    @property
    def waiting(self) -> Iterator[Pod]:
        """The pods of known PodGroups that the scheduler might have bound and did not."""
        return (pod for pod in self.pods.values() if pod.group and self.may_be_bound(pod) and not pod.bound)

    def is_ours(self, pod: Pod) -> bool:
        """Whether the pod asks for this scheduler and names no PodGroup that is missing."""
        return pod.spec.get("schedulerName") == self.scheduler and (pod.group is None or pod.group in self.groups)

    def may_be_bound(self, pod: Pod) -> bool:
        """Whether binding the pod would be the scheduler's business at all."""
        elsewhere = pod.node or pod.finished or pod.terminating or pod.gated
        return self.is_ours(pod) and not elsewhere and pod.phase == "Pending"

    def by_place(self) -> dict[str, list[Pod]]:
        """The pods that hold resources of each node when the plan is done, terminating ones included."""
        return grouped((pod.place, pod) for pod in self.pods.values())

    def by_promise(self) -> dict[str, list[Pod]]:
        """The pods that are promised a place on each node without being there yet."""
        return grouped((pod.reserved, pod) for pod in self.pods.values() if not pod.place)

    def by_group(self) -> dict[str, list[Pod]]:
        """The pods of each PodGroup."""
        return grouped((pod.group, pod) for pod in self.pods.values())

    def namespace_labels(self, name: str) -> dict[str, str]:
        """Labels of a namespace with the one that Kubernetes always sets."""
        return {"kubernetes.io/metadata.name": name, **self.namespaces.get(name, {})}


def grouped(pairs: Iterable[tuple[str | None, Pod]]) -> dict[str, list[Pod]]:
    """Pods by what they are paired with; those paired with nothing are left out."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for name, pod in pairs:
        if name:
            found[name].append(pod)
    return found


def total(pods: Iterable[Pod]) -> Amounts:
    """What the pods take of a node together, their places included."""
    taken: Amounts = {"pods": Fraction(0)}
    for pod in pods:
        taken = added(taken, pod.footprint)
    return taken


def of_kind(manifests: Iterable[Obj], kind: str) -> Iterator[Obj]:
    """The manifests of one kind."""
    return (manifest for manifest in manifests if manifest.get("kind") == kind)


def world_of(manifests: Sequence[Obj], plan: Obj, scheduler: str, *, compat: bool) -> World:
    """Lay a plan over manifests. Names the cluster does not know are left out; `unknown_names` reports them."""
    outcome: Obj = plan.get("outcome") or {}
    nodes = {name_of(raw): node_from(raw) for raw in of_kind(manifests, "Node")}
    binds = {pod: node for pod, node in (outcome.get("binds") or {}).items() if node in nodes}
    reserved = {**(outcome.get("allocatedNotBound") or {}), **(outcome.get("pipelined") or {})}
    evicted = set(outcome.get("evictions") or ())

    def pod_from(raw: Obj) -> Pod:
        key = key_of(raw)
        kept = reserved.get(key) if reserved.get(key) in nodes else None
        held = (raw["metadata"].get("annotations") or {}).get("volcano.sh/pipelined-node")
        return Pod(key, raw, pod_request(raw), binds.get(key), kept, key in evicted, held if held in nodes else None)

    return World(
        nodes,
        {key_of(raw): pod_from(raw) for raw in of_kind(manifests, "Pod")},
        {key_of(raw): raw for raw in of_kind(manifests, "PodGroup")},
        {name_of(raw): labels_of(raw) for raw in of_kind(manifests, "Namespace")},
        outcome,
        plan.get("reasons") or {},
        scheduler,
        compat,
    )
