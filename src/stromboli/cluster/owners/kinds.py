"""The table of kinds that own pods: where each says how many pods it makes, in which roles, for which queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stromboli.cluster.kinds import OwnerReference


def is_of_kubernetes(group: str) -> bool:
    """Whether an API group is one of Kubernetes' own: the core, those without a domain, and those of k8s.io."""
    return "." not in group or group.endswith(".k8s.io")


class Role(NamedTuple):
    """Pods of one sort, or a list or mapping of such sorts.

    ``at`` is the path of the list (``spec.x[]``) or mapping (``spec.x{}``) whose entries are roles; without one the
    object itself is the role.  ``name`` is the field that names an entry, or after ``=`` the name itself; keys of a
    mapping are names in lower case.  The number of pods is the product of the fields ``counts``, those absent being 1,
    less ``minus``; the field ``most`` bounds the last one, and ``least`` stands in for the first in an elastic object.
    ``template`` is the path of the pod's spec, ``instead`` where that is absent; without both there is no such role.
    Roles whose field ``after`` holds something start later than others.
    """

    at: str = ""
    name: str = ""
    counts: tuple[str, ...] = ()
    minus: int = 0
    most: str = ""
    least: str = ""
    template: str = "template.spec"
    instead: str = ""
    after: str = ""


class OwnerKind(NamedTuple):
    """One kind: paths in its objects, and labels of their pods.

    ``label`` names a pod's role; the values of ``part`` divide the pods of one object into gangs, those of ``sub_gang``
    the pods of a role into gangs within the gang.  ``elastic`` is the path of a truth value.  ``late`` is a path, the
    value with which some roles start later than the rest, and which: one role, or all but the first (empty).  What is
    ``apart`` owns things that are gangs of their own.
    """

    group: str
    kind: str
    roles: tuple[Role, ...] = ()
    label: str = ""
    part: str = ""
    sub_gang: str = ""
    minimum: str = ""
    queue: tuple[str, ...] = ()
    priority: tuple[str, ...] = ()
    elastic: str = ""
    late: tuple[str, str, str] = ("", "", "")
    apart: bool = False

    @property
    def plural(self) -> str:
        """The kind's name in paths."""
        return f"{self.kind.lower()}s"


_POLICY: Final = "spec.runPolicy.schedulingPolicy"
_RAY_LABELS: Final = ("metadata.labels.volcano\\.sh/queue-name", "metadata.labels.ray\\.io/priority-class-name")


def _training(kind: str, field: str, label: str = "training.kubeflow.org/replica-type") -> OwnerKind:
    """A kind of Kubeflow's training operator; the mapping of roles is called ``field``."""
    return OwnerKind(
        "kubeflow.org",
        kind,
        (Role(f"spec.{field}{{}}", counts=("replicas",)),),
        label,
        minimum=f"{_POLICY}.minAvailable",
        queue=(f"{_POLICY}.queue",),
        priority=(f"{_POLICY}.priorityClass",),
    )


def _ray(kind: str, spec: str) -> OwnerKind:
    """A kind of KubeRay whose cluster is described at ``spec``."""
    return OwnerKind(
        "ray.io",
        kind,
        (
            Role(name="=headgroup", template=f"{spec}.headGroupSpec.template.spec"),
            Role(f"{spec}.workerGroupSpecs[]", "groupName", ("replicas", "numOfHosts"), least="minReplicas"),
        ),
        "ray.io/group",
        queue=_RAY_LABELS[:1],
        priority=_RAY_LABELS[1:],
        elastic=f"{spec}.enableInTreeAutoscaling",
    )


_JOB: Final = Role(counts=("spec.parallelism",), most="spec.completions", template="spec.template.spec")
_REPLICATED_JOB: Final = Role(
    "spec.replicatedJobs[]",
    "name",
    ("replicas", "template.spec.parallelism"),
    most="template.spec.completions",
    template="template.spec.template.spec",
    after="dependsOn",
)
_WORKERS: Final = "spec.leaderWorkerTemplate"

TABLE: Final = (
    OwnerKind("", "Pod"),
    OwnerKind("apps", "ReplicaSet"),
    OwnerKind("apps", "Deployment"),
    OwnerKind("apps", "StatefulSet"),
    OwnerKind("apps", "DaemonSet"),
    OwnerKind("batch", "Job", (_JOB,)),
    OwnerKind("batch", "CronJob", apart=True),
    OwnerKind(
        "jobset.x-k8s.io",
        "JobSet",
        (_REPLICATED_JOB,),
        "jobset.sigs.k8s.io/replicatedjob-name",
        sub_gang="jobset.sigs.k8s.io/job-index",
        late=("spec.startupPolicy.startupPolicyOrder", "InOrder", ""),
    ),
    OwnerKind("trainer.kubeflow.org", "TrainJob"),
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("PaddleJob", "paddleReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    _training("MPIJob", "mpiReplicaSpecs", "training.kubeflow.org/job-role")._replace(
        late=("spec.launcherCreationPolicy", "WaitForWorkersReady", "launcher")
    ),
    OwnerKind("kubeflow.org", "Notebook"),
    _ray("RayCluster", "spec"),
    _ray("RayJob", "spec.rayClusterSpec"),
    OwnerKind("ray.io", "RayService", apart=True),
    OwnerKind("sparkoperator.k8s.io", "SparkApplication", queue=("spec.batchSchedulerOptions.queue",)),
    OwnerKind("sparkoperator.k8s.io", "ScheduledSparkApplication", apart=True),
    OwnerKind(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        (
            Role(name="=leader", template=f"{_WORKERS}.leaderTemplate.spec", instead=f"{_WORKERS}.workerTemplate.spec"),
            Role(name="=worker", counts=(f"{_WORKERS}.size",), minus=1, template=f"{_WORKERS}.workerTemplate.spec"),
        ),
        part="leaderworkerset.sigs.k8s.io/group-index",
        late=("spec.startupPolicy", "LeaderReady", ""),
    ),
    OwnerKind("argoproj.io", "Workflow", apart=True),
    OwnerKind("argoproj.io", "CronWorkflow", apart=True),
)
"""The kinds whose objects are read; those without roles make no gang of their own."""

OWNER_KINDS: Final[Mapping[tuple[str, str], OwnerKind]] = {(row.group, row.kind): row for row in TABLE}
"""The table by group and kind."""

FOLLOWED: Final = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job")
"""Kubernetes' own kinds that the controllers follow anyway; others are read one by one, when their pods come."""


def row_of(reference: OwnerReference) -> OwnerKind | None:
    """The row of the owner that ``reference`` names, None for a kind that is not in the table."""
    return OWNER_KINDS.get((reference.api_version.rpartition("/")[0], reference.kind))
