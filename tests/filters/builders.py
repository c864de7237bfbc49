"""Small node tables and pods made by hand, and strategies for random ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from stromboli.framework.config.compat import Compat
from stromboli.model.job import Job
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.request import nonzero_request, pod_request
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import (
    LabelSelector,
    NodeSelectorTerm,
    NodeSpec,
    PodAffinityTerm,
    PodSpec,
    Requirement,
    SpreadConstraint,
    Taint,
    Toleration,
)
from stromboli.model.status import TaskStatus
from stromboli.model.table import NodeTable
from stromboli.model.task import PodTemplate, Task

Placed = tuple[Task, int]
_numbers = count()


def node(name: str = "n1", **fields: Any) -> NodeSpec:
    """A node that offers 4 cores, 8 GiB and 110 pods unless told otherwise."""
    offer = {"cpu": "4", "memory": "8Gi", "pods": 110, **fields.pop("offer", {})}
    return NodeSpec(name, allocatable=offer, **fields)


def table(nodes: Sequence[NodeSpec], names: Iterable[str] = ()) -> NodeTable:
    """The nodes' table, nothing placed."""
    made = NodeTable.empty(Axes(names), nodes)
    for row, spec in enumerate(nodes):
        vector = made.axes.vector(Resource.from_list(spec.allocatable))
        made.alloc[: len(vector), row] = vector
        made.alloc[2, row] = int(spec.allocatable["pods"])
    return made


def spec(cpu: str = "1", memory: str = "1Gi", **fields: Any) -> PodSpec:
    """The spec of a pod with one container; further fields as in a manifest."""
    wire = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **fields}
    return msgspec.convert(wire, PodSpec)


def template(pod: PodSpec, axes: Axes | None = None) -> PodTemplate:
    """What pods of that spec share."""
    request = pod_request(pod)
    return PodTemplate(next(_numbers), pod, request, (axes or Axes()).vector(request), nonzero_request(pod))


def task(pod: PodSpec | PodTemplate | None = None, name: str = "", axes: Axes | None = None, **fields: Any) -> Task:
    """A pod; ``labels`` and other fields as in :class:`Task`."""
    made = pod if isinstance(pod, PodTemplate) else template(pod or spec(), axes)
    name = name or f"pod-{next(_numbers)}"
    values = {"namespace": "default", "status": TaskStatus.Pending, **fields}
    return Task(uid=name, name=name, template=made, **values)


def put(where: NodeTable, row: int, *pods: Task) -> None:
    """Let the pods run on a row."""
    for pod in pods:
        vector = pod.template.vector
        where.used[: len(vector), row] += np.array(vector)
        where.requested[: len(vector), row] += np.array(vector)
        where.nonzero[:, row] += np.array(pod.template.nonzero)


def session(where: NodeTable, pods: Sequence[Placed] = (), pending: Sequence[Task] = (), **services: Any) -> Any:
    """What plugins ask of a session, made by hand."""
    job = Job("default/job")
    for pod in pending:
        job.add(pod)
    ready: dict[str, Any] = {
        "table": where,
        "snapshot": SimpleNamespace(
            pods_on_nodes=lambda: list(pods),
            namespace_labels=services.pop("namespace_labels", {}),
            all_templates=lambda: None,
            spread_selector=services.pop("spread_selector", lambda _task: None),
            services={"default": {}},
        ),
        "compat": Compat(),
        "ledger": SimpleNamespace(follows_placements=services.pop("follow", True), log=services.pop("log", [])),
        "tells": lambda _key: None,
        "active_jobs": lambda: iter([job]),
    }
    return SimpleNamespace(**{**ready, **services})


# -- Random parts ----------------------------------------------------------------------------------------------------

KEYS, VALUES = ("app", "zone", "tier"), ("a", "b", "3", "12")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)


def requirements(operators: Sequence[str], keys: Sequence[str] = KEYS) -> st.SearchStrategy[Requirement]:
    values = st.lists(st.sampled_from(VALUES), max_size=2).map(tuple)
    return st.builds(Requirement, st.sampled_from(keys), st.sampled_from(operators), values)


label_requirements = requirements(("In", "NotIn", "Exists", "DoesNotExist", "Gt"))
node_requirements = requirements(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"))
field_requirements = st.builds(
    Requirement,
    st.sampled_from(("metadata.name", "metadata.uid")),
    st.sampled_from(("In", "NotIn", "Exists")),
    st.lists(st.sampled_from(("n0", "n1", "")), min_size=1, max_size=2).map(tuple),
)
terms = st.builds(
    NodeSelectorTerm,
    st.lists(node_requirements, max_size=2).map(tuple),
    st.lists(field_requirements, max_size=1).map(tuple),
)
label_selectors = st.builds(LabelSelector, labels, st.lists(label_requirements, max_size=1).map(tuple))

EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
taints = st.builds(Taint, st.sampled_from(KEYS), st.sampled_from(("", "a")), st.sampled_from(EFFECTS))
tolerations = st.builds(
    Toleration,
    st.sampled_from(("", *KEYS)),
    st.sampled_from(("", "Equal", "Exists", "Lt")),
    st.sampled_from(("", "a")),
    st.sampled_from(("", *EFFECTS)),
)
TOPOLOGIES = ("host", "zone")


def node_lists(max_size: int = 6) -> st.SearchStrategy[list[NodeSpec]]:
    """Nodes n0, n1, ... with labels, taints and cordons; most are their own host."""

    def made(parts: list[tuple[dict[str, str], list[Taint], bool, bool]]) -> list[NodeSpec]:
        return [
            node(f"n{i}", labels={**own, **({"host": f"n{i}"} if named else {})}, taints=tuple(t), unschedulable=cordon)
            for i, (own, t, cordon, named) in enumerate(parts)
        ]

    part = st.tuples(labels, st.lists(taints, max_size=2), st.booleans(), st.sampled_from((True, True, True, False)))
    return st.lists(part, min_size=1, max_size=max_size).map(made)


affinity_terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from(TOPOLOGIES),
    label_selector=st.none() | label_selectors,
    namespaces=st.lists(st.sampled_from(("default", "other")), max_size=2).map(tuple),
    namespace_selector=st.none() | st.just(LabelSelector()) | st.just(LabelSelector({"team": "red"})),
    match_label_keys=st.sampled_from(((), ("app",))),
    mismatch_label_keys=st.sampled_from(((), ("tier",))),
)
spread_constraints = st.builds(
    SpreadConstraint,
    topology_key=st.sampled_from((*TOPOLOGIES, "kubernetes.io/hostname")),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    max_skew=st.integers(1, 3),
    min_domains=st.none() | st.integers(1, 3),
    label_selector=st.none() | label_selectors,
    match_label_keys=st.sampled_from(((), ("app",))),
    node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
)
