"""What a configuration amounts to, and where each value comes from."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

import stromboli
from stromboli.builtin import builtin_registry
from stromboli.framework.config.argument import TOLERATED, Argument
from stromboli.framework.config.config import load_config
from stromboli.framework.config.effective import check_arguments, describe
from stromboli.framework.config.registry import Registry
from stromboli.plugin import Plugin, arg, arg_pattern, arg_section, is_duration

TEXT = """\
actions: "allocate"
tiers:
- plugins:
  - name: pack
    enabledJobOrder: false
    enableNodeOrder: false
    arguments:
      pack.weight: 5
      pack.factor: much
      pack.resources.cpu: 2
      pack.wieght: 1
configurations:
- name: allocate
  arguments:
    timeout: 10m
"""


class Pack(Plugin):
    name = "pack"
    weight = arg("pack.weight", int, 1)
    factor = arg("pack.factor", float, 1.5)
    enable = arg("pack.enable", bool, True)
    resources = arg_pattern("pack.resources.*", float, 1.0)


class Allocate:
    """An action as the registry sees it."""

    arguments: ClassVar = {"timeout": Argument("timeout", str, "5m")}


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setitem(sys.modules, "actions_of_the_test", SimpleNamespace(Allocate=Allocate))
    registry = Registry({}, {"allocate": "actions_of_the_test:Allocate"})
    registry.add(Pack)
    return registry


def config(registry, text=TEXT, **options):
    known = {"known_plugins": registry.plugin_names, "known_actions": registry.action_names}
    return load_config(text, source="c.yaml", **known, **options)


@pytest.mark.parametrize(
    ("name", "value", "origin"),
    [
        ("enableJobOrder", False, "c.yaml:5 as enabledJobOrder"),
        ("enableNodeOrder", False, "c.yaml:6"),
        ("enableJobReady", True, "default"),
        ("enabledClusterOrder", False, "default"),
        ("enableHierarchy", False, "default"),
        ("pack.weight", 5, "c.yaml:8"),
        ("pack.factor", 1.5, "default, as c.yaml:9 is refused"),
        ("pack.enable", True, "default"),
        ("pack.resources.cpu", 2.0, "c.yaml:10"),
        ("pack.wieght", 1, "c.yaml:11"),
        ("timeout", "10m", "c.yaml:15"),
    ],
)
def test_every_setting_with_its_origin(registry, name, value, origin):
    (row,) = [row for row in describe(config(registry), registry) if row.name == name]
    assert (row.value, row.origin) == (value, origin)


def test_what_has_no_effect_says_why(registry):
    text = TEXT.replace("timeout: 10m", "predicateErrorCacheEnable: false")
    (row,) = [row for row in describe(config(registry, text), registry) if row.name == "predicateErrorCacheEnable"]
    assert (row.value, row.origin.partition(": ")[0]) == (False, "c.yaml:15, without effect")
    (complaint,) = [each for each in check_arguments(config(registry, text), registry) if each.line == 15]
    assert complaint.kind == "tolerated"
    assert complaint.text.endswith(row.origin.partition(": ")[2])


def built_in():
    """All plugins and actions that come with the scheduler."""
    registry = builtin_registry()
    plugins = [registry.plugin_class(name) for name in registry.plugin_names]
    return [*plugins, *(registry.action(name) for name in registry.action_names)]


def test_what_has_no_effect_is_nowhere_declared():
    classes = built_in()
    declared = {(each.name, spec.key) for each in classes for spec in each.arguments.values()}
    assert not declared & {(owner, key) for owner, names in TOLERATED.items() for key in names}
    assert TOLERATED.keys() <= {each.name for each in classes}


def test_every_declared_argument_is_read():
    """An argument that nothing reads would be a flag that does nothing."""
    text = "".join(path.read_text() for path in Path(stromboli.__file__).parent.rglob("*.py"))
    found = re.findall(r"\.(\w+)|getattr\([\w.]+, \"(\w+)\"", text)
    read = {name for names in found for name in names}
    for each in built_in():
        assert each.arguments.keys() <= read, each.name


def test_every_switch_is_shown(registry):
    switches = [row for row in describe(config(registry), registry) if row.kind == "switch"]
    assert len(switches) == 25
    assert {(row.section, row.owner) for row in switches} == {("tier 1", "pack")}


def test_wrong_arguments_have_their_lines(registry):
    complaints = check_arguments(config(registry), registry)
    assert [(c.kind, c.key, c.line) for c in complaints] == [("type", "pack.factor", 9), ("unknown", "pack.wieght", 11)]


def test_an_unknown_plugin_shows_what_is_written(registry):
    text = TEXT.replace("name: pack", "name: nosuch")
    lenient = config(registry, text, lenient=True)
    assert [row.value for row in describe(lenient, registry) if row.name == "pack.factor"] == ["much"]
    assert check_arguments(lenient, registry) == ()


SECTIONS = """\
actions: allocate
tiers:
- plugins:
  - name: nest
    arguments:
      nest.every: often
      nest.limits:
        low: 20
        high: many
        hihg: 3
      nest.colours: [red, mauve]
      nest: 3
"""


class Nest(Plugin):
    name = "nest"
    limits = arg_section("nest.limits", arg("low", int, 1), arg("high", int, 80))
    colours = arg("nest.colours", list, [], doubts=lambda given: (f"{c} is odd" for c in given if c != "red"))
    every = arg("nest.every", str, "5m", is_duration)


def test_sections_keep_what_is_good_in_them_and_doubts_keep_the_value():
    registry = Registry({}, {"allocate": "stromboli.actions.allocate:Allocate"})
    registry.add(Nest)
    loaded = config(registry, SECTIONS)
    complaints = [(c.kind, c.key, c.line) for c in check_arguments(loaded, registry)]
    assert complaints == [
        ("range", "nest.every", 6),
        ("type", "nest.limits.high", 7),
        ("unknown", "nest.limits.hihg", 7),
        ("unknown", "nest.colours", 11),
        ("unknown", "nest", 12),
    ]
    made = Nest(loaded.tiers[0][0].arguments)
    assert (made.limits, made.colours, made.every) == ({"low": 20, "high": 80}, ["red", "mauve"], "5m")
    assert (Nest().limits, Nest({"nest.limits": 7}).limits) == ({"low": 1, "high": 80},) * 2
