"""A configuration as the rules look at it: which plugin answers what, in which tier, and which actions ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from stromboli.framework.config.argument import Complaint
from stromboli.framework.config.config import Config, PluginOption, load_config
from stromboli.framework.config.effective import check_arguments
from stromboli.framework.config.known_names import ACTIONS, PLUGINS
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.hook import points_of
from stromboli.framework.extension.points import POINTS
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.sim.ignored import KEEPS_CLOSE, NUMA_AWARE, Heeded, why_no_groups

EVICTING: Final = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
"""Actions that evict pods for others."""


class Entry(NamedTuple):
    """A plugin entry and its tier, counted from 1."""

    tier: int
    option: PluginOption


class Setup:
    """A configuration, read leniently so that everything odd in it is found at once."""

    def __init__(self, config: Config, registry: Registry) -> None:
        self.config, self.registry = config, registry
        self.entries = [Entry(number, option) for number, tier in enumerate(config.tiers, 1) for option in tier]

    @classmethod
    def read(cls, text: str, source: str, registry: Registry) -> Setup:
        """Read a configuration.  Raises ConfigError for what even a lenient reading refuses."""
        config = load_config(
            text,
            source=source,
            known_plugins=(*registry.plugin_names, *PLUGINS),
            known_actions=(*registry.action_names, *ACTIONS),
            lenient=True,
            without_unknown_actions=True,
            allow_hdrf_with_proportion=True,
        )
        return cls(config, registry)

    @property
    def source(self) -> str:
        """The file."""
        return self.config.source

    def acts(self, *names: str) -> bool:
        """Whether any of these actions is listed."""
        return any(name in self.config.actions for name in names)

    def find(self, *names: str) -> Entry | None:
        """The first entry of a plugin with one of these names."""
        return next((entry for entry in self.entries if entry.option.name in names), None)

    def answering(self, point: str) -> list[Entry]:
        """The entries that are asked at a point: the plugin has a hook there and its switch is on."""
        return [e for e in self.entries if point in self.points(e.option) and e.option.enabled(POINTS[point])]

    def lists(self, plugin: str) -> bool:
        """Whether the configuration lists a plugin of that name."""
        return any(entry.option.name == plugin for entry in self.entries)

    def heeded(self) -> Heeded:
        """Which wishes of objects the plugins heed."""
        groups = self.find(NetworkTopologyAware.name)
        no_groups = why_no_groups(groups.option.arguments if groups else None)
        return Heeded(bool(self.answering(KEEPS_CLOSE)), self.lists(NUMA_AWARE), no_groups)

    def knows(self, option: PluginOption) -> bool:
        """Whether the plugin can be looked at: it is one of ours, so all its hooks are in its class."""
        return option.name in self.registry.plugin_names and not option.path and bool(self.points(option))

    def points(self, option: PluginOption) -> frozenset[str]:
        """The points that a plugin answers; none for one that is not there."""
        if option.name not in self.registry.plugin_names:
            return frozenset()
        found = self.registry.plugin_class(option.name)
        return points_of(found) if found is not None else frozenset()

    def argument_complaints(self) -> tuple[Complaint, ...]:
        """What is wrong with arguments of plugins and actions that are there."""
        here = tuple(name for name in self.config.actions if name in self.registry.action_names)
        return check_arguments(replace(self.config, actions=here), self.registry)

    def lines(self, *names: str) -> Iterator[int]:
        """The lines of entries with these names."""
        return (entry.option.line for entry in self.entries if entry.option.name in names)
