"""What outside_plugin.py shows to the type checker runs, too; and it is checked as strictly as the package."""

from __future__ import annotations

import tomllib
from pathlib import Path

from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf
from tests.typing.outside_plugin import FirstNode, checked, planned

ROOT = Path(__file__).parents[2]


def test_the_plugin_plans_and_keeps_its_promises() -> None:
    assert {bind.key: bind.node for bind in planned().binds} == {"default/p1": "n2", "default/p2": "n1"}
    checked()


def test_the_action_places_whole_gangs() -> None:
    objects = [node("n1", cpu=2), pod_group("g", min_member=2), *(pod(f"p{i}", group="g") for i in range(2))]
    objects += [pod_group("h", min_member=2), *(pod(f"q{i}", group="h") for i in range(2))]
    plan = Bench(objects, conf("gang", "predicates", actions=FirstNode.name), FirstNode).cycle()
    assert sorted(bind.key for bind in plan.binds) == ["default/p0", "default/p1"]


def test_no_rule_of_the_type_checker_is_left_out() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    loosened = next(each for each in settings["overrides"] if "tests.*" in each["module"])
    strict = next(each for each in settings["overrides"] if "tests.typing.*" in each["module"])
    assert {name for name, on in loosened.items() if on is False} <= {name for name, on in strict.items() if on is True}
    assert settings["strict"]
    assert (ROOT / "src/stromboli/py.typed").is_file()
