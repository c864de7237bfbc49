"""The scheduler's configuration file: loaded at the start, and again whenever its folder changes."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.errors import ConfigError, PluginError
from stromboli.framework.config.config import BUILT_IN, DEFAULT_CONFIG, Config
from stromboli.framework.config.document import read_text
from stromboli.framework.config.effective import check_arguments
from stromboli.framework.config.sampling import Sampling
from stromboli.live.process.events import Telling

Stamp = tuple[int, int, int]
"""What tells one version of a file from another: inode, time and size."""


class Source:
    """Where configurations come from.

    ``path`` is the file, empty for the built-in configuration; ``plugins`` a folder of plugins.  With ``strict`` (the
    reference's ``--disable-default-scheduler-config``) there must be a file and it must be usable.  ``features`` are
    the feature gates that are on, None for the usual ones; ``sampling`` says that not all nodes are looked at.
    ``called`` is what people know the file as, its path unless it is a copy of something else.
    """

    def __init__(
        self, path: str = "", *, plugins: str = "", compat: bool = False, lenient: bool = False, strict: bool = False,
        features: frozenset[str] | None = None, sampling: Sampling | None = None,
    ) -> None:  # fmt: skip
        self.called = path
        self.path, self.compat, self.lenient, self._strict = path, compat, lenient, strict
        self._features, self._sampling = features, sampling
        self.registry = full_registry(plugins)

    def at(self, path: str, called: str = "") -> Source:
        """The same from another file."""
        other = copy(self)
        other.path, other.called = path, called or path
        return other

    def words(self, text: object) -> str:
        """A text about the file, which names it as people know it."""
        return str(text).replace(self.path, self.called) if self.path else str(text)

    def load(self) -> Config:
        """The configuration as it stands now.  Raises ConfigError, PluginError and OSError."""
        if not self.path and self._strict:
            raise ConfigError("no configuration file is named, and the built-in one is disabled")
        config = self.registry.configured(self.path, lenient=self.lenient, compat=self.compat)
        config = replace(config, sampling=self._sampling)
        return config if self._features is None else replace(config, features=self._features)

    def text(self) -> str:
        """The configuration as it is written.  Raises ConfigError and OSError."""
        return read_text(self.path) if self.path else DEFAULT_CONFIG

    def stamp(self) -> Stamp | None:
        """Which version of the file is there; None when it is not."""
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


class Configuration:
    """The configuration in effect: a file that has changed counts from the next cycle on, one that is refused never.

    ``when_refused`` is called with what is wrong with one that stays out; ``is_refused`` says that the file as it
    stands is not what counts.
    """

    def __init__(self, source: Source, tell: Telling) -> None:
        self.source, self._tell = source, tell
        self.when_refused: Callable[[str], None] = lambda _: None
        self._stamp: Stamp | None = None
        self.is_refused = False
        self.current = self._first()

    def _first(self) -> Config:
        """At the start a file that cannot be used ends the process, as a mistake is best noticed then."""
        self._stamp = self.source.stamp() if self.source.path else None
        return self._load()

    def refresh(self) -> bool:
        """Look whether the file has changed, and load it; whether another configuration counts now."""
        if not self.source.path:
            return False
        stamp = self.source.stamp()
        if stamp is None or stamp == self._stamp:  # one that is removed changes nothing
            return False
        self._stamp = stamp
        self._tell("config_file_event", path=self.source.called, event="WRITE")
        try:
            self.current = self._load()
        except OSError as error:
            self._tell("config_unreadable", path=self.source.called, error=self.source.words(error))
            self._stay(error)
            return False
        except (ConfigError, PluginError) as error:
            why = f"{self.source.words(error)}; using previous configuration"
            self._tell("config_invalid", text=self.source.called, error=why)
            self._stay(error)
            return False
        self.is_refused = False
        self._tell("metric.config_reload", result="ok")
        return True

    def _stay(self, error: Exception) -> None:
        self.is_refused = True
        self._tell("metric.config_reload", result="refused")
        self.when_refused(self.source.words(error))

    def _load(self) -> Config:
        """The file as it stands.  Raises ConfigError, PluginError and OSError."""
        self._tell("config_load_started")
        config = self.source.load()
        for skipped in (one for one in config.complaints if one.kind != "tolerated"):
            self._tell("complaint", text=self.source.words(f"{config.source}:{skipped.line}: {skipped.told}"))
        complaints = (*config.complaints, *check_arguments(config, self.source.registry))
        self._tell("config_loaded", text=self.source.called or BUILT_IN)
        for complaint in complaints:
            if complaint.kind != "tolerated":
                self._tell("metric.argument_invalid", plugin=complaint.plugin)
        return config
