"""What annotations of a PodGroup ask of its topology group, or why they have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from stromboli.model.job import Job
from stromboli.model.names import TOPOLOGY_GROUP as GROUP
from stromboli.model.names import TOPOLOGY_GROUP_POLICY as POLICY
from stromboli.model.names import TOPOLOGY_GROUP_TIER as TIER

SAME, APART, PACK, SPREAD = "same", "apart", "pack", "spread"
POLICIES: Final = (SAME, APART, PACK, SPREAD)
KEPT: Final = frozenset({SAME, APART})
"""Policies that are kept whatever it costs."""
MOST_MEMBERS: Final = 256
"""PodGroups of one group; more are not looked at as one."""
IGNORED: Final = "TopologyGroupIgnored"
"""Reason of the event of a PodGroup whose annotations have no effect."""
PLUGIN: Final = "network-topology-aware"
SWITCH: Final = "hypernode.topology-groups.enable"
OFF: Final = f"topology groups are off: {PLUGIN} has them with {SWITCH}"
ABSENT: Final = f"no plugin of the configuration looks at topology groups ({PLUGIN} does, with {SWITCH})"
TOO_MANY: Final = f"the group has more than {MOST_MEMBERS} PodGroups"


class Wish(NamedTuple):
    """What one job asks: its ``group``, with its namespace, the ``policy`` and the ``tier`` of the domains."""

    group: tuple[str, str]
    policy: str
    tier: int


class Reader:
    """Reads annotations of PodGroups one after another: of one group only the first have an effect.

    ``tiers`` are the numbers that HyperNodes bear, ``named`` those of them that have a name, by that.
    """

    def __init__(self, named: Mapping[str, int], tiers: Collection[int]) -> None:
        self._named, self._tiers = named, tiers
        self._members: Counter[tuple[str, str]] = Counter()

    def read(self, job: Job) -> tuple[Wish | None, str]:
        """What the annotations of ``job`` ask, or why they cannot be heeded."""
        wish, problem = read(job, self._named, self._tiers)
        if wish is not None:
            self._members[wish.group] += 1
            if self._members[wish.group] > MOST_MEMBERS:
                return None, TOO_MANY
        return wish, problem


def read(job: Job, named: Mapping[str, int], tiers: Collection[int]) -> tuple[Wish | None, str]:
    """:meth:`Reader.read` of one job by itself."""
    if not (group := job.annotations.get(GROUP, "")):
        return None, f"{GROUP} is missing, so that no group is named"
    policy, tier = job.annotations.get(POLICY, PACK), job.annotations.get(TIER, "1")
    if policy not in POLICIES:
        return None, f"{POLICY} is {policy:.40}, not one of {', '.join(POLICIES)}"
    known = named.get(tier)
    number = int(tier) if known is None and tier.isascii() and tier.isdigit() and len(tier) < 10 else known
    if number is None or number not in tiers:
        return None, f"{TIER} is {tier:.63}, which no HyperNode bears"
    if not job.facts.is_close:
        return None, f"{GROUP} needs a spec.networkTopology, such as {{mode: soft}}"
    return Wish((job.namespace, group), policy, number), ""
