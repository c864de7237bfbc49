"""Job plugins: what they do to the pods of a job.

A plugin is a function from the spec of a pod to the spec that the pod gets; :data:`PLUGINS` is the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from stromboli.cluster.job_pods import missing_plugins
from stromboli.controllers.changes import Json
from stromboli.controllers.jobs.volumes import rows
from stromboli.crds.batch import Job, Task


class Place(NamedTuple):
    """Which pod of a job: its task, its number, and the arguments that the job gives the plugin."""

    job: Job
    task: Task
    number: int
    arguments: tuple[str, ...] = ()


Plugin = Callable[[Json, Place], Json]


def number_in_environment(spec: Json, place: Place) -> Json:
    """``env``: every container learns the number of its pod within the task."""
    variables = [{"name": name, "value": str(place.number)} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    changed = {
        part: [{**container, "env": [*rows(container.get("env")), *variables]} for container in rows(spec[part])]
        for part in ("containers", "initContainers")
        if spec.get(part)
    }
    return {**spec, **changed}


PLUGINS: Final[Mapping[str, Plugin]] = {"env": number_in_environment}
"""The plugins that there are, by name."""


def with_plugins(spec: Json, place: Place) -> Json:
    """The spec of a pod after all plugins that its job names."""
    for name, arguments in place.job.spec.plugins.items():
        plugin = PLUGINS.get(name)
        if plugin is not None:
            spec = plugin(spec, place._replace(arguments=arguments))
    return spec


def plugin_problem(job: Job) -> str:
    """Why a job's pods cannot be made as its plugins would have them; empty when all plugins are there.

    A pod without what a plugin gives it would run and do something else than it was meant to.
    """
    missing = missing_plugins(job.spec.plugins)
    if not missing:
        return ""
    named = f"job plugin {missing[0]} is" if len(missing) == 1 else f"job plugins {', '.join(missing)} are"
    there = ", ".join(PLUGINS)
    return f"{named} not supported yet (there is: {there}); the job gets no pods as long as spec.plugins says so"


def controlled(job: Job) -> dict[str, str]:
    """What a job's status says of the plugins that serve it."""
    return {f"plugin-{name}": name for name in job.spec.plugins if name in PLUGINS}
