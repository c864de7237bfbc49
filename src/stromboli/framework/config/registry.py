"""Where plugins and actions come from: built-in tables, entry points, files.

Nothing is imported before a configuration names it (:meth:`Registry.resolve`), except plugin files, whose names are
inside them.  A later registration under a name replaces the earlier one, as in the reference.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from stromboli.errors import ConfigError, PluginError
from stromboli.framework.config.argument import nearest
from stromboli.framework.config.config import (
    ACTION_ALIASES,
    BUILT_IN,
    DEFAULT_CONFIG,
    Config,
    PluginOption,
    load_config,
)
from stromboli.framework.config.document import read_text
from stromboli.framework.extension.plugin import Plugin

if TYPE_CHECKING:
    from stromboli.framework.extension.action import Action

GROUP = "stromboli.plugins"
"""The entry-point group of installed packages that bring plugins."""
OWN = "stromboli/"
"""How the names begin under which the scheduler itself keeps something for later cycles, next to plugins by theirs."""

Factory: TypeAlias = Callable[[Mapping[str, object]], object]
"""Makes a plugin from the arguments of the configuration: a class, or a module's ``New``; what it makes is checked."""


class Registry:
    """The plugins and actions that a scheduler knows.

    ``plugins`` and ``actions`` are tables of name to ``"module:Class"``.  Another process that is handed a registry
    imports the plugin files again.
    """

    def __init__(self, plugins: Mapping[str, str], actions: Mapping[str, str]) -> None:
        self._plugins: dict[str, str | Factory] = dict(plugins)
        self._actions: dict[str, str | type[Action]] = dict(actions)
        self._files: dict[str, Path] = {}

    def __getstate__(self) -> dict[str, Any]:
        """All but what files have made."""
        return {**vars(self), "_plugins": {**self._plugins, **dict.fromkeys(self._files, "")}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        of_files = {file: _plugins_of(import_file(file), file) for file in dict.fromkeys(self._files.values())}
        self._plugins.update({name: of_files[file][name] for name, file in self._files.items()})

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every known plugin, in the order of registration."""
        return tuple(self._plugins)

    @property
    def action_names(self) -> tuple[str, ...]:
        """Every known action, in the order of the table."""
        return tuple(self._actions)

    # ---- more plugins

    def add(self, plugin: type[Plugin]) -> None:
        """Register a class under its own name; PluginError if it has none."""
        if not plugin.name:
            raise PluginError(plugin.__qualname__, "has no name; set the class attribute name")
        self._register({plugin.name: plugin})

    def _register(self, found: Mapping[str, str | Factory], file: Path | None = None) -> tuple[str, ...]:
        """Register the plugins ``found``, in that ``file`` if one is given; gives their names."""
        self._plugins.update(found)
        for name in found:
            self._files.pop(name, None)
        if file is not None:
            self._files.update(dict.fromkeys(found, file.absolute()))
        return tuple(found)

    def add_entry_points(self, group: str = GROUP) -> tuple[str, ...]:
        """Register, unloaded, the plugins that installed packages name; gives their names."""
        return self._register({entry.name: entry.value for entry in entry_points(group=group)})

    def add_file(self, path: str | Path) -> tuple[str, ...]:
        """Import a Python file and register its plugins; gives their names.

        The file has Plugin subclasses, registered under their own names, or a function ``New(arguments)`` returning a
        plugin, registered under the file's name without its extension.  Raises PluginError naming the file.
        """
        path = Path(path)
        module = import_file(path)
        found = _plugins_of(module, path)
        if not found:
            raise PluginError(path.stem, f"{path} has neither a named Plugin subclass nor a function New(arguments)")
        return self._register(found, path)

    def add_directory(self, path: str | Path) -> tuple[str, ...]:
        """Import every ``*.py`` of a directory, in the order of their names; gives the names of all plugins."""
        path = Path(path)
        if not path.is_dir():
            raise PluginError(path.name, f"{path} is not a directory of plugins")
        return tuple(name for file in sorted(path.glob("*.py")) for name in self.add_file(file))

    def add_paths(self, options: tuple[PluginOption, ...], base: str | Path = ".") -> None:
        """Import the files that plugin entries of a configuration name; relative paths start at ``base``."""
        for option in options:
            if option.path and option.name not in self.add_file(Path(base) / option.path):
                raise PluginError(option.name, f"{option.path} has no plugin of that name")

    # ---- lookup

    def factory(self, name: str) -> Factory:
        """What makes the plugin.  Raises PluginError for an unknown name or one that cannot be imported."""
        known = self._plugins.get(name)
        if name.startswith(OWN) and known is not None:
            raise PluginError(name, f"names that begin with {OWN!r} are the scheduler's own; give the plugin another")
        if known is None:
            close = nearest(name, self._plugins)
            hint = f" Did you mean {close!r}?" if close else ""
            raise PluginError(name, f"Failed to get plugin {name}.{hint}")
        if isinstance(known, str):
            known = self._plugins[name] = _plugin_factory(name, known)
        return known

    def plugin_class(self, name: str) -> type[Plugin] | None:
        """The class, or None for a plugin made by a function, whose arguments are not declared."""
        made_by = self.factory(name)
        return made_by if isinstance(made_by, type) and issubclass(made_by, Plugin) else None

    def build(self, name: str, arguments: Mapping[str, object]) -> Plugin:
        """A fresh plugin.  Raises PluginError if it cannot be made, or does not bear the name it is known by."""
        made_by = self.factory(name)
        try:
            plugin = made_by(arguments)
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(name, f"cannot be made: {type(error).__name__}: {error}") from error
        if not isinstance(plugin, Plugin) or plugin.name != name:
            other = getattr(plugin, "name", type(plugin).__name__)
            raise PluginError(name, f"New gave {other}; a plugin must bear the name it is configured under")
        return plugin

    def built(self, config: Config) -> Iterator[Plugin]:
        """The plugins of a configuration that can be made, in order; a session tells of the others."""
        for option in config.plugins():
            with suppress(PluginError):
                yield self.build(option.name, option.arguments)

    def action(self, name: str) -> type[Action]:
        """The class of an action.  Raises ConfigError for an unknown name."""
        name = ACTION_ALIASES.get(name, name)
        if name not in self._actions:
            raise ConfigError(f"failed to find Action {name}", nearest=nearest(name, self._actions))
        found = self._actions[name]
        if isinstance(found, str):
            found = self._actions[name] = _action_class(name, found)
        return found

    def configured(self, file: str = "", *, lenient: bool = False, compat: bool = False) -> Config:
        """The configuration in ``file`` (empty: the built-in one), with all that it names imported.

        For the rest see :func:`~stromboli.framework.config.config.load_config`.  Raises ConfigError, PluginError and
        OSError.
        """
        text = read_text(file) if file else DEFAULT_CONFIG
        return self.configured_by(text, file or BUILT_IN, lenient=lenient, compat=compat)

    def configured_by(self, text: str, file: str, *, lenient: bool = False, compat: bool = False) -> Config:
        """The configuration of a ``text``, which stands in ``file``; see :meth:`configured`."""
        config = load_config(
            text,
            source=file,
            known_plugins=self.plugin_names,
            known_actions=self.action_names,
            lenient=lenient,
            compat=compat,
        )
        if lenient and not config.ways.asks("config-strictness"):
            config = config.only_plugins(lambda option: bool(option.path) or option.name in self.plugin_names)
        self.add_paths(config.plugins(), Path(file).parent if file else ".")
        self.resolve(config)
        return config

    def resolve(self, config: Config) -> None:
        """Import all plugins and actions that ``config`` names, so that no cycle has to.

        Unknown names, which only a lenient reading leaves in, are skipped: the session reports them.
        Raises PluginError for what cannot be imported.
        """
        for option in config.plugins():
            if option.name in self._plugins:
                self.factory(option.name)
        for name in config.actions:
            if ACTION_ALIASES.get(name, name) in self._actions:
                self.action(name)


def _plugin_factory(name: str, reference: str) -> Factory:
    found = attribute_of(name, reference)
    if isinstance(found, ModuleType):
        found = getattr(found, "New", None)
    if not callable(found):
        raise PluginError(name, f"{reference} is neither a Plugin subclass nor a module with New(arguments)")
    factory: Factory = found
    return factory


def _action_class(name: str, reference: str) -> type[Action]:
    found: type[Action] = attribute_of(name, reference)
    return found


def attribute_of(name: str, reference: str) -> Any:
    """What ``module:attribute`` refers to.  Raises PluginError, of the plugin ``name``, if it cannot be imported."""
    module, _, attribute = reference.partition(":")
    try:
        found = importlib.import_module(module)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(name, f"cannot import {reference}: {type(error).__name__}: {error}") from error
    return found


def import_file(path: Path) -> ModuleType:
    """A Python file as a module of its own.  Raises PluginError naming the file."""
    name = f"_stromboli_plugin_{path.stem}_{zlib.crc32(str(path.absolute()).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PluginError(path.stem, f"{path} is not a Python file that can be read")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise PluginError(path.stem, f"cannot import {path}: {type(error).__name__}: {error}") from error
    return module


def _plugins_of(module: ModuleType, path: Path) -> dict[str, Factory]:
    if callable(new := getattr(module, "New", None)):
        return {path.stem: new}
    own = (value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)
    return {cls.name: cls for cls in own if isinstance(cls, type) and issubclass(cls, Plugin) and cls.name}
