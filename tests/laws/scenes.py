"""What the laws are tried on: random clusters with random configurations, and the plans that they give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from stromboli.builtin import builtin_registry
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.books.plan_codec import encode_plan
from stromboli.framework.config.config import DEFAULT_CONFIG, Config, PluginOption, load_config
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.session.session import Session
from stromboli.model.names import TEMPLATE_UID, TOPOLOGY_ZONE
from stromboli.model.reservation import Held, stated
from stromboli.model.snapshot import Snapshot
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group, queue, state
from stromboli.testing.strategies import (
    SHAPES,
    affinities,
    clusters,
    labels,
    sometimes,
    spreads,
)
from tests.support.checker_objects import amounts, name_of, pod_request

REGISTRY = builtin_registry()
NOW = 1000.0

NO_ENQUEUE = """\
actions: "allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: priority}]
- plugins: [{name: predicates}, {name: proportion}, {name: binpack}]
"""

EVERYTHING = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 1h}}, {name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: overcommit, arguments: {overcommit-factor: 1.5}}
  - {name: drf}
  - {name: proportion}
  - {name: resourcequota}
  - name: predicates
    arguments:
      predicate.CacheEnable: true
      predicate.ProportionalEnable: true
      predicate.resources: nvidia.com/gpu
      predicate.resources.nvidia.com/gpu.cpu: 0.5
  - {name: nodeorder, arguments: {leastrequested.weight: 3, mostrequested.weight: 1, podaffinity.weight: 2}}
  - {name: binpack, arguments: {binpack.weight: 5, binpack.resources: nvidia.com/gpu}}
"""

WITH_CAPACITY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity}, {name: drf}, {name: nodeorder}]
"""

HIERARCHICAL = WITH_CAPACITY.replace("{name: capacity}, {name: drf}", "{name: capacity, enableHierarchy: true}")

CONFIGURATIONS = (DEFAULT_CONFIG, NO_ENQUEUE, EVERYTHING)
SEEDED = "tie-break: seeded\n"


@cache
def config_of(text: str) -> Config:
    return load_config(
        text, source="conf", known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
    )  # fmt: skip


def with_plugins(config: Config, *plugins: type[Plugin]) -> tuple[Config, Registry]:
    """``config`` with further plugins in a last tier, and a registry that knows them."""
    registry = builtin_registry()
    for plugin in plugins:
        registry.add(plugin)
    tier = tuple(PluginOption.filled(plugin.name) for plugin in plugins)
    return replace(config, tiers=(*config.tiers, tier)), registry


@dataclass(frozen=True)
class Scene:
    """A cluster as manifests, and the text of a configuration."""

    objects: list[Manifest]
    conf: str

    @property
    def config(self) -> Config:
        return config_of(self.conf)

    def state(self) -> ClusterState:
        return state(*self.objects, complete=False)

    def snapshot(self) -> Snapshot:
        return self.state().snapshot()

    def plan(self, seed: int = 0) -> Plan:
        return run_cycle(self.snapshot(), self.config, REGISTRY, NOW, seed)

    def open(self) -> Session:
        return Session.open(self.snapshot(), self.config, REGISTRY, NOW)


def digest(plan: Plan) -> str:
    """A short name of exactly this plan."""
    return hashlib.sha256(encode_plan(plan)).hexdigest()[:16]


# ---------------------------------------------------------------------- what is drawn

some_resources: SearchStrategy[Mapping[str, Any]] = st.dictionaries(
    st.sampled_from(("cpu", "memory", "nvidia.com/gpu", "example.com/nowhere")),
    st.sampled_from((1, 4, "6Gi")),
    max_size=2,
)


@st.composite
def queue_specs(draw: DrawFn) -> dict[str, Any]:
    """Fields of a queue's spec that few queues have."""
    fields: dict[str, Callable[[], Any]] = {
        "capability": lambda: draw(some_resources),
        "guarantee": lambda: {"resource": draw(some_resources)},
        "priority": lambda: draw(st.integers(0, 2)),
    }
    return {name: make() for name, make in fields.items() if draw(st.integers(0, 3)) == 3}


@st.composite
def scenes(draw: DrawFn, configurations: Sequence[str] = CONFIGURATIONS) -> Scene:
    """Small clusters with every kind of constraint."""
    objects = draw(clusters(max_nodes=5, max_gangs=3))
    tree = any(each["kind"] == "Queue" and each["metadata"]["name"] == "root" for each in objects)
    for each in objects:
        if each["kind"] == "Queue" and each["metadata"]["name"] != "root":
            each["spec"].update(draw(queue_specs()))
    if draw(sometimes(st.just(True), 12)):
        objects.append(hyper_node("circle", 1, member("HyperNode", exactMatch={"name": "circle"})))
    return Scene(objects, draw(st.sampled_from((*configurations, *[HIERARCHICAL] * 3 * tree))))


VALUES: Mapping[str, Callable[[list[str]], list[str]]] = {
    "In": lambda values: values or ["a"],
    "NotIn": lambda values: values or ["a"],
    "Exists": lambda _: [],
    "DoesNotExist": lambda _: [],
    "Gt": lambda _: ["5"],
    "Lt": lambda _: ["5"],
}


def valid(scene: Scene) -> Scene:
    """The scene as a real cluster could be: selectors and tolerations that an API server lets pass (what others mean is
    nowhere said), no two templates under one uid, and no node fuller than it is large (where plugins may refuse what
    the judge would allow)."""
    objects: list[Manifest] = [each for each in mended(scene.objects) if each["metadata"]["name"] != "circle"]
    for each in objects:
        each["metadata"]["annotations"].pop(TEMPLATE_UID, None)
    room = {name_of(each): amounts(each["status"]["allocatable"]) for each in objects if each["kind"] == "Node"}
    _keep_promises(objects, room.values())
    return Scene([fitted(each, room) if each["kind"] == "Pod" else each for each in objects], scene.conf)


def _keep_promises(objects: Sequence[Manifest], nodes: Iterable[Mapping[str, Fraction]]) -> None:
    """Take back guarantees beyond what the nodes have together."""
    left: Counter[str] = Counter()
    for offer in nodes:
        left.update(offer)
    for spec in [each["spec"] for each in objects if each["kind"] == "Queue" and "guarantee" in each["spec"]]:
        promised = amounts(spec["guarantee"]["resource"])
        if all(amount <= left[name] for name, amount in promised.items()):
            left.subtract(promised)
        else:
            del spec["guarantee"]


def fitted(pod: Manifest, room: dict[str, dict[str, Fraction]]) -> Manifest:
    """The pod, waiting instead of running where its node has no room left for it; ``room`` shrinks."""
    left, request = room.get(pod["spec"]["nodeName"]), {**pod_request(pod), "pods": Fraction(1)}
    if left is None:
        return pod
    if all(left.get(name, 0) >= amount for name, amount in request.items()):
        left.update({name: left[name] - amount for name, amount in request.items()})
        return pod
    meta = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    status = {**pod["status"], "phase": "Pending"}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": ""}, "status": status}


def mended(value: Any) -> Any:
    """A JSON value in which expressions have as many values as their operators take, and tolerations without a key
    name no value."""
    if isinstance(value, list):
        return [mended(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.get("operator") in VALUES and "values" in value:
        return {**value, "values": VALUES[value["operator"]](value["values"])}
    if "effect" in value and value.get("operator") and (not value["key"] or value["operator"] == "Exists"):
        return {**value, "operator": "Exists", "value": ""}
    return {key: mended(inner) for key, inner in value.items()}


ODD = 2863311531
DISK = "example.com/disk"
TIGHT_NODES: tuple[Mapping[str, Any], ...] = (
    {"cpu": "999m", "memory": ODD + 1, "pods": 3, "resources": {DISK: "100Ti"}},
    {"cpu": 2, "memory": 3 * ODD, "pods": 110, "resources": {DISK: 100 * 2**40 - 1}},
    {"cpu": 64, "memory": "1Ti", "pods": 2},
)
TIGHT_PODS: tuple[Mapping[str, Any], ...] = (
    {"cpu": "333m", "memory": ODD},
    {"cpu": "1m", "memory": 1, "requests": {DISK: 100 * 2**40 // 3}},
    {"cpu": "500m", "memory": ODD // 2 + 1, "requests": {DISK: 1}},
    {"cpu": "100m", "memory": 0, "requests": {DISK: 50 * 2**40 + 1}},
)
"""Amounts that fit by a byte, or miss by one."""


@st.composite
def tight_scenes(draw: DrawFn) -> Scene:
    """Up to forty nodes and gangs of equal pods with amounts at the edge; room that is about to become free."""
    objects = [queue("default"), queue("q1", weight=2)]
    for number in range(draw(st.sampled_from((1, 2, 3, 7, 40)))):
        objects.append(node(f"n{number}", **TIGHT_NODES[draw(st.integers(0, 2)) if number < 3 else number % 3]))
    ending = draw(st.lists(st.sampled_from(("n0", "n1", "n2")[: len(objects) - 2]), max_size=3, unique=True))
    objects += [pod(f"old-{name}", **draw(st.sampled_from(TIGHT_PODS)), on=name, deleting=True) for name in ending]
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        want, count = draw(st.sampled_from(TIGHT_PODS)), draw(st.sampled_from((1, 2, 3, 5, 12)))
        least, where = draw(st.integers(1, count)), draw(sometimes(st.just("n0"))) or ""
        objects.append(pod_group(name, min_member=least, queue=draw(st.sampled_from(("default", "q1")))))
        objects += [pod(f"{name}-{i}", group=name, **want, on=where if i == 0 else "") for i in range(count)]
    return Scene(objects, draw(st.sampled_from(CONFIGURATIONS)))


@st.composite
def neighbourly(draw: DrawFn) -> Manifest:
    """What equal pods share that all say something of others: of their ports, their labels or how they spread."""
    found: Manifest = {"cpu": 1, "memory": "1Gi", "labels": draw(labels)}
    of_others: SearchStrategy[Manifest] = st.fixed_dictionaries(
        {}, optional={"affinity": affinities(), "topologySpreadConstraints": st.lists(spreads, min_size=1, max_size=2)}
    )
    return found | (draw(of_others) or {"container": {"ports": [{"hostPort": 80}]}})


@st.composite
def ending_scenes(draw: DrawFn) -> Scene:
    """A few small nodes where pods that say something of others run, are being deleted, and wait."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    zone = st.sampled_from(("east", "west"))
    objects = [node(name, **SHAPES[0], labels={TOPOLOGY_ZONE: draw(zone)}) for name in names] + [queue("default")]
    running = st.builds(
        lambda name, deleting: {"on": name, "deleting": deleting, "phase": "Running"},
        st.sampled_from(names),
        st.booleans(),
    )
    for group in ("a", "b")[: draw(st.integers(1, 2))]:
        wants = draw(st.lists(neighbourly(), min_size=1, max_size=2))
        kinds = [
            (f"{group}-{kind}-{i}", want) for kind, want in enumerate(wants) for i in range(draw(st.integers(1, 4)))
        ]
        pods = [pod(name, group=group, **want, **(draw(sometimes(running, 2)) or {})) for name, want in kinds]
        objects += [pod_group(group, min_member=draw(st.integers(0, len(pods))), phase="Inqueue"), *pods]
    return Scene(objects, draw(st.sampled_from(CONFIGURATIONS)))


def holding(draw: DrawFn, each: Manifest, names: Sequence[str]) -> None:
    """From now on the pod says that it holds room on one of the nodes since earlier."""
    each["metadata"]["annotations"].update(stated(Held(draw(st.sampled_from(names)), draw(st.booleans()))))


@st.composite
def held_scenes(draw: DrawFn) -> Scene:
    """The same small clusters, where pods that wait hold room on some node, mostly one that has it, since earlier."""
    scene = draw(tight_scenes() | scenes((*CONFIGURATIONS, WITH_CAPACITY)))
    names = [name_of(each) for each in scene.objects if each["kind"] == "Node"]
    for each in scene.objects:
        if each["kind"] == "Pod" and not each["spec"]["nodeName"] and draw(st.booleans()):
            holding(draw, each, names)
    return scene


LIKE = {"topologyKey": TOPOLOGY_ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
NEIGHBOURS: tuple[Manifest, ...] = (
    {"topologySpreadConstraints": [{**LIKE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LIKE]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LIKE]}}},
    {"container": {"ports": [{"hostPort": 80}]}},
)
"""What pods of app a say of each other, zone by zone or on their node."""


@st.composite
def waiting_scenes(draw: DrawFn) -> Scene:
    """Three nodes or four, some half full, some about to become free, and a gang or two that hold them."""
    states = ["half", "ending", *draw(st.lists(st.sampled_from(("free", "free", "half", "ending")), max_size=2))]
    names = [f"n{number}" for number in range(len(states) + 1)]
    objects = [queue("default")]
    for name, state_of in zip(names, [*states, "free"], strict=True):
        zone = draw(st.sampled_from(("east", "west")))
        objects.append(node(name, cpu=2, memory="8Gi", labels={TOPOLOGY_ZONE: zone}))
        if state_of != "free":
            more = {"cpu": 2, "deleting": True} if state_of == "ending" else {"cpu": 1, "labels": {"app": "a"}}
            objects.append(pod(f"old-{name}", on=name, **more))
    for group in ("a", "b")[: draw(st.sampled_from((1, 1, 2)))]:
        want, count = draw(st.sampled_from(NEIGHBOURS)), draw(st.sampled_from((1, 1, 2)))
        objects.append(pod_group(group, min_member=count))
        for number in range(count):
            objects.append(pod(f"{group}-{number}", group=group, labels={"app": "a"}, **want))
            holding(draw, objects[-1], names[1:])
    return Scene(objects, draw(st.sampled_from(CONFIGURATIONS[:2])))
