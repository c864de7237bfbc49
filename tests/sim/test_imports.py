"""Whatever a configuration names is imported when it is read: a cycle imports no module of ours."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.cases import case_named
from stromboli.builtin import ACTIONS, PLUGINS, builtin_registry
from stromboli.errors import PluginError
from stromboli.framework.config.config import load_config
from stromboli.framework.config.registry import Registry
from stromboli.live.scheduler.configuration import Source
from stromboli.sim.planning import Settings, config_of

SCRIPT = """
import json, sys
from stromboli.sim.runner import run_scenario

class Watch:
    def __init__(self):
        self.before, self.new = set(), set()
    def wants(self, key):
        return False
    def tell(self, key, fields):
        pass
    def started(self, kind, name):
        if kind == "cycle":
            self.before = set(sys.modules)
    def ended(self, kind, name):
        if kind == "cycle":
            self.new |= set(sys.modules) - self.before

watch = Watch()
answer = run_scenario(sys.stdin.buffer.read(), observer=watch)
imported = sorted(name for name in watch.new if name.split(".")[0] == "stromboli")
json.dump({"imported": imported, "evictions": answer["outcome"]["evictions"]}, sys.stdout)
"""

EVERYTHING = f"""
actions: "{", ".join(ACTIONS)}"
tiers:
- plugins: [{", ".join(f"{{name: {name}}}" for name in PLUGINS)}]
"""


def answered(workload: str, conf: str = "") -> dict[str, list[str]]:
    """What a fresh process imported during the cycles of a small workload, and the pods it evicted."""
    with tempfile.TemporaryFile() as file:
        case_named(workload).quick().workload.write(file)
        file.seek(0)
        scenario = json.loads(file.read())
    text = json.dumps({**scenario, "conf": conf or scenario["conf"]})
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=text, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("workload", ["preempt-1k", "reclaim-1k"])
def test_no_module_is_imported_within_a_cycle(workload: str) -> None:
    found = answered(workload)
    assert found["evictions"]
    assert found["imported"] == []


def test_nor_with_every_action_and_plugin() -> None:
    assert answered("preempt-1k", EVERYTHING)["imported"] == []


def broken() -> Registry:
    """A registry whose plugin ``torn`` and action ``rotten`` cannot be imported."""
    return Registry({**PLUGINS, "torn": "nothing_of_that_name:Torn"}, {**ACTIONS, "rotten": "nothing_there:Rotten"})


@pytest.mark.parametrize(
    ("actions", "plugin", "named"),
    [("allocate", "torn", "torn"), ("rotten", "gang", "rotten")],
)
def test_what_cannot_be_imported_is_told_at_the_start(actions: str, plugin: str, named: str) -> None:
    registry = broken()
    config = load_config(
        f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: {plugin}\n',
        source="conf",
        known_plugins=registry.plugin_names,
        known_actions=registry.action_names,
    )
    with pytest.raises(PluginError, match=f"{named}.*cannot import"):
        registry.resolve(config)


def test_unknown_names_of_a_lenient_reading_are_left_to_the_session() -> None:
    registry = builtin_registry()
    config = load_config(
        "actions: allocate\ntiers:\n- plugins:\n  - name: nobody\n",
        source="conf",
        known_plugins=registry.plugin_names,
        known_actions=registry.action_names,
        lenient=True,
    )
    registry.resolve(config)
    assert [option.name for option in config.plugins()] == ["nobody"]


def test_planning_and_the_live_configuration_import_what_they_name(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: torn\n', encoding="utf-8")
    with pytest.raises(PluginError, match="cannot import"):
        config_of(Settings(config=str(conf)), broken())
    source = Source(str(conf))
    source.registry = broken()
    with pytest.raises(PluginError, match="cannot import"):
        source.load()
