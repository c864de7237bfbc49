"""What the plugins of a job say, kept until its spec changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stromboli.api.batch import Job
from stromboli.controllers.changes import Json
from stromboli.errors import PluginError
from stromboli.job_plugins.edits import AddEnv, Edit, apply, copied
from stromboli.job_plugins.plugin import JobPlugin, Place
from stromboli.job_plugins.registry import JobPlugins
from stromboli.job_plugins.wanted import SORTS, Wanted

FAILED: Final = "Execute plugin when job add failed, err: "
MARK: Final = "plugin-"
"""Prefix of the entries of ``status.controlledResources`` that are about plugins."""


MOST_ADDED: Final = 3 << 20
"""Bytes of variables that a plugin may add to a pod; an API server takes no larger object."""


class Plugged(NamedTuple):
    """The plugins of one job: what they want, by the plugin's name, and what is to be told.

    ``problem`` is what keeps the job from its pods, empty if nothing does.
    """

    plugins: tuple[JobPlugin, ...] = ()
    wanted: tuple[tuple[str, Wanted], ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str = ""

    @property
    def marks(self) -> dict[str, str]:
        """What the job's status says of them."""
        return {f"{MARK}{one.name}": one.name for one in self.plugins if one.marks}

    def edited(self, pod: Json, place: Place) -> Json:
        """A pod as the plugins want it.  Raises PluginError for a plugin that fails."""
        if not self.plugins:
            return pod
        pod = copied(pod)
        for plugin in self.plugins:
            try:
                apply(pod, _edits(plugin, pod, place))
            except Exception as error:
                raise _failure(plugin.name, error) from error
        return pod


class Plugins:
    """The plugins of all jobs that have been looked at."""

    def __init__(self, known: JobPlugins) -> None:
        self._known = known
        self._of: dict[str, tuple[object, Plugged]] = {}

    def of(self, job: Job) -> Plugged:
        """The plugins of a job."""
        made = self._of.get(job.metadata.uid)
        if made is None or (made[0] is not job.spec and made[0] != job.spec):
            made = self._of[job.metadata.uid] = (job.spec, self._made(job))
        return made[1]

    def forget(self, uid: str) -> None:
        """A job is gone."""
        self._of.pop(uid, None)

    def _made(self, job: Job) -> Plugged:
        try:
            plugins = tuple(_plugin(one, job, arguments) for one, arguments in self._known.chosen(job.spec.plugins))
            return _checked(plugins)
        except PluginError as error:
            return Plugged(problem=f"{FAILED}{error}")


def _edits(plugin: JobPlugin, pod: Json, place: Place) -> Iterator[Edit]:
    """What a plugin changes of a pod.  Raises PluginError where variables times containers are too much."""
    for edit in plugin.pod(pod, place):
        if isinstance(edit, AddEnv) and edit.size(pod) > MOST_ADDED:
            text = f"its variables make a pod of task {place.task.name[:63]} larger than {MOST_ADDED} bytes: "
            raise PluginError(plugin.name, text + "have fewer tasks, shorter names or fewer containers")
        yield edit


def _plugin(kind: type[JobPlugin], job: Job, arguments: tuple[str, ...]) -> JobPlugin:
    try:
        return kind(job, arguments)
    except Exception as error:
        raise _failure(kind.name, error) from error


def _checked(plugins: tuple[JobPlugin, ...]) -> Plugged:
    """What ``plugins`` say.  Raises PluginError for one that fails, or has an objection."""
    wanted: dict[tuple[str, str], tuple[str, Wanted]] = {}
    warnings: list[str] = []
    for plugin in plugins:
        try:
            problem, objects = plugin.problem(), tuple(plugin.objects()) if not plugin.problem() else ()
            said = [text for text in (plugin.flag_problem, *plugin.warnings()) if text]
            warnings += [f"plugin {plugin.name}: {text}" for text in said]
        except Exception as error:
            raise _failure(plugin.name, error) from error
        problem = problem or _clash(objects, wanted)
        if problem:
            raise PluginError(plugin.name, problem)
        wanted |= {(one.resource, one.name): (plugin.name, one) for one in objects}
    return Plugged(plugins, tuple(wanted.values()), tuple(warnings))


def _clash(objects: tuple[Wanted, ...], others: Mapping[tuple[str, str], tuple[str, Wanted]]) -> str:
    """What is wrong with the objects that a plugin wants in addition to those of others."""
    for one in objects:
        if one.resource not in SORTS:
            return f"wants one of {one.resource}; plugins may have {', '.join(SORTS)}"
        if other := others.get((one.resource, one.name)):
            return f"wants {one.sort.kind} {one.name} as plugin {other[0]} does"
    return ""


def _failure(name: str, error: Exception) -> PluginError:
    return error if isinstance(error, PluginError) else PluginError(name, f"{type(error).__name__}: {error}")
