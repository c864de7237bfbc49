"""Which objects a collection between cycles looks at, and that what is said of how long it takes follows from that."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from stromboli.kube import collecting
from stromboli.kube.collecting import FLOOD, GENERATIONS, holding_a_cluster, tidy

pytestmark = pytest.mark.usefixtures("freezing")

PER_OBJECT = 0.75e-3
"""Milliseconds for each object that is looked at, as docs/benchmarks.md has it."""


class Node:
    """Something that refers to itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def held() -> Iterator[None]:
    """A process that holds a cluster, with no other collections than those of the test."""
    with holding_a_cluster():
        gc.set_threshold(1_000_000, 1_000_000, 1_000_000)
        yield
    gc.collect()


@pytest.mark.parametrize(("more", "is_let_go"), [(0, True), (FLOOD + 1, False)])
def test_old_objects_are_looked_at_unless_they_are_many(held: None, more: int, is_let_go: bool) -> None:
    node = Node()
    garbage = weakref.ref(node)
    kept = [[object()] for _ in range(more)]
    gc.collect(0)
    gc.collect(1)  # now they are old
    del node
    tidy()
    assert (garbage() is None) is is_let_go
    assert len(kept) == more


def test_what_is_said_of_its_length_follows_from_the_bounds() -> None:
    young = GENERATIONS[0] * (GENERATIONS[1] + 1)
    longest = [round(count * PER_OBJECT) for count in (young, young + FLOOD)]
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    assert f"{young:,} young objects ({longest[0]} ms)" in page
    assert f"{FLOOD:,} old ones besides ({longest[1]} ms)" in page
    source = Path(str(collecting.__file__)).read_text()
    assert f"{young + FLOOD:,}: {longest[1]} ms" in source
