"""Names of the reference's plugins and actions, of those too that this release does not have."""

from __future__ import annotations

from typing import Final

PLUGINS: Final = (
    "binpack", "capacity", "cdp", "conformance", "deviceshare", "drf", "extender", "gang", "network-topology-aware",
    "nodegroup", "nodeorder", "numa-aware", "overcommit", "pdb", "predicates", "priority", "proportion", "rescheduling",
    "resource-strategy-fit", "resourcequota", "sla", "task-topology", "tdm", "usage",
)  # fmt: skip
"""The reference's plugins."""
ACTIONS: Final = (
    "enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim",
)  # fmt: skip
"""The reference's actions."""
