"""What the scheduler and the controllers may do in a cluster: as little as they need, verb by verb.

:data:`SCHEDULING` and :data:`CONTROLLING` are the tables; a test compares them with the requests that are really sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

SCHEDULING_GROUP: Final = "scheduling.volcano.sh"
BATCH_GROUP: Final = "batch.volcano.sh"
TOPOLOGY_GROUP: Final = "topology.volcano.sh"
BUS_GROUP: Final = "bus.volcano.sh"
FOLLOW: Final = ("list", "watch")
READ: Final = ("get", "list", "watch")


class Grant(NamedTuple):
    """What may be done to one resource (with its subresource), and what for."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str


EVENTS: Final = Grant("", "events", ("create", "patch"), "tell what happened, and that it happened again")

SCHEDULING: Final = (
    Grant("", "nodes", READ, "where pods may go"),
    Grant(
        "",
        "pods",
        (*READ, "patch", "delete"),
        "what is to be placed; gates are taken off, reservations noted, victims end",
    ),
    Grant("", "pods/binding", ("create",), "place a pod"),
    Grant("", "pods/status", ("patch",), "say why a pod waits, and that it has to go"),
    Grant("", "namespaces", READ, "namespace selectors"),
    Grant("", "services", READ, "pods of one service are spread"),
    Grant("", "replicationcontrollers", READ, "pods of one owner are spread"),
    Grant("", "resourcequotas", READ, "plugin resourcequota"),
    Grant("apps", "replicasets", READ, "pods of one owner are spread"),
    Grant("apps", "statefulsets", READ, "pods of one owner are spread"),
    Grant("policy", "poddisruptionbudgets", READ, "plugin pdb"),
    Grant("resource.k8s.io", "resourceclaims", READ, "devices that pods of a queue claim"),
    Grant("scheduling.k8s.io", "priorityclasses", READ, "priorities of jobs"),
    Grant(SCHEDULING_GROUP, "podgroups", (*READ, "patch"), "which pods belong together; phase and conditions"),
    Grant(SCHEDULING_GROUP, "queues", (*READ, "create"), "whose jobs compete; root and default are made"),
    Grant(SCHEDULING_GROUP, "queues/status", ("patch",), "what a queue holds, and that ours are open"),
    Grant(TOPOLOGY_GROUP, "hypernodes", READ, "which nodes are close together"),
    EVENTS,
)
"""What the scheduler does in the whole cluster."""

CONTROLLING: Final = (
    Grant(BATCH_GROUP, "jobs", (*FOLLOW, "patch", "delete"), "names of claims, marks; finished jobs are deleted"),
    Grant(BATCH_GROUP, "jobs/status", ("patch",), "how a job is doing"),
    Grant(BATCH_GROUP, "jobs/finalizers", ("update",), "own pods in a way that blocks the job's deletion"),
    Grant(SCHEDULING_GROUP, "podgroups", (*FOLLOW, "create", "patch", "delete"), "those of jobs and of plain pods"),
    Grant(SCHEDULING_GROUP, "queues", (*FOLLOW, "patch"), "parents, and marks of queues closed with them"),
    Grant(SCHEDULING_GROUP, "queues/status", ("patch",), "open, closing, closed"),
    Grant(BUS_GROUP, "commands", (*FOLLOW, "delete"), "what somebody asks for, once"),
    Grant(TOPOLOGY_GROUP, "hypernodes", FOLLOW, "their members are counted"),
    Grant(TOPOLOGY_GROUP, "hypernodes/status", ("patch",), "how many members there are"),
    Grant("", "pods", (*FOLLOW, "create", "patch", "delete"), "pods of jobs; PodGroups of plain pods"),
    Grant("", "persistentvolumeclaims", (*FOLLOW, "create"), "volumes of jobs"),
    Grant("", "nodes", FOLLOW, "members of hypernodes"),
    Grant("scheduling.k8s.io", "priorityclasses", FOLLOW, "which pods of a job count first"),
    Grant("apps", "replicasets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("apps", "statefulsets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("apps", "daemonsets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("batch", "jobs", FOLLOW, "annotations that PodGroups inherit"),
    EVENTS,
)
"""What the controllers do in the whole cluster."""

LEADING: Final = (Grant("coordination.k8s.io", "leases", ("get", "create", "update"), "one of several leads"),)
"""What both do in their own namespace."""


def merged(*tables: Iterable[Grant]) -> list[Grant]:
    """Several tables as one: a row for each resource, with the verbs and reasons of all."""
    found: dict[tuple[str, str], Grant] = {}
    for grant in (grant for table in tables for grant in table):
        key = (grant.group, grant.resource)
        known = found.get(key)
        if known is None:
            found[key] = grant
        else:
            verbs = tuple(dict.fromkeys((*known.verbs, *grant.verbs)))
            why = known.why if grant.why == known.why else f"{known.why}; {grant.why}"
            found[key] = Grant(*key, verbs, why)
    return list(found.values())


def rules(grants: Iterable[Grant]) -> list[Mapping[str, object]]:
    """Grants as the rules of a Role or ClusterRole."""
    return [{"apiGroups": [grant.group], "resources": [grant.resource], "verbs": list(grant.verbs)} for grant in grants]
