"""Answers remembered by amounts: which built-in hooks promise that, that they keep it, and what tells states apart."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.builtin import PLUGINS, builtin_registry
from stromboli.framework.engine.remembered import KEPT_STATES, Remembered, Said
from stromboli.model.resources.axes import Axes
from stromboli.model.spec import NodeSpec
from stromboli.model.table import Ints, NodeTable
from stromboli.testing.check_plugin import check_plugin

PROMISING = {"binpack": "score", "nodeorder": "usage", "predicates": "pod_number", "resource-strategy-fit": "score"}
"""Ports, neighbours, loads of nodes and devices are more than amounts: their hooks must never promise this."""


def test_which_hooks_promise() -> None:
    registry = builtin_registry()
    hooked = {name: type(registry.build(name, {}))._hooked for name in PLUGINS}
    found = {name: [at for at, hooks in each.items() if any(h.amounts for h in hooks)] for name, each in hooked.items()}
    assert {name: hooks for name, hooks in found.items() if hooks} == {name: [at] for name, at in PROMISING.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISING)
def test_they_keep_it(name: str) -> None:
    check_plugin(type(builtin_registry().build(name, {})), examples=10)


def _table(nodes: int) -> NodeTable:
    return NodeTable.empty(Axes(), [NodeSpec(name=f"n{i}") for i in range(nodes)]).copy()


def _set(table: NodeTable, amounts: Ints, row: int, amount: int, column: int = 0) -> None:
    amounts[column, row] = amount
    table.journal.append(row)


def test_rows_of_one_state_share_an_answer() -> None:
    table, said = _table(3), Said(True, True, 1.0, 2.0, 3.0)
    known = Remembered(table, [np.array([1.0, 1.0, 2.0]), np.array([True, True, True])])
    known.note(0, said)
    assert known.of([0, 1, 2]) == [said, said, None]
    _set(table, table.used, 1, 5)
    assert known.of([1]) == [None]
    _set(table, table.used, 1, 0)
    assert known.of([1]) == [said]


def test_every_amount_tells_states_apart() -> None:
    table = _table(1)
    before = set(table.states.of([0]))
    for amounts in (table.used, table.releasing, table.pipelined, table.requested, table.nonzero):
        for column in range(len(amounts)):
            _set(table, amounts, 0, 7, column)
            found = table.states.of([0])
            assert before.isdisjoint(found)
            before.update(found)


def test_memory_is_bounded() -> None:
    table = _table(1)
    known = Remembered(table, [])
    for number in range(2 * KEPT_STATES + 2):
        _set(table, table.used, 0, number)
        known.note(0, Said(True, True, 0.0, 0.0, float(number)))
    assert len(known._said) <= KEPT_STATES


def test_numbers_of_states_are_bounded_and_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.model.resources.row_states.KEPT", 3)
    table, found = _table(2), set[int]()
    for number in range(10):
        _set(table, table.used, 0, number)
        found.update(table.states.of([0]))
        assert len(table.states._numbers) <= 3
    assert len(found) == 10
    _set(table, table.used, 1, 9)
    assert table.states.of([1]) == table.states.of([0])
