"""What the scheduler and the controllers may do in a cluster: each as little as it needs, verb by verb.

The tables are :data:`SCHEDULING` and :data:`CONTROLLING` for the whole cluster, :data:`SCHEDULER_OWN` and
:data:`CONTROLLERS_OWN` for their own namespace.  Tests compare them with the requests that each really sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from stromboli.api.kinds import (
    BATCH_GROUP,
    BUS_GROUP,
    FLOW_GROUP,
    NODEINFO_GROUP,
    SCHEDULING_GROUP,
    SHARD_GROUP,
    TOPOLOGY_GROUP,
)
from stromboli.cluster.owners.kinds import TABLE
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.live.proofs.keys import SECRET
from stromboli.model.names import CERTIFICATE_SECRET, CONTROLLERS_LEASE, SCHEDULER_LEASE
from stromboli.model.resources.device_settings import DEVICE_CONFIG

NETWORKING_GROUP: Final = "networking.k8s.io"
ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
CONFIGURATIONS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
FOLLOW: Final = ("list", "watch")
READ: Final = ("get", "list", "watch")
KEEP: Final = ("get", "create", "patch", "delete")


class Grant(NamedTuple):
    """What may be done to one resource (with its subresource), and what for; ``names``, if any, are the objects."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()


EVENTS: Final = Grant("", "events", ("create", "patch"), "tell what happened, and that it happened again")

SCHEDULING: Final = (
    Grant("", "nodes", (*READ, "patch"), "where pods may go; plugin deviceshare's node locks are noted"),
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
    Grant("", "persistentvolumes", (*READ, "patch"), "where volumes are; which claim gets one is noted"),
    Grant("", "persistentvolumeclaims", (*READ, "patch"), "volumes of pods; for which node one is made is noted"),
    *(
        Grant("storage.k8s.io", plural, READ, "where volumes can be made, and how many nodes attach")
        for plural in ("storageclasses", "csidrivers", "csinodes", "csistoragecapacities", "volumeattachments")
    ),
    Grant("policy", "poddisruptionbudgets", READ, "plugin pdb"),
    Grant("resource.k8s.io", "resourceclaims", (*READ, "patch"), "devices that pods claim; what is in use is kept"),
    *(
        Grant("resource.k8s.io", f"resourceclaims/{part}", ("patch",), "which devices a claim has, and for which pods")
        for part in ("status", "binding")
    ),
    *(
        Grant("resource.k8s.io", plural, READ, "which devices there are")
        for plural in ("deviceclasses", "resourceslices")
    ),
    Grant("scheduling.k8s.io", "priorityclasses", READ, "priorities of jobs"),
    Grant("scheduling.k8s.io", "podgroups", READ, "Kubernetes' own PodGroups, where the server has them"),
    Grant("scheduling.k8s.io", "workloads", READ, "the queues of their PodGroups"),
    Grant("scheduling.k8s.io", "podgroups/status", ("patch",), "whether such a gang has been placed"),
    Grant(SCHEDULING_GROUP, "podgroups", (*READ, "patch"), "which pods belong together; phase and conditions"),
    Grant(SCHEDULING_GROUP, "queues", (*READ, "create"), "whose jobs compete; root and default are made"),
    Grant(SCHEDULING_GROUP, "queues/status", ("patch",), "what a queue holds, and that ours are open"),
    Grant(TOPOLOGY_GROUP, "hypernodes", READ, "which nodes are close together"),
    Grant(NODEINFO_GROUP, "numatopologies", READ, "plugin numa-aware"),
    Grant(SHARD_GROUP, "nodeshards", READ, "which nodes are ours among several schedulers"),
    Grant(SHARD_GROUP, "nodeshards/status", ("patch",), "which nodes we use"),
    Grant("", "configmaps", READ, "plugin deviceshare: what kinds of device there are", (DEVICE_CONFIG,)),
    EVENTS,
)
"""What the scheduler does in the whole cluster."""

_OWNERS: Final = tuple(
    Grant(row.group, row.plural, ("get",), "gangs of the pods below them") for row in TABLE if row.group
)
"""Whatever may own pods: nothing is asked for where no such pod comes."""

CONTROLLING: Final = (
    Grant(
        BATCH_GROUP,
        "jobs",
        (*FOLLOW, "create", "patch", "delete"),
        "names of claims, marks; finished jobs are deleted, those of CronJobs and JobFlows made",
    ),
    Grant(BATCH_GROUP, "jobs/status", ("patch",), "how a job is doing"),
    Grant(BATCH_GROUP, "jobs/finalizers", ("update",), "own pods in a way that blocks the job's deletion"),
    Grant(SCHEDULING_GROUP, "podgroups", (*FOLLOW, "create", "patch", "delete"), "those of jobs and of plain pods"),
    Grant(SCHEDULING_GROUP, "queues", (*FOLLOW, "patch"), "parents, and marks of queues closed with them"),
    Grant(SCHEDULING_GROUP, "queues/status", ("patch",), "open, closing, closed"),
    Grant(BUS_GROUP, "commands", (*FOLLOW, "delete"), "requests of users, each run once"),
    Grant(
        TOPOLOGY_GROUP,
        "hypernodes",
        (*FOLLOW, "create", "patch", "delete"),
        "their members are counted; discovery makes them",
    ),
    Grant(TOPOLOGY_GROUP, "hypernodes/status", ("patch",), "how many members there are"),
    Grant("", "pods", (*FOLLOW, "get", "create", "patch", "delete"), "pods of jobs; PodGroups of plain pods"),
    Grant("", "persistentvolumeclaims", (*FOLLOW, "create"), "volumes of jobs"),
    Grant("", "services", KEEP, "job plugins svc and ray: names of pods"),
    Grant("", "configmaps", KEEP, "job plugin svc: lists of hosts"),
    Grant("", "secrets", KEEP, "job plugin ssh: keys; none is listed"),
    Grant(NETWORKING_GROUP, "networkpolicies", KEEP, "job plugin svc: others are kept out"),
    Grant("", "nodes", FOLLOW, "members of hypernodes, and of shards"),
    Grant("scheduling.k8s.io", "priorityclasses", FOLLOW, "which pods of a job count first"),
    Grant("apps", "replicasets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("apps", "statefulsets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("apps", "daemonsets", FOLLOW, "annotations that PodGroups inherit"),
    Grant("batch", "jobs", FOLLOW, "annotations that PodGroups inherit"),
    *_OWNERS,
    Grant(BATCH_GROUP, "cronjobs", FOLLOW, "whose jobs are made by a schedule"),
    Grant(BATCH_GROUP, "cronjobs/status", ("patch",), "which jobs run, and when the last was made"),
    Grant(BATCH_GROUP, "cronjobs/finalizers", ("update",), "own jobs in a way that blocks the CronJob's deletion"),
    Grant(FLOW_GROUP, "jobflows", FOLLOW, "whose jobs wait for each other"),
    Grant(FLOW_GROUP, "jobflows/status", ("patch",), "how its jobs are doing"),
    Grant(FLOW_GROUP, "jobflows/finalizers", ("update",), "own jobs in a way that blocks the JobFlow's deletion"),
    Grant(FLOW_GROUP, "jobtemplates", FOLLOW, "what the jobs of JobFlows are made of"),
    Grant(FLOW_GROUP, "jobtemplates/status", ("patch",), "which jobs were made of it"),
    Grant(SHARD_GROUP, "nodeshards", (*FOLLOW, "create", "patch", "delete"), "which nodes are whose"),
    EVENTS,
)
"""What the controllers do in the whole cluster."""

_DISCOVERED: Final = frozenset({f"{TOPOLOGY_GROUP}/hypernodes", f"{TOPOLOGY_GROUP}/hypernodes/status", "/nodes"})
DISCOVERING: Final = (
    *(grant for grant in CONTROLLING if f"{grant.group}/{grant.resource}" in _DISCOVERED),
    EVENTS,
)
"""What the HyperNode controller does in the whole cluster when it runs by itself."""

UFM_SECRET: Final = "ufm-credentials"
"""The Secret that the documentation gives the login of UFM; another one needs a Role of its own."""

_LEASES: Final = "coordination.k8s.io"
_LEADING: Final = Grant(_LEASES, "leases", ("create",), "one of several leads: a name cannot be asked for here")

SCHEDULER_OWN: Final = (
    _LEADING,
    Grant(_LEASES, "leases", ("get", "update"), "one of several leads", (SCHEDULER_LEASE,)),
    Grant("", "secrets", ("create",), "the key that proves reservations; a name cannot be asked for here"),
    Grant("", "secrets", ("get", "update"), "the key that proves reservations", (SECRET,)),
)
"""What the scheduler does in its own namespace."""

CONTROLLERS_OWN: Final = (
    _LEADING,
    Grant(_LEASES, "leases", ("get", "update"), "one of several leads", (CONTROLLERS_LEASE,)),
    Grant("", "configmaps", READ, "where HyperNodes come from, trees of them, and shards"),
    Grant("", "secrets", ("get",), "the login of UFM", (UFM_SECRET,)),
)
"""What the controllers do in theirs, which is the same."""

HYPERNODE_LEASE: Final = "vc-hypernode-controller-manager"
"""The Lease of the HyperNode controller when it runs by itself."""
DISCOVERING_OWN: Final = tuple(
    grant._replace(names=(HYPERNODE_LEASE,)) if grant.names == (CONTROLLERS_LEASE,) else grant
    for grant in CONTROLLERS_OWN
)
"""What it does in its own namespace: what the controllers do, with another Lease."""


REVIEWING: Final = (
    Grant(SCHEDULING_GROUP, "queues", FOLLOW, "which queues take jobs, and what they may be given"),
    Grant("", "namespaces", FOLLOW, "the queues of PodGroups that name none"),
    Grant("", "namespaces", ("get",), "one that is so new that it has not been heard of"),
    *(Grant(ADMISSION_GROUP, plural, FOLLOW, "whether the authorities there are right") for plural in CONFIGURATIONS),
    *(
        Grant(
            ADMISSION_GROUP,
            CONFIGURATIONS[not path.is_mutating],
            ("patch",),
            "the authorities by which our certificate is known",
            (path.configuration,),
        )
        for path in ALL_PATHS.values()
    ),
)
"""What the webhook server does in the whole cluster: it changes the webhook configurations of those names alone."""

WEBHOOKS_OWN: Final = (
    Grant("", "secrets", ("create",), "the certificate; a name cannot be asked for here"),
    Grant("", "secrets", ("get", "update"), "the certificate", (CERTIFICATE_SECRET,)),
)
"""What the webhook server does in its own namespace."""


def rules(grants: Iterable[Grant]) -> list[Mapping[str, object]]:
    """Grants as the rules of a Role or ClusterRole."""
    return [
        {
            "apiGroups": [grant.group],
            "resources": [grant.resource],
            **({"resourceNames": list(grant.names)} if grant.names else {}),
            "verbs": list(grant.verbs),
        }
        for grant in grants
    ]
