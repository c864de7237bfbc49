"""The evenness that is kept equals what it would be if nothing were kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.filters.kept_evenness import ONE_BY_ONE, KeptEvenness
from stromboli.filters.scores import evenness
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.table import Ints, Node, NodeTable
from tests.filters.builders import node, table

GPU = 3
ROWS = 3 * ONE_BY_ONE
COLUMNS = ((CPU, MEMORY), (CPU, MEMORY, GPU))
uses = st.tuples(st.integers(0, ROWS - 1), st.integers(0, 5000), st.integers(0, 9 << 30), st.integers(0, 9000))


def cluster() -> NodeTable:
    """Nodes of which every other one has GPUs, nothing placed."""
    names = (f"n{row}" for row in range(ROWS))
    return table(
        [node(name, offer={"nvidia.com/gpu": "8"} if row % 2 else {}) for row, name in enumerate(names)],
        ["nvidia.com/gpu"],
    )


def fresh(nodes: NodeTable, columns: tuple[int, ...], row: int) -> int:
    return evenness([nodes.alloc.item(c, row) for c in columns], [nodes.requested.item(c, row) for c in columns])


def request(nodes: NodeTable, used: tuple[int, int, int, int]) -> None:
    row, *amounts = used
    nodes.requested[[CPU, MEMORY, GPU], row] = amounts
    nodes.journal.append(row)


def assert_rows(found: Ints | None, wanted: list[int]) -> None:
    assert found is not None
    assert found.tolist() == wanted


@pytest.mark.law("the evenness that is kept equals that computed from the amounts")
@given(
    st.lists(st.tuples(st.lists(uses, max_size=2 * ONE_BY_ONE), st.sampled_from(COLUMNS), st.booleans()), max_size=6)
)
def test_kept_equals_fresh(steps: list[tuple[list[tuple[int, int, int, int]], tuple[int, ...], bool]]) -> None:
    nodes = cluster()
    kept = KeptEvenness(nodes)
    for used, columns, one_by_one in steps:
        for each in used:
            request(nodes, each)
        wanted = [fresh(nodes, columns, row) for row in range(ROWS)]
        if one_by_one:
            assert [kept.of_node(columns, Node(nodes, row)) for row in range(ROWS)] == wanted
        else:
            assert_rows(kept.of_rows(columns, nodes.view()), wanted)
            assert_rows(kept.of_rows(columns, nodes.view(np.array([5, 2]))), [wanted[5], wanted[2]])


def test_rows_as_they_would_be_and_rows_of_another_table_are_not_kept() -> None:
    nodes = cluster()
    kept = KeptEvenness(nodes)
    assert_rows(kept.of_rows(COLUMNS[0], nodes.view()), [100] * ROWS)
    one = np.array([2000, 0, 1, 0])
    assert kept.of_rows(COLUMNS[0], nodes.view().after(np.ones(ROWS, dtype=np.int64), one, one[:2])) is None
    other = nodes.copy()
    request(other, (0, 4000, 0, 0))
    assert kept.of_rows(COLUMNS[0], other.view()) is None
    assert kept.of_node(COLUMNS[0], Node(other, 0)) == 50
    assert kept.of_node(COLUMNS[0], Node(nodes, 0)) == 100
