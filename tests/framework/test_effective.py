"""What a configuration amounts to, and where each value comes from."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest

from stromboli.framework.argument import Argument
from stromboli.framework.config import load_config
from stromboli.framework.effective import check_arguments, describe
from stromboli.framework.registry import Registry
from stromboli.plugin import Plugin, arg, arg_pattern

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
