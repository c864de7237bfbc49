"""What docs/loads.md shows is accepted, and its numbers are those of the acceptance tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cluster.files.usage_file import usage_of
from stromboli.framework.config.config import load_config
from stromboli.framework.config.effective import check_arguments
from stromboli.model.usage import NodeUsage

PAGE = (Path(__file__).parents[2] / "docs" / "loads.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", [text for form, text in BLOCKS if form == "yaml"])
def test_configurations_are_accepted_as_they_stand(text: str) -> None:
    registry = builtin_registry()
    config = load_config(
        text, source="loads.md", known_plugins=registry.plugin_names, known_actions=registry.action_names
    )
    assert check_arguments(config, registry) == ()


def test_the_file_of_loads_is_read() -> None:
    (text,) = [text for form, text in BLOCKS if form == "json"]
    assert usage_of(text, 1000.0) == {
        "n1": NodeUsage(1000.0, {"10m": 81.5}, {"10m": 40.0}),
        "n2": NodeUsage(400.0, {"10m": 12.0}, {"10m": 30.0}),
    }


def test_a_node_of_which_one_figure_is_stated_has_none_of_the_other() -> None:
    found = usage_of("n1: {memory: 5}\nn2: {cpu: 7}\n", 1000.0)
    assert [(one.cpu, one.memory) for one in found.values()] == [({"10m": 0}, {"10m": 5}), ({"10m": 7}, {"10m": 0})]
