"""Which job plugins there are: the built-in ones, those of installed packages, those in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from stromboli.errors import PluginError
from stromboli.framework.config.argument import nearest
from stromboli.framework.config.registry import attribute_of, import_file
from stromboli.job_plugins.env import Env
from stromboli.job_plugins.hcclrank import HcclRank
from stromboli.job_plugins.mpi import Mpi
from stromboli.job_plugins.plugin import JobPlugin
from stromboli.job_plugins.pytorch import Pytorch
from stromboli.job_plugins.ray import Ray
from stromboli.job_plugins.ssh import Ssh
from stromboli.job_plugins.svc import Svc
from stromboli.job_plugins.tensorflow import Tensorflow

GROUP: Final = "stromboli.job_plugins"
"""The entry-point group of installed packages that bring job plugins."""

BUILT_IN: Final = tuple[type[JobPlugin], ...]((Env, Svc, Ssh, Tensorflow, Mpi, Pytorch, Ray, HcclRank))
"""The plugins that are always there, in the order in which they change a pod: hcclrank sees pytorch's rank."""


class JobPlugins:
    """The job plugins that are known, by name, in the order in which they are asked.

    A later plugin of a name replaces an earlier one, and takes its place in the order.
    """

    def __init__(self) -> None:
        self._known: dict[str, type[JobPlugin] | str] = {one.name: one for one in BUILT_IN}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self._known)

    def add(self, plugin: type[JobPlugin]) -> None:
        """Know a plugin.  Raises PluginError for a class without a name."""
        if not plugin.name:
            raise PluginError(plugin.__qualname__, "has no name; set the class attribute name")
        self._known[plugin.name] = plugin

    def add_entry_points(self, group: str = GROUP) -> tuple[str, ...]:
        """Know, unloaded, the plugins that installed packages name; gives their names."""
        found = {entry.name: entry.value for entry in sorted(entry_points(group=group))}
        self._known.update(found)
        return tuple(found)

    def add_file(self, path: str | Path) -> tuple[str, ...]:
        """Import a Python file and know its plugins; gives their names.  Raises PluginError naming the file."""
        path = Path(path)
        module = import_file(path)
        own = (value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)
        found = [one for one in own if isinstance(one, type) and issubclass(one, JobPlugin) and one.name]
        if not found:
            raise PluginError(path.stem, f"{path} has no JobPlugin subclass with a name")
        for one in found:
            self.add(one)
        return tuple(one.name for one in found)

    def add_directory(self, path: str | Path) -> tuple[str, ...]:
        """Import every ``*.py`` of a directory, in the order of their names; gives the names of all plugins."""
        path = Path(path)
        if not path.is_dir():
            raise PluginError(path.name, f"{path} is not a directory of job plugins")
        return tuple(name for file in sorted(path.glob("*.py")) for name in self.add_file(file))

    def find(self, name: str) -> type[JobPlugin]:
        """The plugin of that name.  Raises PluginError for one that is not known or cannot be imported."""
        known = self._known.get(name)
        if known is None:
            close = nearest(name[:63], self._known)
            hint = f"did you mean {close}?" if close else f"there are {', '.join(self._known)}"
            raise PluginError(name[:63], f"failed to get plugin {name[:63]}; {hint}")
        if isinstance(known, str):
            found = attribute_of(name, known)
            if not (isinstance(found, type) and issubclass(found, JobPlugin) and found.name == name):
                raise PluginError(name, f"{known} is no JobPlugin subclass of that name")
            known = self._known[name] = found
        return known

    def chosen(self, plugins: Mapping[str, tuple[str, ...]]) -> Iterable[tuple[type[JobPlugin], tuple[str, ...]]]:
        """The plugins that a job names, with their arguments, in order.  Raises PluginError as :meth:`find`."""
        known = {name: number for number, name in enumerate(self._known)}
        for name in sorted(plugins, key=lambda name: (known.get(name, -1), name)):
            yield self.find(name), plugins[name]


def offered(directory: str = "") -> JobPlugins:
    """The built-in plugins, those of installed packages, and those in files of a ``directory``.  Raises PluginError."""
    found = JobPlugins()
    found.add_entry_points()
    if directory:
        found.add_directory(directory)
    return found
