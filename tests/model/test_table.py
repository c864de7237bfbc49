"""Columns of nodes: exact sums, and what is derived of specs and kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.events import Modified
from stromboli.cluster.objects import from_value
from stromboli.filters.taints import taint_column
from stromboli.model.resources.amounts import totals
from stromboli.model.table import AMOUNTS, NodeTable, place
from stromboli.testing.builders import cluster, node, pod, pod_group, state

AMOUNT = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(AMOUNT, min_size=3, max_size=3), max_size=5))
def test_totals_are_exact_beyond_64_bits(rows: list[list[int]]) -> None:
    amounts = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    assert totals(amounts) == [sum(row) for row in rows]


def test_what_is_derived_of_nodes_is_kept_until_a_node_changes() -> None:
    world = state(node("n1"), node("n2"))
    first = world.snapshot().table.statics
    derived = first.derived(taint_column)
    world.apply(Modified("Pod", from_value("Pod", pod("p", on="n1"))))
    assert world.snapshot().table.statics.derived(taint_column) is derived
    tainted = {**node("n2"), "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    world.apply(Modified("Node", from_value("Node", tainted)))
    seen = world.snapshot().table.statics.derived(taint_column)
    assert [len(seen.values[code]) for code in seen.codes.tolist()] == [0, 1]
    assert [len(derived.values[code]) for code in derived.codes.tolist()] == [0, 0]


WAYS = st.sampled_from(["used", "releasing", "come", "go"])
MOVES = st.lists(st.tuples(st.integers(0, 2), WAYS, st.booleans()), max_size=20)


def amounts(table: NodeTable, row: int) -> bytes:
    """What a row holds, as it stands in the columns."""
    return b"".join(getattr(table, name)[:, row].tobytes() for name in AMOUNTS)


@given(MOVES, st.booleans())
def test_the_state_of_a_row_follows_its_amounts(moves: list[tuple[int, str, bool]], copied: bool) -> None:
    snapshot = cluster(node("n0"), node("n1"), node("n2"), pod_group("g"), pod("p", group="g", cpu=1))
    table = (
        snapshot.table.copy()
        if copied
        else NodeTable(snapshot.axes, snapshot.table.statics, {name: getattr(snapshot.table, name) for name in AMOUNTS})
    )
    (task,) = snapshot.jobs["default/g"].tasks.values()
    more = np.array([1000, 2**30, *[1] * (len(table.alloc) - 2)])
    changes = {name: table.change({"used": sign * more}) for name, sign in (("come", 1), ("go", -1))}
    seen: dict[int, bytes] = {}
    for row, way, asked in [*moves, *((row, "", True) for row in range(3))]:
        if way in changes:
            table.add(row, changes[way])
        elif way:
            place(table, row, task, way)
        if asked:
            (number,) = table.states.of([row])
            assert seen.setdefault(number, amounts(table, row)) == amounts(table, row)
    assert len(set(seen.values())) == len(seen)
