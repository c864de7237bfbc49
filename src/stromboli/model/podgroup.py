"""A PodGroup: the user's word on which pods belong together and how many must run at once."""

from __future__ import annotations

import msgspec

from stromboli.model.spec import Amount, LabelSelector, Wire


class NetworkTopology(Wire, frozen=True):
    """How close together the pods must be: ``mode`` hard or soft, up to a tier by number or by name."""

    mode: str = "hard"
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Wire, frozen=True):
    """Pods of the group, split by the values of ``match_label_keys``, each part a small gang of its own."""

    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int = 0
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Wire, frozen=True):
    """``spec`` of a PodGroup (scheduling.volcano.sh/v1beta1)."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: dict[str, Amount] | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupCondition(Wire, frozen=True):
    """One condition of a PodGroup's status."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str = ""
    reason: str = ""
    message: str = ""


class PodGroupStatus(Wire, frozen=True):
    """``status`` of a PodGroup."""

    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(msgspec.Struct, frozen=True, gc=False):
    """A PodGroup object; ``key`` is ``namespace/name`` and names its job; ``created`` in seconds since 1970."""

    uid: str
    namespace: str
    name: str
    created: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
