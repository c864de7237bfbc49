"""The one table of our kinds: where each stands in the API, what kubectl calls it, and the columns it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stromboli.api.batch import CronJob, Job
from stromboli.api.bus import Command
from stromboli.api.fields import Resource
from stromboli.api.flow import JobFlow, JobTemplate
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.topology import HyperNode, NodeShard, Numatopology

BATCH_GROUP: Final = "batch.volcano.sh"
SCHEDULING_GROUP: Final = "scheduling.volcano.sh"
BUS_GROUP: Final = "bus.volcano.sh"
TOPOLOGY_GROUP: Final = "topology.volcano.sh"
FLOW_GROUP: Final = "flow.volcano.sh"
NODEINFO_GROUP: Final = "nodeinfo.volcano.sh"
SHARD_GROUP: Final = "shard.volcano.sh"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; those of ``priority`` above 0 are shown with ``-o wide``."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """One row: the class of the objects, where they are found, and how they are shown.

    ``status`` says whether the status is a subresource of its own; otherwise plain writes change it.
    """

    type: type[Resource]
    group: str
    version: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = True
    columns: tuple[Column, ...] = ()

    @property
    def kind(self) -> str:
        """``Job``."""
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """``batch.volcano.sh/v1alpha1``."""
        return f"{self.group}/{self.version}"

    @property
    def resource(self) -> str:
        """``jobs.batch.volcano.sh``: the name of its definition."""
        return f"{self.plural}.{self.group}"


_PHASE: Final = Column("STATUS", ".status.phase")
_STATE: Final = Column("STATUS", ".status.state.phase")
_RUNNING: Final = Column("RUNNINGS", ".status.running", "integer")
_AGE: Final = Column("AGE", ".metadata.creationTimestamp", "date")
_QUEUE: Final = Column("QUEUE", ".spec.queue", priority=1)

ALL: Final = (
    Kind(
        Job,
        BATCH_GROUP,
        "v1alpha1",
        "jobs",
        ("vcjob", "vj"),
        columns=(_STATE, Column("minAvailable", ".status.minAvailable", "integer"), _RUNNING, _AGE, _QUEUE),
    ),
    Kind(CronJob, BATCH_GROUP, "v1alpha1", "cronjobs", ("cronvcjob", "cronvj")),
    Kind(
        PodGroup,
        SCHEDULING_GROUP,
        "v1beta1",
        "podgroups",
        ("pg", "podgroup-v1beta1"),
        status=False,
        columns=(_PHASE, Column("minMember", ".spec.minMember", "integer"), _RUNNING, _AGE, _QUEUE),
    ),
    Kind(
        Queue,
        SCHEDULING_GROUP,
        "v1beta1",
        "queues",
        ("q", "queue-v1beta1"),
        namespaced=False,
        columns=(Column("PARENT", ".spec.parent"),),
    ),
    Kind(Command, BUS_GROUP, "v1alpha1", "commands", status=False),
    Kind(
        HyperNode,
        TOPOLOGY_GROUP,
        "v1alpha1",
        "hypernodes",
        ("hn",),
        namespaced=False,
        columns=(
            Column("Tier", ".spec.tier"),
            Column("TierName", ".spec.tierName"),
            Column("NodeCount", ".status.nodeCount", "integer"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    ),
    Kind(
        JobFlow,
        FLOW_GROUP,
        "v1alpha1",
        "jobflows",
        ("jf",),
        columns=(
            Column("Status", ".status.state.phase"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    ),
    Kind(JobTemplate, FLOW_GROUP, "v1alpha1", "jobtemplates", ("jt",)),
    Kind(Numatopology, NODEINFO_GROUP, "v1alpha1", "numatopologies", ("numatopo",), namespaced=False, status=False),
    Kind(NodeShard, SHARD_GROUP, "v1alpha1", "nodeshards", ("nsh",), namespaced=False, columns=(_AGE,)),
)
"""All our kinds, in the order in which their definitions are written."""

KINDS: Final[Mapping[str, Kind]] = {row.kind: row for row in ALL}
"""By kind."""

RESOURCES: Final[Mapping[str, Kind]] = {row.resource: row for row in ALL}
"""By resource, such as ``jobs.batch.volcano.sh``."""

JOBS: Final = KINDS["Job"].resource
POD_GROUPS: Final = KINDS["PodGroup"].resource
QUEUES: Final = KINDS["Queue"].resource
COMMANDS: Final = KINDS["Command"].resource
HYPER_NODES: Final = KINDS["HyperNode"].resource
CRON_JOBS: Final = KINDS["CronJob"].resource
JOB_FLOWS: Final = KINDS["JobFlow"].resource
JOB_TEMPLATES: Final = KINDS["JobTemplate"].resource
NODE_SHARDS: Final = KINDS["NodeShard"].resource
PODS: Final = "pods"
NAMESPACES: Final = "namespaces"
