"""What only a run against an API server can give to plugins and actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stromboli.errors import LIVE, SHADOW, CapabilityMissing

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
WRITING: Final = frozenset({"client_config", "gate_manager", "extender"})
"""Those with which a plugin could change the cluster, or have others do it, past the client of the run: a run that
writes nothing does not offer them."""
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
"""What a run without an API server offers."""


def capability(offered: Mapping[str, object], name: str, plugin: str) -> object:
    """What is ``offered`` under ``name``; raises CapabilityMissing, which names ``plugin``, where nothing is."""
    if name not in offered:
        raise CapabilityMissing(name, plugin, _mode(offered))
    return offered[name]


def _mode(offered: Mapping[str, object]) -> str:
    """What kind of run offers this."""
    if not offered:
        return "plan"
    return SHADOW if offered.keys().isdisjoint(WRITING) else LIVE
