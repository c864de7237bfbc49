"""Columns of nodes: exact sums, and what is derived of specs and kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.events import Modified
from stromboli.cluster.objects import from_value
from stromboli.filters.taints import taint_column
from stromboli.model.table import totals
from stromboli.testing.builders import node, pod, state

AMOUNT = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(AMOUNT, min_size=3, max_size=3), max_size=5))
def test_totals_are_exact_beyond_64_bits(rows: list[list[int]]) -> None:
    amounts = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    assert totals(amounts) == [sum(row) for row in rows]


def test_what_is_derived_of_nodes_is_kept_until_a_node_changes() -> None:
    cluster = state(node("n1"), node("n2"))
    first = cluster.snapshot().table.statics
    derived = first.derived(taint_column)
    cluster.apply(Modified("Pod", from_value("Pod", pod("p", on="n1"))))
    assert cluster.snapshot().table.statics.derived(taint_column) is derived
    tainted = {**node("n2"), "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    cluster.apply(Modified("Node", from_value("Node", tainted)))
    seen = cluster.snapshot().table.statics.derived(taint_column)
    assert [len(seen.values[code]) for code in seen.codes.tolist()] == [0, 1]
    assert [len(derived.values[code]) for code in derived.codes.tolist()] == [0, 0]
