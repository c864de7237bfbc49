"""Random small clusters, as Hypothesis strategies: manifests, so that a failing one can be read and kept.

:func:`clusters` draws everything at once; its parts can be drawn alone.  Needs the package ``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stromboli.api.scheduling import POD_GROUP_INQUEUE, POD_GROUP_PENDING, POD_GROUP_RUNNING
from stromboli.model.names import GPU, HOSTNAME, PREEMPTABLE, TEMPLATE_UID, TOPOLOGY_ZONE
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group, queue
from stromboli.testing.moves import VERBS, Move

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as error:
    raise ImportError("stromboli.testing.strategies needs Hypothesis: pip install hypothesis") from error

KEYS, VALUES = ("app", "tier"), ("a", "b")
NAMESPACES = ("default", "other")
SHAPES: tuple[Mapping[str, Any], ...] = (
    {"cpu": 2, "memory": "3Gi", "pods": 5},
    {"cpu": 4, "memory": "8Gi", "pods": 10},
    {"cpu": 8, "memory": "6Gi", "pods": 10, "resources": {GPU: 2}},
    {"cpu": 8, "memory": "16Gi", "pods": 20, "resources": {GPU: 4}},
)
"""What nodes offer."""
SIZES: tuple[Mapping[str, Any], ...] = (
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": 1, "memory": "500Mi"},
    {"cpu": "500m", "memory": "300Mi"},
    {"cpu": 2, "memory": 0},
    {"cpu": 0, "memory": 0},
    {"cpu": 1, "memory": "2Gi", "requests": {GPU: 1}},
    {"cpu": "500m", "memory": "1Gi", "requests": {GPU: 2}},
    {"cpu": 0, "memory": 0, "requests": {"example.com/unknown": 1}},
)
"""What pods request."""
IMAGES = {"app:1": 400 * 2**20, "tool:latest": 90 * 2**20, "base": 2**30}
TOPOLOGIES = (TOPOLOGY_ZONE, HOSTNAME, "rack")
NEIGHBOURLY = ("affinity", "topologySpreadConstraints", "container")
"""Fields about other pods; left out of calm clusters, where pods can be placed in runs."""

labels: SearchStrategy[dict[str, str]] = st.sampled_from(VALUES).map(lambda value: {"app": value}) | st.dictionaries(
    st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2
)
"""Labels of a pod."""


@st.composite
def sometimes(draw: DrawFn, strategy: SearchStrategy[Any], one_in: int = 4) -> Any:
    """None, or one time in ``one_in`` what ``strategy`` draws."""
    return draw(strategy) if draw(st.integers(0, one_in - 1)) == one_in - 1 else None


# -- Nodes -----------------------------------------------------------------------------------------------------------

taints: SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("dedicated", "spot")),
        "value": st.sampled_from(("", "a")),
        "effect": st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")),
    }
)
"""One taint."""


_NODE: SearchStrategy[Manifest] = st.fixed_dictionaries(
    {
        "shape": st.sampled_from((SHAPES[0], *SHAPES)),
        TOPOLOGY_ZONE: st.sampled_from(("east", "west", "west", None)),
        "rack": st.sampled_from((None, None, "r1", "r2")),
        "disk": st.sampled_from((None, None, "ssd", "7")),
        "images": sometimes(st.lists(st.sampled_from(list(IMAGES)), min_size=1), 2),
        "taints": sometimes(st.lists(taints, min_size=1, max_size=2), 6),
        "unschedulable": st.integers(0, 11).map(lambda drawn: drawn == 11),
    }
)


@st.composite
def nodes(draw: DrawFn, name: str = "n0") -> Manifest:
    """A node of one of a few shapes, in one of two zones or none, now and then tainted or cordoned."""
    drawn = draw(_NODE)
    return node(
        name,
        **drawn["shape"],
        labels={key: drawn[key] for key in (TOPOLOGY_ZONE, "rack", "disk") if drawn[key] is not None},
        images={image: IMAGES[image] for image in drawn["images"] or ()},
        taints=drawn["taints"] or [],
        unschedulable=drawn["unschedulable"],
    )


@st.composite
def many_nodes(draw: DrawFn, least: int = 10, most: int = 14) -> list[Manifest]:
    """Ten nodes and more, of two kinds that take turns: cheap to draw, and to shrink."""
    kinds = [draw(nodes("n0")), draw(nodes("n0"))]
    return [_renamed(kinds[number % 2], f"n{number}") for number in range(draw(st.integers(least, most)))]


def _renamed(made: Manifest, name: str) -> Manifest:
    labels = {**made["metadata"]["labels"], HOSTNAME: name}
    return {**made, "metadata": {**made["metadata"], "name": name, "labels": labels}}


# -- How close together they lie -------------------------------------------------------------------------------------


@st.composite
def hyper_nodes(draw: DrawFn, names: Sequence[str]) -> list[Manifest]:
    """Switches of one to four neighbouring nodes each, and one above the first of them.

    Nodes are members by name, or by a pattern or label that may take others as well.
    """
    width = draw(st.integers(1, 4))
    parts = [names[first : first + width] for first in range(0, len(names), width)]
    found = [hyper_node(f"s{number}", 1, *draw(_members(part))) for number, part in enumerate(parts)]
    above = [member("HyperNode", exactMatch={"name": f"s{n}"}) for n in range(draw(st.integers(0, len(parts))))]
    return [*found, hyper_node("t0", 2, *above)] if above else found


def _members(part: Sequence[str]) -> SearchStrategy[list[Manifest]]:
    exact = [member("Node", exactMatch={"name": name}) for name in part]
    pattern = [member("Node", regexMatch={"pattern": f"^({'|'.join(part)})$"})]
    label = [member("Node", labelMatch={"matchLabels": {"rack": "r1"}})]
    return st.sampled_from((exact, exact, exact, pattern, pattern, label))


closeness: SearchStrategy[Manifest] = st.fixed_dictionaries(
    {"mode": st.sampled_from(("hard", "hard", "soft")), "highestTierAllowed": st.sampled_from((1, 1, 2))}
)
"""What a PodGroup, or a part of it, says of how close together its pods must lie."""


@st.composite
def groupings(draw: DrawFn) -> Manifest:
    """Fields of a PodGroup about closeness and parts: mostly none."""
    found: Manifest = {}
    if draw(st.integers(0, 3)) == 3:
        found["networkTopology"] = draw(closeness)
    if draw(st.integers(0, 5)) == 5:
        part: Manifest = {"name": "part", "matchLabelKeys": ["app"], "subGroupSize": draw(st.integers(1, 2))}
        part["minSubGroups"] = draw(st.integers(0, 2))
        found["subGroupPolicy"] = [part | ({"networkTopology": draw(closeness)} if draw(st.booleans()) else {})]
    return found


# -- What pods want --------------------------------------------------------------------------------------------------


def requirements(operators: Sequence[str], keys: Sequence[str], values: Sequence[str]) -> SearchStrategy[Manifest]:
    """One expression of a selector, some of them invalid."""
    return st.fixed_dictionaries(
        {
            "key": st.sampled_from(keys),
            "operator": st.sampled_from(operators),
            "values": st.lists(st.sampled_from(values), max_size=2, unique=True),
        }
    )


node_terms: SearchStrategy[Manifest] = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            requirements(
                ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
                (TOPOLOGY_ZONE, "disk", "rack"),
                ("east", "ssd", "5", "r1"),
            ),
            max_size=2,
        ),
    }
)
label_selectors: SearchStrategy[Manifest] = st.sampled_from(VALUES).map(
    lambda value: {"matchLabels": {"app": value}}
) | st.fixed_dictionaries(
    {
        "matchLabels": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
        "matchExpressions": st.lists(requirements(("In", "NotIn", "Exists", "DoesNotExist"), KEYS, VALUES), max_size=1),
    }
)
"""Selectors of pods."""


@st.composite
def pod_terms(draw: DrawFn) -> Manifest:
    """A term of pod affinity."""
    found: Manifest = {"topologyKey": draw(st.sampled_from(TOPOLOGIES)), "labelSelector": draw(label_selectors)}
    if draw(st.integers(0, 3)) == 3:
        found["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
        found["namespaceSelector"] = draw(st.sampled_from((None, {}, {"matchLabels": {"team": "red"}})))
        found["matchLabelKeys"] = draw(st.sampled_from(((), ("app",))))
    return found


def weighted(terms: SearchStrategy[Manifest], name: str) -> SearchStrategy[Manifest]:
    """A preferred term."""
    return st.fixed_dictionaries({"weight": st.sampled_from((1, 10, 100)), name: terms})


_TERMS: Mapping[bool, tuple[SearchStrategy[Any], SearchStrategy[Any]]] = {
    of_nodes: (
        st.lists(terms, min_size=1, max_size=2),
        st.lists(weighted(terms, name), min_size=1, max_size=2),
    )
    for of_nodes, terms, name in ((True, node_terms, "preference"), (False, pod_terms(), "podAffinityTerm"))
}
"""Required and preferred terms of nodes, and of pods."""


@st.composite
def affinities(draw: DrawFn) -> Manifest:
    """Node affinity, pod affinity or pod anti-affinity, required or preferred."""
    kind = draw(st.sampled_from(("podAntiAffinity", "podAffinity", "nodeAffinity")))
    all_required, all_preferred = _TERMS[kind == "nodeAffinity"]
    if draw(st.booleans()):
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": draw(all_preferred)}}
    required = draw(all_required)
    if kind == "nodeAffinity":
        required = {"nodeSelectorTerms": required}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}


spreads: SearchStrategy[Manifest] = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(TOPOLOGIES),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "maxSkew": st.sampled_from((1, 1, 2)),
        "labelSelector": label_selectors,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "matchLabelKeys": st.just(("app",)),
        "nodeAffinityPolicy": st.just("Ignore"),
        "nodeTaintsPolicy": st.just("Honor"),
    },
)
"""One topology spread constraint."""

tolerations: SearchStrategy[Manifest] = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("", "dedicated", "spot", "node.kubernetes.io/unschedulable")),
        "operator": st.sampled_from(("Exists", "Equal")),
        "value": st.sampled_from(("", "a")),
        "effect": st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
    }
)
"""One toleration."""


_OPTIONAL: Mapping[str, SearchStrategy[Any]] = {
    field: sometimes(strategy, 3 if field in NEIGHBOURLY else 5)
    for field, strategy in {
        "nodeSelector": st.sampled_from(({TOPOLOGY_ZONE: "east"}, {"disk": "ssd"})),
        "affinity": affinities(),
        "tolerations": st.lists(tolerations, min_size=1, max_size=2),
        "topologySpreadConstraints": st.lists(spreads, min_size=1, max_size=2),
        "container": st.sampled_from(
            (
                {"image": "app:1"},
                {"image": "tool"},
                {"ports": [{"hostPort": 80}]},
                {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}, {"hostPort": 81}]},
            )
        ),
        "annotations": st.sampled_from(({TEMPLATE_UID: "t"}, {PREEMPTABLE: "false"})),
        "priority": st.integers(0, 2),
        "resources": st.just({"requests": {"cpu": "1500m"}}),
        "role": st.sampled_from(("master", "worker")),
    }.items()
}
_WANTS, _CALM_WANTS = (
    st.fixed_dictionaries({"size": st.sampled_from(SIZES), "labels": labels, **optional})
    for optional in (_OPTIONAL, {key: value for key, value in _OPTIONAL.items() if key not in NEIGHBOURLY})
)


@st.composite
def wants(draw: DrawFn, calm: bool = False) -> Manifest:
    """What equal pods share: arguments of :func:`~stromboli.testing.builders.pod`."""
    drawn = draw(_CALM_WANTS if calm else _WANTS)
    return {**drawn.pop("size"), **{field: value for field, value in drawn.items() if value is not None}}


# -- Jobs ------------------------------------------------------------------------------------------------------------


@st.composite
def placed(draw: DrawFn, names: Sequence[str], calm: bool = False) -> Manifest:
    """Where a pod of a gang stands: nowhere, or on one of the nodes, running, bound, or being deleted."""
    if draw(st.sampled_from((False, True, *([False] * 10 if calm else [])))) is False:
        nominated = not calm and draw(st.integers(0, 7)) == 7
        return {"nominated": draw(st.sampled_from(names)) if nominated else ""}
    phase, deleting = draw(st.sampled_from((("Running", False), ("Running", True), ("Pending", False))))
    return {"on": draw(st.sampled_from(names[:3])), "phase": phase, "deleting": deleting}


@st.composite
def gangs(draw: DrawFn, name: str, queues: Sequence[str], names: Sequence[str], calm: bool = False) -> list[Manifest]:
    """A PodGroup and its pods, of one or two kinds, some of them on nodes."""
    namespace = draw(st.sampled_from(NAMESPACES))
    found: list[Manifest] = []
    for kind, want in enumerate(draw(st.lists(wants(calm), min_size=1, max_size=2))):
        for number in range(draw(st.integers(1, 9 if calm else 4))):
            where = draw(placed(names, calm))
            found.append(pod(f"{name}-{kind}-{number}", group=name, namespace=namespace, **want, **where))
    group = pod_group(
        name,
        min_member=draw(st.integers(0, len(found))),
        queue=draw(st.sampled_from(queues)),
        phase=draw(st.sampled_from((POD_GROUP_INQUEUE, POD_GROUP_INQUEUE, POD_GROUP_PENDING, POD_GROUP_RUNNING))),
        namespace=namespace,
        created=draw(st.integers(0, 2)),
        **draw(st.sampled_from(({}, {}, {}, {"minResources": {"cpu": "2"}}))),
        **draw(groupings()),
    )
    return [group, *found]


@st.composite
def gpu_gangs(draw: DrawFn, name: str, queues: Sequence[str]) -> list[Manifest]:
    """A PodGroup whose equal pods all want devices, and nothing else that could keep them from a node."""
    size, count = draw(st.sampled_from((1, 1, 2))), draw(st.integers(2, 4))
    group = pod_group(name, min_member=draw(st.integers(2, count)), queue=draw(st.sampled_from(queues)))
    one: Manifest = {"group": name, "cpu": "500m", "memory": "500Mi", "requests": {GPU: size}}
    return [group, *(pod(f"{name}-{number}", **one) for number in range(count))]


@st.composite
def queue_sets(draw: DrawFn) -> tuple[list[Manifest], list[str]]:
    """One to three queues side by side, or a tree of two to three levels; and the names of those that may have jobs."""
    names = ["default", "q1", "q2"][: draw(st.integers(1, 3))]
    weights = {name: draw(st.integers(1, 3)) for name in names}
    if draw(st.integers(0, 3)) < 3:
        return [queue(name, weight=weights[name]) for name in names], names
    above = draw(st.sampled_from(("root", "team")))
    tree = [queue("root"), queue("team", parent="root"), queue("default", weight=weights["default"])]
    below = [queue(name, weight=weights.get(name, 1), parent="team") for name in ("q1", "q2")]
    deep = [queue("q3", parent=above)]
    return [*tree, *below, *deep], ["default", "q1", "q2", "q3"]


@st.composite
def clusters(draw: DrawFn, max_nodes: int = 12, max_gangs: int = 4) -> list[Manifest]:
    """All objects of a cluster: nodes, perhaps hypernodes, queues, gangs with all kinds of constraints.

    One in three is calm: its gangs are larger, and no pod says anything of others.  Of these every other one has ten
    nodes and more.
    """
    calm = draw(st.sampled_from((False, False, True)))
    if calm and draw(st.booleans()):
        found = draw(many_nodes())
    else:
        number = draw(st.integers(1, 3) | st.integers(1, max_nodes))
        found = [draw(nodes(f"n{each}")) for each in range(number)]
    names = [each["metadata"]["name"] for each in found]
    if draw(st.booleans()):
        found += draw(hyper_nodes(names))
    made, queues = draw(queue_sets())
    found += made
    for number in range(draw(st.integers(1, max_gangs))):
        several = draw(st.integers(0, 4)) == 4
        found += draw(gpu_gangs(f"g{number}", queues) if several else gangs(f"g{number}", queues, names, calm))
    return found


# -- What happens to them --------------------------------------------------------------------------------------------

moves: SearchStrategy[list[Move]] = st.lists(
    st.builds(Move, st.sampled_from(("allocate", *VERBS)), st.integers(0, 20), st.integers(0, 11)), max_size=8
) | st.lists(st.builds(Move, st.just("allocate"), st.integers(0, 20), st.integers(0, 11)), min_size=1, max_size=4)
"""Moves of tasks in a session."""
