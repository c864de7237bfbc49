"""The order in which a search tries nodes: kept from pod to pod, it equals a fresh order."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from stromboli.framework.books.candidates import FEW
from stromboli.model.job import RUNNING
from stromboli.preemption.eviction_policy import PREEMPT, RECLAIM
from stromboli.preemption.node_order import KeptOrder, any_of, best_first, first_ones, sample
from stromboli.preemption.victim_search import Search
from stromboli.testing.builders import node
from tests.acceptance.bench import Bench, conf, task_of
from tests.acceptance.fights import CLASSES, running, waiting

NEVER = -np.inf
LEAST_ALLOCATED = conf("conformance gang priority", "predicates nodeorder")


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, FEW + 2, 3 * FEW])
@pytest.mark.parametrize("out", [0, 1, 5])
def test_rows_by_score_ties_to_the_lower_one_and_none_that_is_out(count, out):
    """However many are asked for: few are found one by one, the others are sorted."""
    draw = Random(count + 100 * out)
    scores = [float(draw.randrange(4)) for _ in range(count)] + [NEVER] * out
    draw.shuffle(scores)
    expected = sorted((row for row, score in enumerate(scores) if score > NEVER), key=lambda row: (-scores[row], row))
    assert list(best_first(np.array(scores))) == expected


@pytest.mark.parametrize("marks", ["1", "01", "0011", "0101", "1001", "0110100"])
def test_marked_rows_in_order(marks):
    rows = [row for row, mark in enumerate(marks) if mark == "1"]
    assert list(first_ones(np.array([mark == "1" for mark in marks]))) == rows


@pytest.mark.parametrize(("marks", "found"), [([], False), ([False], False), ([True], True), ([False, True], True)])
def test_whether_any_row_is_marked(marks, found):
    assert any_of(np.array(marks, dtype=bool)) is found


def world(draw):
    """Six nodes, on which pods run that may go or stay, and four pods that wait."""
    machines = [node(f"n{number}", cpu=draw.choice((1, 2, 3))) for number in range(6)]
    crowd = [
        each
        for number in range(6)
        if draw.random() < 0.8
        for each in running(f"v{number}", draw.choice((1, 2)), f"n{number}", cls=draw.choice(("low", "high")))
    ]
    return Bench([*machines, *CLASSES, *crowd, *waiting("x", 4, cls="mid")], LEAST_ALLOCATED)  # fmt: skip


def move(draw, session, plan):
    """One pod is evicted, or one of those that wait gets a node, or some of it is undone."""
    if plan.operations and draw.random() < 0.3:
        plan.rollback(draw.randrange(len(plan.operations)))
        return
    if draw.random() < 0.5:
        there = [task for job in session.jobs.peek() if job.uid != "default/x" for task in job.tasks.values()]
        there = [task for task in there if task.status is RUNNING]
        if there:
            victim = draw.choice(sorted(there, key=lambda task: task.uid))
            plan.evict(session.jobs[victim.job].tasks[victim.uid], "test")
        return
    free = [task_of(session, f"x-{number}") for number in (1, 2, 3)]
    free = [task for task in free if not task.node_name]
    if free:
        plan.pipeline(free[0], draw.choice(sorted(session.nodes)), False)


@pytest.mark.parametrize("policy", [PREEMPT, RECLAIM])
@pytest.mark.parametrize("seed", range(12))
def test_an_order_that_is_kept_up_is_the_one_found_anew(policy, seed):
    draw = Random(seed)
    with world(draw).open() as session, session.statement() as plan:
        task, job = task_of(session, "x-0"), session.jobs["default/x"]
        search = Search(session, job, policy, lambda other: other is not job, minimal=True)
        reach = search.reach(task)
        kept = KeptOrder(search, task, sample(search, task), reach)
        for _ in range(6):
            move(draw, session, plan)
            search.reach(task)
            fresh = KeptOrder(search, task, sample(search, task), reach)
            assert kept.keep_up(search, task) is True
            rows = list(fresh.rows())
            assert (kept.first, list(kept.rows())) == (fresh.first, rows)
            assert not rows or rows[0] == fresh.first


@pytest.mark.parametrize("seed", range(6))
def test_for_how_long_the_first_node_goes_on_coming_first(seed):
    draw = Random(seed)
    with world(draw).open() as session:
        task, job = task_of(session, "x-0"), session.jobs["default/x"]
        search = Search(session, job, PREEMPT, lambda other: other is not job, minimal=True)
        order = KeptOrder(search, task, sample(search, task), search.reach(task))
        first, second = list(order.rows())[:2]
        best = session.placer.ranking(task, order.members).item(second)
        for ranks, lasts in (([best + 1, best + 1], 2), ([best - 1], 0), ([best + 1, best - 1, best + 1], 1),
                             ([best, best], 2 if first < second else 0), ([], 0)):  # fmt: skip
            assert order.stays_first(ranks) == lasts
        assert list(order.rows())[:2] == [first, second]
