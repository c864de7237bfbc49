"""What only a run against an API server can give to plugins and actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from stromboli.errors import LIVE, CapabilityMissing

if TYPE_CHECKING:
    from stromboli.framework.books.plan import Plan
    from stromboli.framework.config.config import PluginOption
    from stromboli.framework.extension.plugin import Plugin

CAPABILITIES: Final = (
    "kube_client",
    "vc_client",
    "client_config",
    "informers",
    "recorder",
    "shared_dra_manager",
    "gate_manager",
)
"""Names under which a session hands them out."""
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
"""What a run without an API server offers."""


class Offering(Protocol):
    """What offers capabilities: a session."""

    capabilities: Mapping[str, object]
    opening: tuple[int, PluginOption, Plugin] | None
    plan: Plan


def capability(session: Offering, name: str) -> object:
    """A capability of this run; the session's plan depends on more than the snapshot from now on.

    Raises CapabilityMissing, which names the plugin that opens at the moment.
    """
    if name not in session.capabilities:
        plugin = session.opening[2].name if session.opening else ""
        raise CapabilityMissing(name, plugin, LIVE if session.capabilities else "plan")
    session.plan.replayable = False
    return session.capabilities[name]
