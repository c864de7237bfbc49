"""Which job plugins there are, and where others come from."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from stromboli.api.batch import JOB_PLUGINS
from stromboli.errors import PluginError
from stromboli.job_plugins import registry
from stromboli.job_plugins.env import Env
from stromboli.job_plugins.plugin import JobPlugin
from stromboli.job_plugins.registry import BUILT_IN, JobPlugins, offered

FILE = '''
"""A plugin in a file."""

from stromboli.job_plugins.plugin import AddEnv, JobPlugin, flag


class Greeting(JobPlugin):
    """Greets."""

    name = "greeting"
    word = flag("word", "hello")

    def pod(self, pod, place):
        """A word for every pod."""
        yield AddEnv(({"name": "GREETING", "value": self.word},))
'''


def test_admission_and_controllers_know_the_same() -> None:
    assert tuple(one.name for one in BUILT_IN) == JOB_PLUGINS == JobPlugins().names


def test_a_file_brings_plugins(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text(FILE)
    known = JobPlugins()
    assert known.add_directory(tmp_path) == ("greeting",)
    assert known.names == (*JOB_PLUGINS, "greeting")
    assert known.find("greeting").flags() == {"word": "hello"}


def test_a_package_brings_plugins_and_is_imported_when_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(*, group: str) -> list[EntryPoint]:
        assert group == "stromboli.job_plugins"
        found = {"mine": "no.such.module:X", "env": "stromboli.job_plugins.env:Env", "odd": "pathlib:Path"}
        return [EntryPoint(name, value, group) for name, value in found.items()]

    monkeypatch.setattr(registry, "entry_points", entries)
    known = offered()
    assert known.names == (*JOB_PLUGINS, "mine", "odd"), "env keeps its place"
    assert known.find("env") is Env
    with pytest.raises(PluginError, match=r"cannot import no\.such\.module:X"):
        known.find("mine")
    with pytest.raises(PluginError, match="is no JobPlugin subclass"):
        known.find("odd")


def test_what_is_no_plugin_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("raise ValueError('no')")
    known = JobPlugins()
    with pytest.raises(PluginError, match="has no JobPlugin subclass"):
        known.add_file(tmp_path / "empty.py")
    with pytest.raises(PluginError, match="ValueError: no"):
        known.add_file(tmp_path / "broken.py")
    with pytest.raises(PluginError, match="is not a directory"):
        known.add_directory(tmp_path / "none")
    with pytest.raises(PluginError, match="has no name"):
        known.add(JobPlugin)
