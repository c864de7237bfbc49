"""What a scheduler on a live cluster can be told, apart from its configuration file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stromboli.cluster.rim import Change, GatesSet, ShardingSet, VolumesSet
from stromboli.framework.config.config import Config
from stromboli.live.scheduler.hash_ring import Replica
from stromboli.model.names import DEFAULT_QUEUE, NAMESPACE, SCHEDULER_NAME
from stromboli.model.objects.shard import NONE


class Options(msgspec.Struct, frozen=True):
    """Defaults are the reference's flags'; times in seconds.

    ``audit_period`` is how often the state is compared with a fresh list, 0 for never; ``in_thread`` runs cycles in a
    thread of their own, so that the event loop goes on meanwhile.  ``namespace`` is the scheduler's
    own, where the Secret is by which it proves its reservations; ``replica`` is which of several schedulers it is that
    divide nodes and jobs.  ``sharding_mode`` (none, hard, soft) says how NodeShards count, and ``sharding_name``
    which one is its own.
    """

    scheduler_names: tuple[str, ...] = (SCHEDULER_NAME,)
    default_queue: str = DEFAULT_QUEUE
    schedule_period: float = 1.0
    resource_sync_timeout: float = 60.0
    resync_period: float = 0.0
    priority_class: bool = True
    disruption_budgets: bool = True
    workloads: bool = True
    csi_storage: bool = True
    ignored_provisioners: frozenset[str] = frozenset()
    node_selector: tuple[str, ...] = ()
    audit_period: float = 300.0
    stop_timeout: float = 20.0
    seed: int = 0
    in_thread: bool = True
    namespace: str = NAMESPACE
    replica: Replica | None = None
    sharding_mode: str = NONE
    sharding_name: str = SCHEDULER_NAME

    @property
    def component(self) -> str:
        """The source that events name."""
        return self.scheduler_names[0] if len(self.scheduler_names) == 1 else SCHEDULER_NAME

    def changes(self, config: Config) -> Sequence[Change]:
        """What a state is told at the start: feature gates, and what is looked at of volumes."""
        counted = config.ways.asks("attachable-volumes")
        volumes = VolumesSet(self.csi_storage, self.ignored_provisioners, counted)
        shards = () if self.sharding_mode == NONE else (ShardingSet(self.sharding_mode, self.sharding_name),)
        return GatesSet(sorted(config.gates)), volumes, *shards

    @property
    def unwatched(self) -> tuple[str, ...]:
        """Kinds that are not looked at."""
        switches = {"PriorityClass": self.priority_class, "PodDisruptionBudget": self.disruption_budgets}
        switches["NodeShard"] = self.sharding_mode != NONE
        switches |= dict.fromkeys(("CSIDriver", "CSIStorageCapacity"), self.csi_storage)
        switches |= dict.fromkeys(("ReplicationController", "ReplicaSet", "StatefulSet"), self.workloads)
        return tuple(kind for kind, wanted in switches.items() if not wanted)
