"""Runs of equal pods, and scores of pods that take the room of others: what is known without asking one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stromboli.framework.engine.eviction_nodes import foreseen
from stromboli.framework.engine.remembered import Said
from stromboli.model.resources.axes import CPU
from stromboli.model.table import NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Plugin, batch_node_order
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

GIB = 2**30


class Memory(Plugin):
    """Prefers nodes with much memory, between the least and the most among the candidates."""

    name = "memory"

    @batch_node_order.raw(key=lambda task: None, static=True, normalise="between")
    def gib(self, _task: Task, nodes: NodeRows) -> npt.NDArray[np.int64]:
        return nodes.allocatable("memory") // GIB

    def between(self, _task: Task, raw: Any, low: float, high: float) -> Any:
        return (raw - low) / max(high - low, 1.0) * 100


@pytest.mark.parametrize(
    ("cores", "memory", "plugins", "count", "within", "rows"),
    [
        pytest.param([2, 4, 4], [10, 5, 1], "memory", 2, None, None, id="the best node is full then"),
        pytest.param([1, 4, 4], [10, 10, 1], "memory", 2, None, [0, 1], id="another node is as good, and gets one"),
        pytest.param([2, 4, 4], [10, 10, 1], "memory", 2, None, [0, 0], id="another node is as good"),
        pytest.param([4, 2, 2], [10, 5, 1], "memory", 2, [1, 2], None, id="the best of those within is full"),
        pytest.param([4, 2, 2], [10, 5, 5], "memory", 2, [1, 2], [1, 1], id="another node within is as good"),
        pytest.param([4, 4, 2], [10, 5, 0], "memory", 2, [2], None, id="the only one within is full"),
        pytest.param([2, 1, 1], [5, 5, 5], "memory", 4, None, [0, 0, 1, 2], id="all are full, and were as good"),
        pytest.param([2, 1, 1], [10, 5, 1], "", 4, None, [0, 0, 1, 2], id="all are full, and nothing is scored"),
        pytest.param([2, 1, 1], [10, 5, 1], "", 6, None, [0, 0, 1, 2], id="no room for all of them"),
        pytest.param([2, 1, 1], [10, 5, 1], "", 2, [1], [1], id="no room for all of them within"),
        pytest.param([0, 0, 4], [10, 5, 1], "memory", 2, [0, 1], [], id="no room at all within"),
    ],
)
def test_a_run_is_placed_at_once_unless_it_changes_what_scores_are_relative_to(
    cores: list[int], memory: list[int], plugins: str, count: int, within: list[int] | None, rows: list[int] | None
) -> None:
    machines = [node(f"n{i}", cpu=c, memory=f"{m}Gi") for i, (c, m) in enumerate(zip(cores, memory, strict=True))]
    pods = [pod(f"x{i}", group="x", cpu=1, memory=0) for i in range(count)]
    with Bench([*machines, pod_group("x"), *pods], conf("gang", f"predicates {plugins}"), Memory).open() as session:
        tasks = [task_of(session, f"x{i}") for i in range(count)]
        choice = session.placer.place_run(tasks, None if within is None else session.table.mask(within))
        assert (None if choice is None else choice.rows) == rows
        assert session.table.idle[CPU].tolist() == [1000 * each for each in cores]


def said(score: float, *, opened: bool = True) -> Said:
    return Said(opened, opened, score, 0.0, score)


@pytest.mark.parametrize(
    ("simple", "ahead", "scores"),
    [
        pytest.param(True, [said(1), said(2), said(3), said(4)], [2, 4], id="after every second change"),
        pytest.param(True, [said(1), said(2), said(3)], [2], id="the last change is not known"),
        pytest.param(True, [said(1), said(2), said(3, opened=False), said(4)], [2], id="the node is full for a while"),
        pytest.param(True, [said(1), said(2, opened=False), said(3), said(4)], [], id="the pod does not fit"),
        pytest.param(True, [], [], id="nothing is known"),
        pytest.param(True, None, [], id="nothing is remembered"),
        pytest.param(False, [said(1), said(2)], [], id="scores follow from the candidates"),
    ],
)
def test_scores_are_foreseen_as_long_as_the_node_is_open(
    simple: bool, ahead: list[Said] | None, scores: list[float]
) -> None:
    remembered = None if ahead is None else SimpleNamespace(ahead=lambda *_: iter(ahead))
    kept: Any = SimpleNamespace(simple=simple, remembered=remembered)
    assert foreseen(kept, 0, []) == scores
