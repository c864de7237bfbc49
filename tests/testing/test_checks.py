"""Single checks of the conformance kit, each on an example that shows one flaw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.engine.rows import Floats
from stromboli.model.job import Job
from stromboli.model.resources.axes import CPU
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Plugin, node_order, reclaimable
from stromboli.testing.builders import node, pod, pod_group, queue
from stromboli.testing.moves import Move
from stromboli.testing.node_checks import check_kept
from stromboli.testing.trial import Trial
from stromboli.testing.victim_checks import check_by_priority


class TwoScores(Plugin):
    """Scores a node that is asked alone otherwise than among all."""

    name = "two-scores"

    @node_order.vector(key=lambda task: task.template, row="alone")
    def among_all(self, task: Task, nodes: NodeRows) -> Floats:
        return np.asarray(nodes.alloc[CPU], dtype=np.float64)

    def alone(self, task: Task, node: Node) -> float:
        return 1.0


@pytest.mark.parametrize("cores", [4, 2])
def test_scores_that_are_kept_are_compared_whether_or_not_a_node_is_open_before_the_moves(cores: int) -> None:
    """The pod of r leaves n0, whose score the engine renews; x0 needs a core."""
    scene = [node("n0", cpu=cores), node("n1", cpu=1), pod_group("x"), pod("x0", group="x", cpu=1)]
    scene += [pod_group("r"), pod("r0", group="r", on="n0", cpu=2), pod("r1", group="r", on="n1", cpu=1)]
    trial = Trial(TwoScores, {}, scene, [Move("evict")])
    with pytest.raises(AssertionError, match=rf"scores: 1\.0 was kept for node n0, asked afresh it is {cores}000\.0"):
        check_kept(trial)


class Moved(Plugin):
    """Promises that priorities decide which jobs of a queue give way, though none does once it has lost a pod.

    It keeps its promise otherwise: all of one queue give way, none of the others, and no job to itself.
    """

    name = "moved"

    def on_session_open(self, session: ClusterView) -> None:
        self.ledger = session.ledger

    @reclaimable
    def all_of_them(self, _reclaimer: Task, reclaimees: Sequence[Task]) -> Sequence[Task]:
        return reclaimees

    @reclaimable.job(by_priority=True)
    def untouched(self, reclaimer: Task, job: Job) -> bool:
        return (
            job.queue == "default"
            and job.uid != reclaimer.job
            and all(task.job != job.uid for task, _ in self.ledger.evictions)
        )


def test_jobs_of_one_priority_are_compared_after_the_moves_as_before_them() -> None:
    """r and s are alike until the pod of r is evicted; t is of another queue, and x needs room itself."""
    scene = [node("n0", cpu=4), pod_group("x"), pod("x0", group="x"), queue("other"), pod_group("t", queue="other")]
    scene += [pod_group("r"), pod("r0", group="r", on="n0"), pod_group("s"), pod("s0", group="s", on="n0")]
    check_by_priority(Trial(Moved, {}, scene))
    flaw = "plugin moved, reclaimable.job: says False of default/r and True of default/s, of the same queue and"
    with pytest.raises(AssertionError, match=flaw):
        check_by_priority(Trial(Moved, {}, scene, [Move("evict")]))
