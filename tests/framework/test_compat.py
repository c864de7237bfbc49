"""The table of differences and its switch."""

from __future__ import annotations

from pathlib import Path

import pytest

import stromboli
from stromboli.framework.config.compat import DIFFERENCES, Compat, generate_page
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_switch_restores_what_its_row_says(name):
    assert Compat(True).asks(name) is DIFFERENCES[name].restored
    assert Compat(False).asks(name) is False


ASKED = "".join(
    path.read_text()
    for path in Path(stromboli.__file__).parent.rglob("*.py")
    if not path.name.startswith("compat")  # the table itself
)


@pytest.mark.parametrize("name", [name for name, row in DIFFERENCES.items() if row.restored])
def test_what_the_switch_restores_is_asked_for(name):
    assert f'"{name}"' in ASKED


@pytest.mark.parametrize("on", [False, True])
def test_a_row_that_is_not_there_is_an_error(on):
    with pytest.raises(KeyError, match="nosuch is no row of the compatibility table"):
        Compat(on).asks("nosuch")


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_row_is_complete_and_on_the_page(name):
    row = DIFFERENCES[name]
    (line,) = [line for line in generate_page().splitlines() if line.startswith(f"| `{name}` |")]
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert cells[1:5] == [row.ours, row.reference, row.where, row.why]
    assert all(cells)


@pytest.mark.parametrize(
    ("compat", "plugins", "spread"),
    [(False, "nodeorder", True), (True, "nodeorder", False), (True, "predicates nodeorder", True)],
)
def test_scorers_see_what_the_session_places_unless_the_reference_does_not_tell_them(compat, plugins, spread):
    """The least requested node is the best: n1 while it is as empty as n2, which is smaller."""
    objects = [node("n1", cpu=8), node("n2", cpu=6), pod_group("g", min_member=2)]
    objects += [pod(f"g-{i}", group="g", cpu=2, memory=0) for i in (0, 1)]
    plan = Bench(objects, conf("gang", plugins, actions="enqueue, allocate"), compat=compat).cycle()
    assert len(set(binds(plan).values())) == 1 + spread
