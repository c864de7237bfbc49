"""What only a run against an API server can give to plugins and actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stromboli.errors import LIVE, CapabilityMissing

CAPABILITIES: Final = (
    "kube_client",
    "vc_client",
    "client_config",
    "informers",
    "recorder",
    "shared_dra_manager",
    "gate_manager",
    "extender",
)
"""Names under which a session hands them out."""
RECORDED: Final = frozenset({"extender"})
"""Those whose answers stand in the plan, so that it can be repeated."""
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
"""What a run without an API server offers."""


def capability(offered: Mapping[str, object], name: str, plugin: str) -> object:
    """What is ``offered`` under ``name``; raises CapabilityMissing, which names ``plugin``, where nothing is."""
    if name not in offered:
        raise CapabilityMissing(name, plugin, LIVE if offered else "plan")
    return offered[name]
