"""What Stromboli brings along: the tables of built-in plugins and actions."""

from __future__ import annotations

from stromboli.framework.registry import Registry

PLUGINS = {
    "gang": "stromboli.plugins.gang:Gang",
    "priority": "stromboli.plugins.priority:Priority",
    "conformance": "stromboli.plugins.conformance:Conformance",
    "overcommit": "stromboli.plugins.overcommit:Overcommit",
    "drf": "stromboli.plugins.drf:Drf",
    "proportion": "stromboli.plugins.proportion:Proportion",
    "predicates": "stromboli.plugins.predicates:Predicates",
    "nodeorder": "stromboli.plugins.nodeorder:NodeOrder",
    "binpack": "stromboli.plugins.binpack:Binpack",
    "sla": "stromboli.plugins.sla:Sla",
    "resourcequota": "stromboli.plugins.resourcequota:ResourceQuotas",
}
"""Built-in plugins: name to ``module:Class``."""

ACTIONS = {
    "enqueue": "stromboli.actions.enqueue:Enqueue",
    "allocate": "stromboli.actions.allocate:Allocate",
    "backfill": "stromboli.actions.backfill:Backfill",
}
"""Built-in actions: name to ``module:Class``."""


def builtin_registry() -> Registry:
    """A registry of everything built in; others may be added to it."""
    return Registry(PLUGINS, ACTIONS)
