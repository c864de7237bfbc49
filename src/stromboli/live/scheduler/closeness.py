"""PodGroups that must lie close together, or near others, though no plugin of the configuration sees to it: told so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from stromboli.api.fields import HARD
from stromboli.controllers.pods import JOB_API, JOB_KIND
from stromboli.errors import PluginError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.hook import points_of
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.kube.recorder import Regarding
from stromboli.live.scheduler.context import Context
from stromboli.model.job import Job
from stromboli.model.names import EVENT_WARNING
from stromboli.model.podgroup import asks_for_group
from stromboli.plugins.network_topology_aware.wishes import ABSENT, IGNORED, PLUGIN
from stromboli.sim.ignored import FAR, KEEPS_CLOSE

MOST: Final = 100
"""Objects that are told in one look; the others are told in the next ones."""

REASON: Final = "NetworkTopologyIgnored"


class Closeness:
    """Looks for such PodGroups from time to time; ``config`` gives the configuration and its plugins."""

    def __init__(self, context: Context, config: Callable[[], tuple[Config, Registry]]) -> None:
        self._context, self._config = context, config
        self._told: set[Told] = set()

    def look(self) -> None:
        """Tell each PodGroup, and the Job that it was made for, once, as long as it asks for it in vain."""
        if not self._context.may_write():
            return
        found = list(self._in_vain(*self._config()))
        self._told.intersection_update(found)
        for one in [one for one in found if one not in self._told][:MOST]:
            self._told.add(one)
            self._context.recorder.record(one.about, EVENT_WARNING, one.reason, one.text)

    def _in_vain(self, config: Config, registry: Registry) -> Iterator[Told]:
        state = self._context.mirror.state
        closeness, groups = may_keep_close(config, registry), may_group(config)
        for uid in [] if closeness and groups else sorted(state.close_jobs):
            job = state.jobs[uid]
            if not closeness and is_hard(job):
                yield from (Told(about, REASON, f"spec.networkTopology: {FAR}") for about in self._asking(job))
            if not groups and asks_for_group(job.annotations):
                yield Told(self._context.group_of(uid, job.group.uid), IGNORED, ABSENT)

    def _asking(self, job: Job) -> Iterator[Regarding]:
        """The PodGroup, and our Job for which it was made: pods name it, and the PodGroup's name ends in its uid."""
        yield self._context.group_of(job.uid, job.group.uid)
        owner = next((task.controller for task in job.tasks.values()), "")
        kind, _, name = owner.partition("/")
        uid = job.group.name.removeprefix(f"{name}-")
        if kind == JOB_KIND and uid != job.group.name:
            yield Regarding(JOB_API, JOB_KIND, job.group.namespace, name, uid)


class Told(NamedTuple):
    """One event: the object it regards, its reason and its text."""

    about: Regarding
    reason: str
    text: str


def is_hard(job: Job) -> bool:
    """Whether the job, or a part of it, must lie within one hypernode."""
    spec = job.group.spec
    asked = (spec.network_topology, *(part.network_topology for part in spec.sub_group_policy))
    return any(one is not None and one.mode == HARD for one in asked)


def may_keep_close(config: Config, registry: Registry) -> bool:
    """Whether a plugin of ``config`` answers :data:`KEEPS_CLOSE`, or may do so once a session opens."""
    options = (option for tier in config.tiers for option in tier if option.enabled(POINTS[KEEPS_CLOSE]))
    return any(_may_answer(option.name, registry) for option in options)


def may_group(config: Config) -> bool:
    """Whether ``config`` lists the plugin that looks at topology groups; switched off, it tells that itself."""
    return any(option.name == PLUGIN for tier in config.tiers for option in tier)


def _may_answer(name: str, registry: Registry) -> bool:
    try:
        found = registry.plugin_class(name)
    except PluginError:  # the configuration's loading has told of it, and goes on without it
        return False
    if found is None:
        return True
    registers = found.on_session_open is not Plugin.on_session_open and not found.trusted
    return registers or KEEPS_CLOSE in points_of(found)
