"""The page for authors of plugins: what it shows runs, and does what it says."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from stromboli.builtin import full_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.registry import GROUP
from stromboli.sim.planning import Settings, config_of
from stromboli.testing.builders import cluster, node, pod
from stromboli.testing.check_plugin import check_plugin

PAGE = (Path(__file__).parents[2] / "docs/plugins.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


ZONE, QUIET, *TESTS = blocks("python")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the plugin's file, from which it can be imported."""
    (tmp_path / "zone.py").write_text(ZONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "zone", raising=False)
    return tmp_path


def test_the_first_plugin_is_short() -> None:
    assert len(ZONE.splitlines()) <= 20


@pytest.mark.parametrize("source", [ZONE, QUIET], ids=["zone", "quiet"])
def test_plugins_pass_the_kit(source: str) -> None:
    module: dict[str, type] = {}
    exec(source, module)
    (plugin,) = (value for name, value in module.items() if name in ("Zone", "Quiet"))
    check_plugin(plugin)


@pytest.mark.parametrize("source", TESTS)
def test_tests_pass(source: str, folder: Path) -> None:
    module: dict[str, object] = {"__name__": "test_zone"}
    exec(source, module)
    tests = [value for name, value in module.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        assert callable(test)
        test()


NODES = (node("n1", labels={"zone": "east"}), node("n2", labels={"zone": "west", "price": "low"}))


@pytest.mark.parametrize("how", ["path", "folder"])
def test_ways_of_loading(how: str, folder: Path) -> None:
    (written,) = blocks("yaml")
    assert "    path: zone.py\n" in written
    file = folder / "scheduler.conf"
    file.write_text(written if how == "path" else written.replace("    path: zone.py\n", ""))
    settings = Settings(str(file), plugins="" if how == "path" else str(folder))
    registry = full_registry(settings.plugins)
    config = config_of(settings, registry)
    zone = registry.build("zone", {option.name: option for option in config.plugins()}["zone"].arguments)
    assert vars(zone)["weight"] == 50.0
    plan = run_cycle(
        cluster(*NODES, pod("p", group="g"), pod("q", group="g", labels={"zone": "east"})), config, registry
    )
    assert {bind.key: bind.node for bind in plan.binds} == {"default/p": "n2", "default/q": "n1"}


def test_the_entry_point_is_in_the_group() -> None:
    (written,) = blocks("toml")
    assert tomllib.loads(written)["project"]["entry-points"] == {GROUP: {"zone": "my_package.zone:Zone"}}


def test_the_refusal_reads_as_shown(folder: Path) -> None:
    file = folder / "scheduler.conf"
    file.write_text(blocks("yaml")[0])
    registry = full_registry()
    config = config_of(Settings(str(file)), registry)
    full = node("n3", cpu=1, labels={"zone": "south"})
    waiting = pod("p", group="g", cpu=2, labels={"zone": "south"})
    plan = run_cycle(cluster(*NODES, full, waiting), config, registry)
    (condition,) = plan.pod_conditions
    assert condition.message in PAGE
