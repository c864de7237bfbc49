"""Configurations as values: a name to show, and the text."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stromboli.errors import ConfigError
from stromboli.framework.config.config import BUILT_IN, DEFAULT_CONFIG, Config
from stromboli.framework.config.document import read_text
from stromboli.framework.config.registry import Registry

DEFAULT = "default"


class Conf(NamedTuple):
    """A configuration: its name in tables, its text, its file (to find plugins next to it), whether compat is on."""

    name: str
    text: str
    file: str = ""
    compat: bool = False

    @classmethod
    def of(cls, conf: str | Path | Conf) -> Conf:
        """The configuration of a file, by the file's name; empty: the built-in one.  Raises ConfigError and OSError."""
        if isinstance(conf, Conf):
            return conf
        if not str(conf):
            return builtin(DEFAULT)
        return cls(Path(conf).name, read_text(conf), str(conf))

    def config(self, registry: Registry) -> Config:
        """What it says.  Raises ConfigError and PluginError."""
        return registry.configured_by(self.text, self.file or self.name, compat=self.compat)


def builtin(name: str) -> Conf:
    """The configuration that comes with Stromboli: ``default``, what holds where no file is given."""
    if name != DEFAULT:
        raise ConfigError(f"there is no configuration {name!r} built in; there is {DEFAULT!r}", file=BUILT_IN)
    return Conf(DEFAULT, DEFAULT_CONFIG)
