"""Scores are asked only where a node may be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from stromboli.framework.engine.placer import Placer
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.plugin import Plugin, node_order, on_allocate
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf, task_of


class Failing(Plugin):
    """Its score raises whenever it is asked."""

    name = "failing"

    @node_order(key=lambda task: None)
    def score(self, task: Task, node: Node) -> float:
        raise ValueError("no score today")


BOTH = np.ones(2, dtype=bool)
Ask = Callable[[Placer, Task], object]


@pytest.fixture
def asked() -> Iterator[tuple[Placer, Task]]:
    """A session in which both nodes have room for x0."""
    scene = [node("n0", cpu=4), node("n1", cpu=4), pod_group("x"), pod("x0", group="x")]
    with Bench(scene, conf("gang", "predicates failing"), Failing).open() as session:
        yield session.placer, task_of(session, "x0")


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda placer, task: placer.refusals(task), id="refusals"),
        pytest.param(lambda placer, task: placer.refusals(task, room=False), id="refusals, whatever room"),
        pytest.param(lambda placer, task: placer.eligible(task), id="eligible"),
        pytest.param(lambda placer, task: placer.curable(task), id="curable"),
        pytest.param(lambda placer, task: placer.passes(task, 0), id="passes"),
    ],
)
def test_a_question_that_chooses_no_node_asks_no_score(ask: Ask, asked: tuple[Placer, Task]) -> None:
    ask(*asked)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda placer, task: placer.place(task), id="place"),
        pytest.param(lambda placer, task: placer.place(task, room=False), id="place, whatever room"),
        pytest.param(lambda placer, task: placer.idle_row(task), id="idle row"),
        pytest.param(lambda placer, task: placer.place_run([task]), id="place run"),
        pytest.param(lambda placer, task: placer.ranking(task, BOTH), id="ranking"),
        pytest.param(lambda placer, task: placer.choose(task, BOTH), id="choose"),
        pytest.param(lambda placer, task: placer.foresee([task], 0, [task]), id="foresee"),
    ],
)
def test_a_question_that_chooses_a_node_asks_the_scores(ask: Ask, asked: tuple[Placer, Task]) -> None:
    with pytest.raises(PluginFailed, match="no score today"):
        ask(*asked)


@pytest.mark.parametrize(
    ("cores", "problems", "bound"), [(1, [], {}), (2, ["plugin failing: ValueError: no score today"], {"x0": "n0"})]
)
def test_a_score_that_fails_is_noticed_once_a_node_is_open(
    cores: int, problems: list[str], bound: dict[str, str]
) -> None:
    """The plugin is put aside, and the pod gets the node without its score."""
    scene = [node("n0", cpu=cores), pod_group("x"), pod("x0", group="x", cpu=2)]
    plan = Bench(scene, conf("gang", "predicates failing"), Failing).cycle()
    assert (plan.inconsistencies, binds(plan)) == (problems, bound)


class Elsewhere(Plugin):
    """Its score of one node changes when a pod is placed on another, as it says."""

    name = "elsewhere"

    def __init__(self, arguments: Mapping[str, object] | None = None) -> None:
        super().__init__(arguments)
        self._placed = 0

    @on_allocate
    def count(self, event: TaskEvent) -> None:
        self._placed += 1

    @node_order(key=lambda task: None, reads=("cluster",))
    def score(self, task: Task, node: Node) -> float:
        return 5.0 * self._placed if node.name == "n1" else 1.0


def test_a_score_that_reads_the_cluster_is_asked_again_of_all_nodes_after_each() -> None:
    pods = [pod(f"x{number}", group="x", cpu=1) for number in range(2)]
    scene = [node("n0", cpu=4), node("n1", cpu=4), pod_group("x", min_member=2), *pods]
    plan = Bench(scene, conf("gang", "predicates elsewhere"), Elsewhere).cycle()
    assert binds(plan) == {"x0": "n0", "x1": "n1"}
