"""The one way to change the state of a live cluster: changes are values, told to a recorder before they are made.

A state that is given the same changes in the same order gives the same snapshots, in any process: a record of a
scheduler is the list of its changes, and what they led to is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cluster.decoding.attachable import Attachable
from stromboli.cluster.events import Deleted, Modified
from stromboli.cluster.kinds import Object
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import HyperNodeUpdate, Nomination, Plan
from stromboli.model.claims import Allocation
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.reservation import Held
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task, twin
from stromboli.model.usage import NodeUsage


class Change(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Something that happens to a state; :meth:`make` raises what the state does, and nothing has changed then."""

    def make(self, state: ClusterState) -> Any:
        """Let it happen to ``state``."""


class Applied(Change, frozen=True):
    """News of an object of ``kind`` as it counts here; ``stays`` is False when it is gone."""

    kind: str
    stays: bool
    object: Object

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.apply((Modified if self.stays else Deleted)(self.kind, self.object))


class Gone(Change, frozen=True):
    """Pod ``key`` (``namespace/name``) is gone, or does not count any more."""

    key: str

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.remove_task(state.tasks[self.key])


class Decided(Change, frozen=True):
    """Pod ``key`` stands otherwise, because of a decision or because one was taken back; the rest of it stays."""

    key: str
    status: TaskStatus
    node_name: str
    annotations: Mapping[str, str]
    eviction_occurred: bool

    @staticmethod
    def to(task: Task) -> Decided:
        """The change after which the pod stands as ``task``."""
        return Decided(task.key, task.status, task.node_name, task.annotations, task.eviction_occurred)

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        old = state.tasks[self.key]
        new = twin(old)
        new.status, new.node_name, new.annotations = self.status, self.node_name, self.annotations
        new.eviction_occurred = self.eviction_occurred
        state.replace_task(old, new)


class Reserved(Change, frozen=True):
    """Pod ``key`` of ``uid`` states ``held`` (None: no reservation)."""

    key: str
    uid: str
    held: Held | None
    proof: str = ""

    def make(self, state: ClusterState) -> bool:
        """See :class:`Change`; False if the pod is gone."""
        return state.set_reservation(self.key, self.uid, self.held, self.proof)


class StatusSet(Change, frozen=True):
    """The scheduler has given the PodGroup of job ``uid`` a status."""

    uid: str
    status: PodGroupStatus

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.set_status(self.uid, self.status)


class BudgetSet(Change, frozen=True):
    """What the disruption budget ``key`` allows, evictions under way taken off."""

    key: str
    budget: DisruptionBudget

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.budgets[self.key] = self.budget


class Learned(Change, frozen=True):
    """What a plan leaves to later cycles."""

    memory: dict[str, dict[str, float]] = {}
    hyper_nodes: list[HyperNodeUpdate] = []
    nominations: list[Nomination] = []

    @staticmethod
    def of(plan: Plan, state: ClusterState) -> Learned:
        """What is new of ``plan`` to ``state``."""
        memory = {plugin: dict(kept) for plugin, kept in plan.memory.items() if state.memory.get(plugin) != kept}
        return Learned(memory, plan.hyper_nodes, plan.nominations)

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.learn(self)


class ShardingSet(Change, frozen=True):
    """How NodeShards count (none, hard or soft), and which one is ours."""

    mode: str
    name: str

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.nodes.shards.set_mode(self.mode, self.name)


class Measured(Change, frozen=True):
    """Loads of nodes, by name."""

    usage: Mapping[str, NodeUsage]

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.measured(self.usage)


class GatesSet(Change, frozen=True):
    """Which feature gates are on."""

    on: list[str]

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.set_gates(frozenset(self.on))


class VolumesSet(Change, frozen=True):
    """What is looked at of volumes; see :meth:`~stromboli.cluster.decoding.stored.StoredVolumes.configure`.

    ``named`` leaves out pods whose ResourceClaims are not there.
    """

    capacity: bool
    ignored: frozenset[str]
    counted: bool
    named: bool = False

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        attachable = Attachable(state, self.ignored) if self.counted else None
        state.storage.configure(self.capacity, self.ignored, attachable)
        state.storage.devices.required = self.named


class VolumesGiven(Change, frozen=True):
    """What the claims of pod ``uid`` are about to get; nothing once objects say it, or it is taken back."""

    uid: str
    volumes: Mapping[str, str] = {}

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.storage.give(self.uid, self.volumes)


class ClaimsGiven(Change, frozen=True):
    """The devices that claims of pod ``key`` are about to get; nothing once objects say it, or it is taken back."""

    uid: str
    key: str
    claims: Mapping[str, Allocation] = {}

    def make(self, state: ClusterState) -> None:
        """See :class:`Change`."""
        state.storage.devices.give(self.uid, self.key, self.claims)


class Emptied(Change, frozen=True):
    """All objects are forgotten, to be told once more."""


class Cut(Change, frozen=True):
    """A cycle begins at ``now``, in seconds since 1970: the snapshot that it looks at is taken.

    ``utc_offset`` is by how many seconds local time is ahead of UTC; ``seed`` is the cycle's.
    """

    now: float
    utc_offset: int
    seed: int

    def make(self, state: ClusterState) -> Snapshot:
        """See :class:`Change`."""
        state.utc_offset = self.utc_offset
        return state.snapshot()


class Rim:
    """A state that only changes through :meth:`do`; ``tell`` hears of each change before it is made.

    ``scrub`` takes off what the state shall not have, before anything else sees it.
    """

    __slots__ = ("scrub", "state", "tell")

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.tell: Callable[[Change], object] | None = None
        self.scrub: Callable[[Object], Object] | None = None

    def do(self, change: Change) -> Any:
        """Make ``change`` and return what it gives.  Raises what the state does."""
        if self.tell is not None:
            self.tell(change)
        if isinstance(change, Emptied):
            self.state = self.state.emptied()
            return None
        return change.make(self.state)
