"""What Stromboli brings along: the tables of built-in plugins and actions."""

from __future__ import annotations

from stromboli.framework.config.registry import Registry

PLUGINS = {
    "gang": "stromboli.plugins.gang:Gang",
    "priority": "stromboli.plugins.priority:Priority",
    "conformance": "stromboli.plugins.conformance:Conformance",
    "overcommit": "stromboli.plugins.overcommit:Overcommit",
    "drf": "stromboli.plugins.drf:Drf",
    "proportion": "stromboli.plugins.proportion:Proportion",
    "capacity": "stromboli.plugins.capacity:Capacity",
    "nodegroup": "stromboli.plugins.nodegroup:NodeGroup",
    "predicates": "stromboli.plugins.predicates:Predicates",
    "nodeorder": "stromboli.plugins.nodeorder:NodeOrder",
    "binpack": "stromboli.plugins.binpack:Binpack",
    "pdb": "stromboli.plugins.pdb:Pdb",
    "tdm": "stromboli.plugins.tdm:Tdm",
    "usage": "stromboli.plugins.usage:Usage",
    "rescheduling": "stromboli.plugins.rescheduling:Rescheduling",
    "cdp": "stromboli.plugins.cdp:Cdp",
    "sla": "stromboli.plugins.sla:Sla",
    "resourcequota": "stromboli.plugins.resourcequota:ResourceQuotas",
    "network-topology-aware": "stromboli.plugins.network_topology_aware:NetworkTopologyAware",
    "numa-aware": "stromboli.plugins.numa_aware:NumaAware",
    "resource-strategy-fit": "stromboli.plugins.resource_strategy_fit:ResourceStrategyFit",
    "task-topology": "stromboli.plugins.task_topology:TaskTopology",
    "extender": "stromboli.plugins.extender:Extender",
    "deviceshare": "stromboli.plugins.deviceshare:DeviceShare",
    "fragmentation": "stromboli.plugins.deviceshare:Fragmentation",
}
"""Built-in plugins: name to ``module:Class``."""

ACTIONS = {
    "enqueue": "stromboli.actions.enqueue:Enqueue",
    "allocate": "stromboli.actions.allocate:Allocate",
    "backfill": "stromboli.actions.backfill:Backfill",
    "shuffle": "stromboli.actions.shuffle:Shuffle",
    "preempt": "stromboli.actions.preempt:Preempt",
    "reclaim": "stromboli.actions.reclaim:Reclaim",
    "gangpreempt": "stromboli.actions.gangpreempt:GangPreempt",
    "gangreclaim": "stromboli.actions.gangreclaim:GangReclaim",
}
"""Built-in actions: name to ``module:Class``."""


def builtin_registry() -> Registry:
    """A registry of everything built in; others may be added to it."""
    return Registry(PLUGINS, ACTIONS)


def full_registry(folder: str = "") -> Registry:
    """All plugins: built in, of installed packages, and of the files in ``folder``.  Raises PluginError."""
    registry = builtin_registry()
    registry.add_entry_points()
    if folder:
        registry.add_directory(folder)
    return registry
